#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "isochron/core/units.h"

// The problem behind balance() and the second half of pack(): units onto bins, the largest cost of
// a bin as small as possible, under limits on what a bin may hold.

namespace isochron {

// What moves as a whole: a sequence, or a group of them that stays together. Position i of every
// span speaks of unit i.
struct Units {
  std::span<const Nanoseconds> costs;
  std::span<const Tokens> tokens = {};       // empty: nothing is limited by tokens
  std::span<const std::int32_t> sizes = {};  // sequences in a unit; empty: one each

  [[nodiscard]] std::size_t count() const { return costs.size(); }
  [[nodiscard]] Tokens tokens_of(std::size_t unit) const {
    return tokens.empty() ? 0 : tokens[unit];
  }
  [[nodiscard]] std::int32_t size_of(std::size_t unit) const {
    return sizes.empty() ? 1 : sizes[unit];
  }
};

// What a bin may hold.
struct Limits {
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

  Tokens capacity = unlimited;
  std::int64_t max_size = unlimited;  // sequences
  std::int32_t min_units = 0;
  std::int32_t max_units = std::numeric_limits<std::int32_t>::max();

  [[nodiscard]] bool has_volume() const {  // whether tokens or sizes restrict anything
    return capacity != unlimited || max_size != unlimited;
  }
  [[nodiscard]] bool are_counts_equal() const { return max_units == min_units + 1; }
};

using BinOf = std::vector<std::int32_t>;  // bin of each unit

// Units by descending cost, ties by index, and their costs in that order.
struct DearestFirst {
  std::vector<std::int32_t> units;
  std::vector<Nanoseconds> costs;
};
[[nodiscard]] DearestFirst dearest_first(std::span<const Nanoseconds> costs);

[[nodiscard]] Nanoseconds largest_cost(const Units& units, std::int32_t num_bins,
                                       const BinOf& bin_of);

// Whether every bin keeps the limits.
[[nodiscard]] bool are_kept(const Limits& limits, const Units& units, std::int32_t num_bins,
                            const BinOf& bin_of);

// No assignment under `limits` has a smaller largest cost: the mean; the largest unit; the cheapest
// j+1 of the j*bins+1 dearest units, which share a bin for some j; each with the cheapest units
// that a bin still needs to reach min_units.
[[nodiscard]] Nanoseconds cost_bound(const DearestFirst& order, std::int32_t num_bins,
                                     std::int32_t min_units);

// No assignment that keeps the capacity has a smaller largest cost: of the j dearest units two
// share a bin, or j bins hold one each and also the tokens that the other bins have no room for, at
// best the cheapest ones. 0 where that says nothing.
[[nodiscard]] Nanoseconds crowding_bound(const Units& units, const DearestFirst& order,
                                         std::int32_t num_bins, Tokens capacity);

// Longest first: each unit, dearest first, goes to the cheapest bin that still takes it. Nothing if
// some unit fits no bin, or if too many bins had no room on the way. An `offset` counts costs from
// there up: with equal counts and the smallest cost that is the better start, since a bin that is
// short of units will get more. O(n log bins).
[[nodiscard]] std::optional<BinOf> longest_first(const Units& units, const DearestFirst& order,
                                                 std::int32_t num_bins, const Limits& limits,
                                                 Nanoseconds offset = 0);

// How far refine() goes once the largest cost cannot fall any more.
enum class RefineGoal {
  largest,  // stop there
  spread,   // go on with the second largest, and so on
};

// Exchanges up to two units against up to two others, or one against several, between dear and
// cheap bins while that lowers the dearer of the two, until the largest cost meets `target`,
// nothing helps, or `work` (exchanges weighed) is used up; what was used is taken off. Never raises
// the largest cost, never breaks a limit that held before. Returns the largest cost.
Nanoseconds refine(const Units& units, const DearestFirst& order, std::int32_t num_bins,
                   const Limits& limits, RefineGoal goal, Nanoseconds target, std::int64_t& work,
                   BinOf& bin_of);

enum class SearchEnd { complete, out_of_work };

// Depth-first over all assignments, dearest unit first, equal bins once. Replaces `best` (none: no
// assignment is known) by every better assignment it meets, until one meets `target`. Complete: if
// there is still none there is none at all, else it is the best. `work` counts bins tried.
[[nodiscard]] SearchEnd search_all(const Units& units, const DearestFirst& order,
                                   std::int32_t num_bins, const Limits& limits, Nanoseconds target,
                                   std::int64_t& work, std::optional<BinOf>& best);

struct Fit {
  std::optional<BinOf> bin_of;  // none: nothing was found
  bool is_excluded = false;     // there is none
};

// For a handful of units: an assignment that keeps the limits, whatever it costs, by search_all().
// Says nothing of more units.
[[nodiscard]] Fit find_fit(const Units& units, std::int32_t num_bins, const Limits& limits,
                           std::optional<std::int64_t> max_work);

struct Assignment {
  std::optional<BinOf> bin_of;  // none: no assignment was found
  Nanoseconds max_cost = 0;
  Nanoseconds lower_bound = 0;  // of max_cost
  bool is_proved = false;       // there is no assignment, or max_cost meets the bound
};

// The best assignment that the starts (longest first, Karmarkar-Karp, `start` if given, and one by
// tokens where these break the volume), refine() and, for a handful of units, search_all() find.
// max_work: of refine() and search_all(). Without one the work grows with the units and ends within
// 2^-11 of the bound.
[[nodiscard]] Assignment assign(const Units& units, std::int32_t num_bins, const Limits& limits,
                                RefineGoal goal, std::optional<std::int64_t> max_work,
                                std::optional<BinOf> start = {});

}  // namespace isochron
