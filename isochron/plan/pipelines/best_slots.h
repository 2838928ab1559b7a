#pragma once

#include <cstdint>
#include <utility>

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/pipelines/pipeline_grid.h"
#include "isochron/plan/problem.h"
#include "isochron/step/step_plan.h"

namespace isochron {

// The best slots of a pipeline that it was shown: those that exceed a limit on activations least,
// and of these the first to end, by simulate().
class BestSlots {
 public:
  // Of the question that `plan` states. An order search may do about `work`.
  BestSlots(const Problem& problem, const StepPlan& plan, std::int64_t work);

  // Each says whether the slots, of equal counts, are better than the best so far. Those of
  // consider_reordered(), and all where activations are limited, change places first.
  bool consider(Grid grid);
  bool consider(DraftSlots slots);
  bool consider_reordered(DraftSlots slots);

  [[nodiscard]] bool is_empty() const { return best_.empty(); }
  // Of the best, by what it exceeds the limit.
  [[nodiscard]] std::int64_t excess() const { return excess_; }
  // Of the best, if it keeps the limit; else max_total_cost.
  [[nodiscard]] Nanoseconds time() const {
    return best_.empty() || excess_ > 0 ? max_total_cost : time_;
  }
  [[nodiscard]] DraftSlots take() { return std::move(best_); }

 private:
  [[nodiscard]] DraftSlots reordered(DraftSlots slots);
  bool is_best(DraftSlots slots, Nanoseconds time, std::int64_t excess);
  bool is_limited() const { return problem_.options().max_activation_bytes > 0; }

  const Problem& problem_;
  StepPlan trial_;
  std::int64_t work_;
  DraftSlots best_;
  Nanoseconds time_ = 0;
  std::int64_t excess_ = 0;
};

}  // namespace isochron
