#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "isochron/core/enum_names.h"
#include "isochron/core/fields.h"

namespace isochron {

enum class LearningRateSchedule { constant, cosine };

template <>
struct EnumNames<LearningRateSchedule> {
  static constexpr std::array<std::pair<LearningRateSchedule, std::string_view>, 2> values = {
      {{LearningRateSchedule::constant, "constant"}, {LearningRateSchedule::cosine, "cosine"}}};
};

// How weights are updated.
struct OptimOptions {
  std::string optimizer = "AdamW";
  double lr = 1e-3;
  LearningRateSchedule lr_scheduler_type = LearningRateSchedule::constant;
  std::int64_t lr_warmup_steps = -1;
  double lr_warmup_steps_ratio = 0;
  std::int64_t total_training_steps = -1;
  double min_lr_ratio = 0;
  double num_cycles = 0.5;
  bool zero_indexed_step = true;
  std::vector<double> betas = {0.9, 0.999};
  double weight_decay = 0.01;
  double clip_grad = 1.0;
  std::optional<std::string> override_optimizer_config = {};

  template <class Row>
  static void describe(Row row) {
    using Self = OptimOptions;
    row(Field{"optim.optimizer", &Self::optimizer, "the one there is", "AdamW"});
    row(Field{"optim.lr", &Self::lr, "learning rate after the warm-up"});
    row(Field{"optim.lr_scheduler_type", &Self::lr_scheduler_type, "after the warm-up"});
    row(Field{"optim.lr_warmup_steps", &Self::lr_warmup_steps,
              "steps in which the learning rate rises from 0; 0 or less: by the ratio"});
    row(Field{"optim.lr_warmup_steps_ratio", &Self::lr_warmup_steps_ratio,
              "the same as a share of all steps"});
    row(Field{"optim.total_training_steps", &Self::total_training_steps,
              "steps that the schedule spans; -1: those of the run"});
    row(Field{"optim.min_lr_ratio", &Self::min_lr_ratio, "cosine: least share of lr"});
    row(Field{"optim.num_cycles", &Self::num_cycles, "cosine: waves in all steps"});
    row(Field{"optim.zero_indexed_step", &Self::zero_indexed_step,
              "cosine: the first step has number 0; false: 1"});
    row(Field{"optim.betas", &Self::betas, "decay of the two moments"});
    row(Field{"optim.weight_decay", &Self::weight_decay, "decoupled, of every weight"});
    row(Field{"optim.clip_grad", &Self::clip_grad, "largest L2 norm of the whole gradient"});
    row(Field{"optim.override_optimizer_config", &Self::override_optimizer_config,
              "of verl; nothing beyond null"});
  }
};

// The learning rate of each step: a warm-up from 0, then constant or a cosine.
class LearningRate {
 public:
  LearningRate(const OptimOptions& options, std::int64_t num_steps);

  // For the update of step `step` (from 1); of_step(step + 1) is what it is afterwards.
  [[nodiscard]] double of_step(std::int64_t step) const;

  // What lr is multiplied with when the scheduler has counted `count` steps, from 0.
  [[nodiscard]] double factor(std::int64_t count) const;

 private:
  OptimOptions options_;
  std::int64_t warmup_steps_;
  std::int64_t num_steps_;
};

}  // namespace isochron
