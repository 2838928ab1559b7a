#pragma once

#include <cstdint>

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/pipelines/rank_room.h"
#include "isochron/plan/pipelines/slot_heights.h"
#include "isochron/plan/problem.h"
#include "isochron/plan/slots/slot_builder.h"
#include "isochron/plan/slots/slot_items.h"
#include "isochron/plan/slots/slot_places.h"
#include "isochron/plan/slots/tight_slots.h"

namespace isochron {

// Slots for which all ranks wait, of groups of several sizes, about as long as suits a pipeline.
// Every item is a bundle, and ranks are equally fast.
class ShapedSlots {
 public:
  // `room` and `heights` are those of the question.
  ShapedSlots(const Problem& problem, const RankRoom& room, SlotHeights& heights);

  // In the order in which they run, every rank in one group of each. None if none are found that
  // take less than `most`; no step is shorter than `bound`. Where no item is so long that it makes
  // the step longer (`is_even`), fewer numbers of slots are tried.
  [[nodiscard]] DraftSlots search(Nanoseconds bound, Nanoseconds most, bool is_even);

  // The shortest of these slots become as many and as long as suits the ends of the pipeline; the
  // others stay. In no order; empty if that is not found.
  [[nodiscard]] DraftSlots with_ends(const DraftSlots& slots);

 private:
  [[nodiscard]] std::int32_t whole_blocks(double num_slots) const;
  [[nodiscard]] std::vector<std::int32_t> slot_counts() const;
  [[nodiscard]] std::vector<double> heights_for(std::int32_t num_slots, double time);
  [[nodiscard]] bool is_better(std::int32_t num_slots, double low, double near);
  [[nodiscard]] bool has_room(std::int32_t num_slots, double time) const;
  [[nodiscard]] bool is_found(std::int32_t num_slots, double time);
  [[nodiscard]] std::vector<PackedSlot> packed_ends(const std::vector<ItemId>& items,
                                                    std::int32_t num_slots, std::size_t num_ends);
  [[nodiscard]] double time_of(const std::vector<Nanoseconds>& slots) const;

  const Problem& problem_;
  const PipelineShape& shape_;
  const RankRoom& room_;
  SlotHeights& heights_;
  SlotItems items_;
  SlotPlaces places_;
  SlotBuilder builder_;
  TightSlots tight_;
  TightSlots::State all_;                 // items
  double share_;                          // of the pass
  Nanoseconds longest_ = max_total_cost;  // that the dearest item takes at least
  double best_time_ = 0;                  // as RankRoom counts it
  DraftSlots best_;
};

}  // namespace isochron
