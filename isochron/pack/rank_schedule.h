#pragma once

#include <cstdint>
#include <vector>

#include "isochron/core/sequences.h"
#include "isochron/core/units.h"
#include "isochron/pack/pack.h"

namespace isochron {

struct RankSchedule {
  Packing packing;  // of all ranks; also says why there is no schedule
  // Places in packing.microbatches, equally many for each rank, in the order of running.
  std::vector<std::vector<std::int32_t>> microbatches_of_rank;
  Nanoseconds max_cost = 0;     // of a rank
  Nanoseconds lower_bound = 0;  // no schedule of these sequences has a smaller max_cost

  bool operator==(const RankSchedule&) const = default;
};

// The micro-batches of all ranks of a data-parallel step, from one packing: under the capacity, the
// same number on each rank, aligned, and balanced by cost, all at the same time. `options` speak of
// one rank: its multiple, min_count, count and order. One packing for all ranks needs fewer
// micro-batches than one for each, and no rank has to ask another for its count.
//
// Where pack() has no packing there is no schedule. Throws like pack(), and if `ranks` is below 1
// or a count times the ranks above 2^24.
[[nodiscard]] RankSchedule schedule_ranks(const Sequences& sequences, std::int32_t ranks,
                                          const PackOptions& options);

}  // namespace isochron
