#include "isochron/plan/pipelines/step_worth.h"

#include <algorithm>
#include <limits>

#include "isochron/plan/default_effort.h"

namespace isochron {

namespace {

double looks_worth(const Problem& problem, Nanoseconds bound, std::int64_t work) {
  if (problem.options().effort && work > 2 * default_effort(problem)) {
    return std::numeric_limits<double>::infinity();
  }
  constexpr double to_begin = 2e6;
  // Unequal stages are timed one by one.
  const bool is_uneven = !problem.topology().pipeline.shares.empty();
  const double for_an_item =
      (problem.options().sync == Sync::microbatch ? 25e3 : 20e3) + (is_uneven ? 15e3 : 0);
  // A question that gets a part of the work is looked at for a part of the time.
  const double part =
      std::min(1.0, static_cast<double>(work) / static_cast<double>(default_effort(problem)));
  return part * static_cast<double>(bound) / 100 / (to_begin + for_an_item * problem.num_items());
}

}  // namespace

StepWorth::StepWorth(const Problem& problem, Nanoseconds bound, std::int64_t work)
    : bound_(bound),
      num_items_(problem.num_items()),
      looks_(looks_worth(problem, bound, work)),
      is_timed_(is_time(bound) && !problem.options().effort) {}

double StepWorth::time_for_cells() const {
  constexpr double least = 2e6;
  return is_hasty() ? std::max(least, static_cast<double>(bound_) / 50)
                    : std::numeric_limits<double>::infinity();
}

bool StepWorth::is_far(Nanoseconds time) const {
  const double lost = static_cast<double>(time) - 1.1 * static_cast<double>(bound_);
  return lost / 2 > time_for_cells();
}

bool StepWorth::is_worth_asking(Nanoseconds least, Nanoseconds best) const {
  if (least >= best) return false;
  if (!is_timed_) return true;
  constexpr Nanoseconds for_an_item = 450;
  constexpr Nanoseconds few_times = 3;
  return best - least >= few_times * for_an_item * num_items_;
}

bool StepWorth::is_hopeless(Nanoseconds time, Nanoseconds known) const {
  const std::int32_t part =
      is_hasty() ? 32 : 16;  // what a proper grid saves at most, nearly always
  return known < max_total_cost && time - known > known / part;
}

}  // namespace isochron
