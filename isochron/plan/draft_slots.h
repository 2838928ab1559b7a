#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "isochron/plan/draft.h"
#include "isochron/plan/problem.h"
#include "isochron/plan/slots/slot_search.h"

namespace isochron {

using DraftSlots = std::vector<std::vector<DraftGroup>>;

// The slots of groups that ranks run in a given order: each in the first slot in which all of its
// members have run what comes before.
[[nodiscard]] DraftSlots slots_of(const Problem& problem, const Draft& draft);

// Whether groups of each of these sizes cost the same wherever they stand, but for slow ranks.
[[nodiscard]] bool has_one_price(const Problem& problem, std::span<const std::int32_t> sizes);

// Items in micro-batches of groups of `size`: each, in this order, in the first that has room.
[[nodiscard]] std::vector<std::vector<ItemId>> first_fit(const Problem& problem, std::int32_t size,
                                                         std::span<const ItemId> items);

// What a group costs its members.
[[nodiscard]] Nanoseconds group_time(const Problem& problem, const DraftGroup& group);

// The sum over slots of the slowest group.
[[nodiscard]] Nanoseconds slots_time(const Problem& problem, const DraftSlots& slots);

// When the last rank is done, if groups start when their last member is free.
[[nodiscard]] Nanoseconds step_time(const Problem& problem, const Draft& draft);
[[nodiscard]] Nanoseconds step_time(const Problem& problem, const DraftSlots& slots);

// What a training step takes in the pass that is asked for.
[[nodiscard]] Nanoseconds pass_time(const Problem& problem, Nanoseconds time);

// A bound on the training step as one in the pass that is asked for. Those of several stages are of
// the pass already.
[[nodiscard]] Nanoseconds pass_bound(const Problem& problem, Nanoseconds bound);

// What the simulator says of a step: in the pass and with the waiting that is asked for. Forward
// passes round every micro-batch, so they may order two steps otherwise. With stages every rank
// counts as many slots, of which pipeline.group divides the number.
[[nodiscard]] Nanoseconds predicted_time(const Problem& problem, const DraftSlots& slots);

// When every rank is done, if groups start when their last member is free.
[[nodiscard]] std::vector<Nanoseconds> rank_times(const Problem& problem, const DraftSlots& slots);

// Makes every rank a member of exactly one group in every slot, in a number of slots that is a
// multiple of `multiple`: items leave micro-batches that hold several for cells that idle, as long
// as there are any; what idles then is a placeholder, a group without items.
void equalize(const Problem& problem, std::int32_t multiple, DraftSlots& slots);

// All ranks that a group may have.
[[nodiscard]] std::vector<RankRange> admitted_ranges(const Problem& problem);

// Which group each rank is in, in one slot; -1: none.
[[nodiscard]] std::vector<std::int32_t> groups_by_rank(const Problem& problem,
                                                       const std::vector<DraftGroup>& slot);

// Whether some rank runs nothing in some slot.
[[nodiscard]] bool has_placeholder(const DraftSlots& slots);

}  // namespace isochron
