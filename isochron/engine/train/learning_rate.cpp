#include "isochron/engine/train/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace isochron {

namespace {

double ratio(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<std::int64_t>(1, whole));
}

}  // namespace

LearningRate::LearningRate(const OptimOptions& options, std::int64_t num_steps)
    : options_(options),
      warmup_steps_(options.lr_warmup_steps),
      num_steps_(options.total_training_steps > 0 ? options.total_training_steps : num_steps) {
  if (warmup_steps_ <= 0) {
    warmup_steps_ =
        static_cast<std::int64_t>(options.lr_warmup_steps_ratio * static_cast<double>(num_steps_));
  }
}

double LearningRate::of_step(std::int64_t step) const { return options_.lr * factor(step - 1); }

double LearningRate::factor(std::int64_t count) const {
  const bool is_cosine = options_.lr_scheduler_type == LearningRateSchedule::cosine;
  if (is_cosine && !options_.zero_indexed_step) ++count;
  if (count < warmup_steps_) return ratio(count, warmup_steps_);
  if (!is_cosine) return 1;
  const double progress = ratio(count - warmup_steps_, num_steps_ - warmup_steps_);
  const double wave = std::cos(2 * std::numbers::pi * options_.num_cycles * progress);
  const double low = options_.min_lr_ratio;
  return std::max(low, wave * (1 - low) / 2 + (1 + low) / 2);
}

}  // namespace isochron
