#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/problem.h"
#include "isochron/plan/slots/rank_tiler.h"

namespace isochron {

// Slots of groups of several sizes in which no rank idles, in numbers that are multiples of
// `multiple`. What finds no such slot runs on all ranks.
class TiledSlots {
 public:
  TiledSlots(const Problem& problem, std::int32_t multiple);

  // With the micro-batches of these slots, in ways that differ in how many slots those get whose
  // own slot cannot be filled. Groups of a slot may change their ranks.
  [[nodiscard]] std::vector<DraftSlots> refilled(const DraftSlots& slots) const;

  // With every item on its own as far as there are ranks for that, dealt anew into about so many
  // slots, or dealt out in turns to just as many. Nothing if neither is found.
  [[nodiscard]] std::optional<DraftSlots> dealt(std::int32_t num_slots) const;

 private:
  using Microbatch = std::vector<ItemId>;
  using Pool = std::vector<Microbatch>;

  enum class Ranks { kept, free };  // of groups beside ranks that idle, where they can be kept

  [[nodiscard]] std::optional<RankRange> find_wider(const DraftGroup& group,
                                                    const std::vector<bool>& is_taken) const;
  [[nodiscard]] std::vector<DraftGroup> widened(std::vector<DraftGroup> groups) const;
  [[nodiscard]] std::vector<DraftSlots> refilled(const DraftSlots& slots, Ranks ranks) const;
  [[nodiscard]] std::vector<DraftGroup> tiled(Pool pool) const;
  [[nodiscard]] Nanoseconds time_of_slots(std::span<const TimesBySize> loads,
                                          std::int32_t num_slots, Nanoseconds limit) const;
  [[nodiscard]] std::int32_t deal(Pool& pool, std::int32_t num_slots, DraftSlots& slots) const;
  [[nodiscard]] Pool taken(const std::vector<std::pair<Nanoseconds, std::size_t>>& slowest,
                           std::span<const TimesBySize> loads, Nanoseconds limit, Pool& pool) const;
  [[nodiscard]] std::optional<DraftSlots> finished(DraftSlots slots, Pool pool,
                                                   std::int32_t num_slots) const;
  [[nodiscard]] bool run_on_all(const Pool& pool, DraftSlots& slots) const;
  [[nodiscard]] bool complete(DraftSlots& slots) const;
  [[nodiscard]] std::optional<Pool> single_items(std::size_t most) const;
  [[nodiscard]] std::optional<DraftSlots> in_turns(Pool pool, std::int32_t num_slots) const;

  const Problem& problem_;
  std::int32_t multiple_;
  RankTiler tiler_;
};

}  // namespace isochron
