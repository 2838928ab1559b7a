#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "tests/oracle/group_table.h"

// The least step time over all plans whose groups stand in a table, one function for each way in
// which ranks wait for each other. Nothing if there is no plan below `limit`.

namespace isochron::oracle {

// A time that no plan beats: rank time shared evenly, or a unit where it is fastest.
[[nodiscard]] Nanoseconds floor_of(const GroupTable& table);

// What best_within(target) finds for targets that grow until one is met.
template <class BestWithin>
std::optional<Nanoseconds> best_by_targets(const GroupTable& table, Nanoseconds limit,
                                           BestWithin best_within) {
  const Nanoseconds floor = floor_of(table);
  if (floor >= limit) return std::nullopt;
  for (Nanoseconds slack = floor / 128 + 1;; slack *= 2) {
    const Nanoseconds target = std::min(floor + slack, limit - 1);
    const std::optional<Nanoseconds> best = best_within(target);
    if (best || target == limit - 1) return best;
  }
}

// Sync step, free counts. Ranges that nest: a recursion over the tree of ranges; up to 10 units.
[[nodiscard]] std::optional<Nanoseconds> best_nested(const GroupTable& table, Nanoseconds limit);
[[nodiscard]] bool has_nested_ranges(const GroupTable& table);

// Sync step, free counts, any ranges.
[[nodiscard]] std::optional<Nanoseconds> best_free(const GroupTable& table, Nanoseconds limit);

// Sync step, equal counts; placeholders where the table has a cost for them, here and below.
[[nodiscard]] std::optional<Nanoseconds> best_equal(const GroupTable& table, Nanoseconds limit);

// Sync microbatch.
[[nodiscard]] std::optional<Nanoseconds> best_lockstep(const GroupTable& table, Nanoseconds limit);

// 1F1B over several stages, interleaved with virtual stages.
struct Pipeline {
  std::size_t stages = 2;
  std::size_t virtual_ = 1;  // chunks of each stage
  std::size_t group = 1;     // slots that a chunk runs before the next one; divides their number
  Nanoseconds transfer_ns = 0;
  double forward_share = 0;               // 1 if the pass is forward only
  std::vector<double> shares = {};        // of each chunk in a cost; none: all equal
  std::int64_t max_activation_bytes = 0;  // of the slots in flight on a stage; 0: no limit
};

[[nodiscard]] std::optional<Nanoseconds> best_pipelined(const GroupTable& table,
                                                        const Pipeline& pipeline, Sync sync,
                                                        Nanoseconds limit);

}  // namespace isochron::oracle
