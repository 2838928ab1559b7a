#pragma once

#include <cstdint>
#include <vector>

#include "isochron/plan/pipelines/bundle_choices.h"
#include "isochron/plan/pipelines/rank_room.h"

namespace isochron {

struct RoomQuestion {
  const std::vector<std::vector<Choice>>& choices;  // classes of BundleChoices
  const RankRoom& room;
  double fixed = 0;       // least cost of a slot
  double ranks = 1;       // a slow one is as much of a rank as it is as fast
  double least_rank = 1;  // the slowest one
  std::int32_t max_slots = 1;
  std::int32_t slots_per_block = 1;  // divides the number of slots
  bool is_paced = false;             // all ranks wait for the longest slot of any
};

// In a shorter time, as RankRoom counts it, not all bundles have room, however many slots there
// are. 0 if that is no more than `at_least`.
[[nodiscard]] double room_bound(const RoomQuestion& question, double at_least);

}  // namespace isochron
