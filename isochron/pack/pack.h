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

struct PackOptions {
  Tokens capacity = 0;                        // tokens that one micro-batch may hold; required
  std::int32_t multiple = 1;                  // the number of micro-batches is a multiple of this
  std::int32_t min_count = 0;                 // and at least this
  std::optional<std::int32_t> count = {};     // and exactly this, if given
  std::int32_t max_sequences = 0;             // in one micro-batch; 0: no limit
  Oversize oversize = Oversize::error;        // error or alone
  Short short_ = Short::empty;                // for fewer sequences than micro-batches
  KeepGroups keep_groups = KeepGroups::none;  // none or microbatch
  Order order = Order::index;                 // of the micro-batches
  std::optional<std::int64_t> max_work = {};  // search limit, in exchanges weighed; none: by size

  template <class Row>
  static void describe(Row row) {
    using Self = PackOptions;
    row(Field{"capacity", &Self::capacity, "tokens that one micro-batch may hold; required", "",
              IntegerRange{1}});
    row(Field{"multiple", &Self::multiple, "the number of micro-batches is a multiple of this", "",
              IntegerRange{1}});
    row(Field{"min_count", &Self::min_count, "at least this many micro-batches", "",
              IntegerRange{0}});
    row(Field{"count", &Self::count, "exactly this many micro-batches", "", IntegerRange{1}});
    row(Field{"max_sequences", &Self::max_sequences,
              "sequences that one micro-batch may hold; 0: no limit", "", IntegerRange{0}});
    row(Field{"oversize", &Self::oversize, "a sequence longer than the capacity", "error|alone"});
    row(Field{"short", &Self::short_, "fewer sequences than micro-batches"});
    row(Field{"keep_groups", &Self::keep_groups,
              "microbatch: sequences of a group in the same micro-batch", "none|microbatch"});
    row(Field{"order", &Self::order, "micro-batches by first sequence, or small at both ends"});
    row(Field{"max_work", &Self::max_work,
              "search limit, in exchanges weighed; not given: grows with the batch", "",
              IntegerRange{0}});
  }
};

struct Packing {
  Status status = Status::unknown;
  std::string reason;              // why there is no packing, in words; empty otherwise
  std::int32_t lower_bound = 0;    // no valid packing has fewer micro-batches
  Nanoseconds max_cost = 0;        // of a micro-batch
  Nanoseconds max_cost_bound = 0;  // no packing of as many micro-batches has a smaller max_cost
  // Sequences of each micro-batch, ascending. Empty ones, if the counts need any, come last.
  std::vector<std::vector<SequenceId>> microbatches;
  std::vector<SequenceId> oversized;  // each alone (a kept group as a whole), over the capacity
  std::vector<SequenceId> dropped;    // in no micro-batch (Short::drop)

  bool operator==(const Packing&) const = default;
};

// Packs whole sequences into the fewest micro-batches that `options` allow, then makes the largest
// cost of a micro-batch as small as possible, then the spread of the costs. Optimal if count and
// largest cost are proved.
//
// A length above the capacity is an outcome, decided by `options.oversize`. Throws
// std::invalid_argument if the spans differ in size, a cost is negative, a length, the capacity or
// the multiple is below 1, the counts contradict each other, or the costs add up to more than 2^62.
// Equal inputs give equal bytes on every machine. Never more micro-batches than first-fit
// decreasing; never a larger cost than Karmarkar-Karp with as many micro-batches, where that keeps
// the capacity. O(n log n + max_work) time, O(n) memory.
[[nodiscard]] Packing pack(const Sequences& sequences, const PackOptions& options);
[[nodiscard]] Packing pack(std::span<const Tokens> lengths, std::span<const Nanoseconds> costs,
                           const PackOptions& options);

// How many micro-batches of `capacity` tokens hold these sequences: the count of first-fit
// decreasing, a longer sequence counting one. Cheap, so that ranks can agree on a count before they
// pack: pack() with that count always succeeds. Throws like pack(). O(n log n).
[[nodiscard]] std::int32_t microbatch_count(std::span<const Tokens> lengths, Tokens capacity);

}  // namespace isochron
