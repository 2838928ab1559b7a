#include "isochron/engine/train/horizon.h"

#include <algorithm>

#include "isochron/core/require.h"

namespace isochron {

namespace {

std::int64_t period(const Frequency& frequency, std::int64_t steps_per_epoch) {
  if (frequency.each_epoch) return steps_per_epoch;
  return std::max<std::int64_t>(frequency.steps, 0);
}

bool is_due(std::int64_t step, std::int64_t every, std::int64_t num_steps) {
  return step == num_steps || (every > 0 && step % every == 0);
}

}  // namespace

bool Horizon::is_save_due(std::int64_t step) const { return is_due(step, save_every, num_steps); }

bool Horizon::is_test_due(std::int64_t step) const {
  return has_validation && is_due(step, test_every, num_steps);
}

Horizon horizon_of(std::int64_t num_rows, std::int64_t batch_size, bool has_validation,
                   const HorizonOptions& options) {
  const std::int64_t steps_per_epoch = num_rows / batch_size;
  require(steps_per_epoch >= 1, "data",
          "data.train_files hold {} rows, must be at least data.train_batch_size = {}", num_rows,
          batch_size);
  // Epochs are bounded by the recipe, rows by memory: the product may still leave 64 bits.
  const std::int64_t all_epochs = options.total_epochs > INT64_MAX / steps_per_epoch
                                      ? INT64_MAX
                                      : options.total_epochs * steps_per_epoch;
  return {.num_steps = std::min(all_epochs, options.total_training_steps.value_or(INT64_MAX)),
          .steps_per_epoch = steps_per_epoch,
          .left_out_rows = num_rows % batch_size,
          .save_every = period(options.save_freq, steps_per_epoch),
          .test_every = period(options.test_freq, steps_per_epoch),
          .has_validation = has_validation};
}

}  // namespace isochron
