#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/problem.h"
#include "isochron/plan/slots/tiled_slots.h"

namespace isochron {

// Whether no rank may idle in any slot.
[[nodiscard]] bool must_be_full(const PlanOptions& options);

// What was found, if anything, and when it ends.
struct TimedSlots {
  std::optional<DraftSlots> slots = {};
  Nanoseconds time = std::numeric_limits<Nanoseconds>::max();
};

// Slots of the same items in which no rank idles, in a number that pipeline.group divides: those of
// what is found that predicted_time() says end first. What is found without a look at given slots
// is kept.
class FullSlots {
 public:
  explicit FullSlots(const Problem& problem);

  // Nothing if none are found. Slots that are full stay as they are.
  [[nodiscard]] std::optional<DraftSlots> find(const DraftSlots& slots);

  // Items dealt anew to groups of several sizes, whatever slots there are.
  [[nodiscard]] const TimedSlots& dealt();

 private:
  // Whether they are the best so far.
  bool consider(DraftSlots slots, TimedSlots& best) const;
  [[nodiscard]] const TimedSlots& even();

  const Problem& problem_;
  std::int32_t multiple_;
  std::optional<TiledSlots> tiled_ = {};  // where groups have several sizes and bundles move
  // Once they are asked for:
  std::optional<TimedSlots> even_ = {};
  std::optional<TimedSlots> dealt_ = {};
};

// The question with all ranks in every group, where no rank may idle and groups of other sizes that
// hold something never add up to all ranks; none elsewhere.
[[nodiscard]] std::unique_ptr<Problem> find_whole_groups(const Problem& problem);

}  // namespace isochron
