#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "isochron/pack/pack.h"

namespace isochron::oracle {

// By count, then by the largest cost of a micro-batch.
struct Score {
  std::int64_t count = 0;
  Nanoseconds max_cost = 0;

  auto operator<=>(const Score&) const = default;
};

struct BestPacking {
  Score score;
  std::vector<SequenceId> dropped;

  bool operator==(const BestPacking&) const = default;
};

// The best score of all packings that `options` allow; nothing if there is none. Looks at every
// packing: for up to ten sequences (groups, if kept).
[[nodiscard]] std::optional<BestPacking> best_packing(const Sequences& sequences,
                                                      const PackOptions& options);

// The same where a capacity is all that is asked, and every sequence fits.
[[nodiscard]] Score best_score(std::span<const Tokens> lengths, std::span<const Nanoseconds> costs,
                               Tokens capacity);

[[nodiscard]] Score score(const std::vector<std::vector<SequenceId>>& microbatches,
                          std::span<const Nanoseconds> costs);

}  // namespace isochron::oracle
