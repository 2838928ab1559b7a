#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "isochron/core/ids.h"
#include "isochron/core/units.h"

namespace isochron {

// Sums over ranks before and after balancing: the six numbers of verl's global_seqlen/*.
struct LoadSpread {
  std::int64_t min = 0;  // before: the input order cut into contiguous parts
  std::int64_t max = 0;
  std::int64_t minmax_diff = 0;
  std::int64_t balanced_min = 0;  // after
  std::int64_t balanced_max = 0;
  double mean = 0;  // of a rank

  bool operator==(const LoadSpread&) const = default;
};

// The spread of `values` (lengths or costs) over the ranks. Before balancing each rank has a
// contiguous part; the sizes of the parts differ by at most one, larger ones first. Defined for
// every number of values and ranks, and equal to verl's numbers where the ranks divide the values.
//
// Throws std::invalid_argument if there is no rank, an id is out of range, a value is negative or
// the values add up to more than 2^62.
[[nodiscard]] LoadSpread load_spread(std::span<const std::int64_t> values,
                                     std::span<const std::vector<SequenceId>> sequences_of_rank);

struct BalanceMetrics {
  LoadSpread tokens;
  LoadSpread cost;

  bool operator==(const BalanceMetrics&) const = default;
};

// The spread of tokens and of predicted cost. Throws like load_spread(), and if the spans differ in
// size.
[[nodiscard]] BalanceMetrics balance_metrics(
    std::span<const Tokens> lengths, std::span<const Nanoseconds> costs,
    std::span<const std::vector<SequenceId>> sequences_of_rank);

// As a log has them: global_seqlen/min, .., global_seqlen/mean, global_cost/min, ..
[[nodiscard]] std::vector<std::pair<std::string, double>> named_numbers(
    const BalanceMetrics& metrics);

}  // namespace isochron
