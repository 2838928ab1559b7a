#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "isochron/core/fields.h"
#include "isochron/core/ids.h"
#include "isochron/core/order.h"
#include "isochron/core/policy.h"
#include "isochron/core/sequences.h"
#include "isochron/core/status.h"
#include "isochron/core/units.h"

namespace isochron {

struct BalanceOptions {
  bool equal_count = false;                   // sequences per rank differ by at most one
  KeepGroups keep_groups = KeepGroups::none;  // none or rank
  std::int32_t minibatch = 0;                 // rows per mini-batch; 0: the batch is one
  Tokens capacity = 0;                        // tokens that a rank may hold; 0: no limit
  Order order = Order::index;                 // of the sequences inside a rank
  std::optional<std::int64_t> max_work = {};  // search limit, in exchanges weighed; none: by size

  template <class Row>
  static void describe(Row row) {
    using Self = BalanceOptions;
    row(Field{"equal_count", &Self::equal_count, "sequences per rank differ by at most one"});
    row(Field{"keep_groups", &Self::keep_groups, "rank: sequences of a group on the same rank",
              "none|rank"});
    row(Field{"minibatch", &Self::minibatch, "balance each block of this many rows; 0: all rows",
              "", IntegerRange{0}});
    row(Field{"capacity", &Self::capacity,
              "tokens that a rank may hold in a mini-batch; 0: no limit", "", IntegerRange{0}});
    row(Field{"order", &Self::order, "sequences inside a rank: by index, or small at both ends"});
    row(Field{"max_work", &Self::max_work,
              "search limit, in exchanges weighed; not given: grows with the batch", "",
              IntegerRange{0}});
  }
};

struct Balance {
  Status status = Status::unknown;
  std::string reason;           // why there is no assignment, in words; empty otherwise
  Nanoseconds max_cost = 0;     // of the most loaded rank; with mini-batches the sum over them
  double mean_cost = 0;         // of a rank
  Nanoseconds lower_bound = 0;  // no valid assignment has a smaller max_cost
  // Sequences of each rank, mini-batch by mini-batch, inside one by `order`.
  std::vector<std::vector<SequenceId>> sequences_of_rank;

  bool operator==(const Balance&) const = default;
};

// Assigns every sequence to one of `ranks` ranks so that the largest sum of costs is as small as
// possible. Never worse than Karmarkar-Karp or longest-first under the same options (with
// `equal_count` and more than 2048 sequences: longest-first on the costs above the smallest one).
// With `keep_groups: rank` the groups are what moves and what `equal_count` counts.
//
// No assignment under the capacity is an outcome: infeasible if proved, else unknown. Throws
// std::invalid_argument if `ranks`, an option or a cost is out of range, a span is missing or of
// another size, the costs add up to more than 2^62, or a kept group lies in two mini-batches. Equal
// inputs give equal bytes on every machine. O(n log n + max_work) time, O(n + ranks) memory.
[[nodiscard]] Balance balance(const Sequences& sequences, std::int32_t ranks,
                              const BalanceOptions& options = {});
[[nodiscard]] Balance balance(std::span<const Nanoseconds> costs, std::int32_t ranks,
                              const BalanceOptions& options = {});

}  // namespace isochron
