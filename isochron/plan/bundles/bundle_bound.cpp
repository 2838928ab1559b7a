#include "isochron/plan/bundles/bundle_bound.h"

#include <algorithm>
#include <optional>

#include "isochron/plan/bundles/bundle_sets.h"
#include "isochron/plan/bundles/cover_bound.h"
#include "isochron/plan/bundles/knapsack_cover.h"
#include "isochron/plan/bundles/rank_bound.h"

namespace isochron {

namespace {

// Every bundle at its fastest.
Nanoseconds slowest_bundle(const BundleTable& table) {
  Nanoseconds slowest = 0;
  for (BundleId bundle = 0; bundle < table.num_bundles(); ++bundle) {
    Nanoseconds fastest = -1;
    for (std::int32_t level = 0; level < table.num_levels(); ++level) {
      if (!table.fits(level, bundle)) continue;
      const Nanoseconds time = table.time(level, bundle);
      if (fastest < 0 || time < fastest) fastest = time;
    }
    slowest = std::max(slowest, fastest);
  }
  return slowest;
}

// Whether the smallest groups are what leaves holes: with several micro-batches, or many bundles,
// they are filled well, and with few bundles hardly any has two.
constexpr std::int32_t max_bundles = 160;
bool has_few_in_a_group(const Problem& problem, const BundleTable& table) {
  constexpr double most_in_a_group = 4;
  const double groups = static_cast<double>(problem.num_ranks()) / table.size(0);
  const std::int32_t count = table.num_bundles();
  if (count > max_bundles || count < groups || count > most_in_a_group * groups) return false;
  double tokens = 0;
  for (BundleId bundle = 0; bundle < count; ++bundle) {
    if (table.fits(0, bundle)) tokens += static_cast<double>(table.use(0, bundle).tokens);
  }
  return tokens <= static_cast<double>(table.capacity()) * problem.num_ranks();
}

// By covers of blocks that hold few bundles, the widest that do and are not below a level.
Nanoseconds bound_by_covers(const Problem& problem, const BundleTable& table, std::int32_t lowest,
                            Nanoseconds low, Nanoseconds high, Nanoseconds useful) {
  constexpr std::int32_t most_bundles = 64;
  constexpr double most_in_a_block = 3;  // with more of them holes are small
  if (table.num_bundles() > most_bundles) return low;
  const double a_rank = static_cast<double>(table.num_bundles()) / problem.num_ranks();
  for (std::int32_t level = table.num_levels(); level-- > lowest;) {
    if (a_rank * table.size(level) > most_in_a_block || !has_halves(table, level)) continue;
    const auto by_list = [&](double small, std::size_t most) -> std::optional<Nanoseconds> {
      const auto sets = find_bundle_sets(table, level, high, small, most);
      if (!sets) return std::nullopt;
      const Nanoseconds bound =
          cover_bound(table, problem.num_ranks(), level, *sets, small, low, high, useful);
      // With a bundle a block most of them stand on wider groups.
      const bool is_wide = level > 1 && small == 0 && a_rank * table.size(level) <= 1;
      if (!is_wide || bound <= low || high - bound <= bound >> 9) return bound;
      return knapsack_cover_bound(table, problem.num_ranks(), level, *sets, bound, high);
    };
    if (const auto bound = by_list(0, 2'500)) return *bound;
    // Too many to list. From near there is little to gain by them.
    constexpr std::int64_t work = 250'000;
    if (high - low > low >> 10 &&
        is_least_by_covers(table, problem.num_ranks(), level, high, work)) {
      return high;
    }
    // With as many bundles in sets as leave these few enough.
    for (const double part : {0.5, 0.75, 1.0}) {
      const double small = part * small_area(table, level, high);
      if (const auto bound = by_list(small, part == 1 ? 6'000 : 2'500)) return *bound;
    }
  }
  return low;
}

}  // namespace

Nanoseconds bundle_bound(const Problem& problem, Nanoseconds low, Nanoseconds high,
                         Nanoseconds useful) {
  if (problem.num_bundles() > max_bundles) return low;
  // Covers of many bundles take too long for the rest.
  constexpr std::int32_t few = 40;
  const bool has_many = problem.num_bundles() > few && is_short_step(problem, low);
  const auto is_enough = [&] { return high - low <= low >> (has_many ? 10 : 12); };
  if (is_enough()) return low;
  const BundleTable table(problem);
  low = std::min(high, std::max(low, slowest_bundle(table)));
  if (is_enough()) return low;
  // Prices of what single groups run are found faster than covers of them, but only of many bundles
  // and from near.
  constexpr std::int32_t max_covered = 24;
  const auto is_near = [&] { return high - low <= low / 50; };
  const bool has_few = has_few_in_a_group(problem, table);
  const bool is_priced = has_few && is_near() && table.num_bundles() > max_covered;
  low = bound_by_covers(problem, table, is_priced ? 1 : 0, low, high, std::min(useful, high - 1));
  return has_few && is_near() ? rank_bound(table, problem.num_ranks(), low, high) : low;
}

}  // namespace isochron
