#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "isochron/cost/cost_model.h"
#include "isochron/step/step_plan.h"

namespace isochron {

// A group of two or more ranks that all its members open or close.
struct GroupChange {
  enum class Kind { close, open };
  Kind kind = Kind::open;
  RankRange ranks;

  bool operator==(const GroupChange&) const = default;
};

// Which context-parallel groups are open, on all ranks of a run: each rank keeps the same account
// of the same plans, so that members agree about a group without a word.
class ContextGroupCache {
 public:
  // At most `max_open` groups stay open per rank. Throws std::invalid_argument if it is below 1.
  explicit ContextGroupCache(std::int32_t max_open);

  // What changes before the step of `plan`. A rank that makes the changes of the groups it is in,
  // in this order, waits for no other in a circle:
  //
  //   close  the least recently used groups, ties by (first rank, size), of ranks that would have
  //          too many open. Never a group that the plan needs: a rank that needs more than
  //          `max_open` in one step keeps them all until the next.
  //   open   what is missing, in the order of (slot, first rank, size).
  [[nodiscard]] std::vector<GroupChange> advance(const StepPlan& plan);

 private:
  using Range = std::pair<std::int64_t, std::int64_t>;  // first rank, size
  std::int32_t max_open_;
  std::int64_t step_ = 0;
  std::map<Range, std::int64_t> last_step_;  // of each open group: when a plan needed it last
};

}  // namespace isochron
