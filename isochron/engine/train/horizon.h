#pragma once

#include <cstdint>
#include <optional>

#include "isochron/core/fields.h"
#include "isochron/engine/train/frequency.h"

namespace isochron {

// How long a run is, and what happens on the way.
struct HorizonOptions {
  std::int64_t total_epochs = 4;
  std::optional<std::int64_t> total_training_steps = {};
  Frequency save_freq = {};
  Frequency test_freq = {};

  template <class Row>
  static void describe(Row row) {
    using Self = HorizonOptions;
    row(Field{"trainer.total_epochs", &Self::total_epochs,
              "the run ends after this many passes over the rows"});
    row(Field{"trainer.total_training_steps", &Self::total_training_steps,
              "or after this many steps, if that is earlier; null: by the epochs alone"});
    row(Field{"trainer.save_freq", &Self::save_freq,
              "steps between checkpoints; -1: after the last step alone"});
    row(Field{"trainer.test_freq", &Self::test_freq,
              "steps between validations; -1: after the last step alone"});
  }
};

// The steps of a run, 1 to num_steps, and what is due after each. After the last everything is, so
// that a run ends validated and saved.
struct Horizon {
  std::int64_t num_steps = 0;
  std::int64_t steps_per_epoch = 0;
  std::int64_t left_out_rows = 0;  // of an epoch: they do not fill a batch
  std::int64_t save_every = 0;     // 0: never
  std::int64_t test_every = 0;
  bool has_validation = false;

  [[nodiscard]] bool is_save_due(std::int64_t step) const;
  [[nodiscard]] bool is_test_due(std::int64_t step) const;
  [[nodiscard]] bool is_epoch_end(std::int64_t step) const { return step % steps_per_epoch == 0; }
  [[nodiscard]] std::int64_t epoch_of(std::int64_t step) const {
    return (step - 1) / steps_per_epoch;
  }
};

// Steps per epoch are whole batches: floor(rows / batch). The run ends with the epochs or with
// total_training_steps, whichever is earlier. Throws std::invalid_argument if the rows do not fill
// one batch.
[[nodiscard]] Horizon horizon_of(std::int64_t num_rows, std::int64_t batch_size,
                                 bool has_validation, const HorizonOptions& options);

}  // namespace isochron
