#include "isochron/plan/bundles/tight_sets.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace isochron {

std::vector<TightSet> find_tight_sets(const BundleTable& table, Nanoseconds least,
                                      Nanoseconds latest) {
  std::vector<std::pair<Nanoseconds, BundleId>> by_cost;
  for (BundleId bundle = 0; bundle < table.num_bundles(); ++bundle) {
    if (table.fits(0, bundle)) by_cost.emplace_back(table.use(0, bundle).cost, bundle);
  }
  std::sort(by_cost.begin(), by_cost.end());
  const std::size_t count = by_cost.size();
  // Those that make a pair with one stand in a row.
  struct Row {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  std::vector<Row> rows(count);
  std::vector<std::size_t> num_left(count, 0);
  std::vector<bool> is_left(count, true);
  const auto first_from = [&](Nanoseconds cost) {
    return static_cast<std::size_t>(
        std::lower_bound(by_cost.begin(), by_cost.end(), std::pair(cost, BundleId{0})) -
        by_cost.begin());
  };
  for (std::size_t i = 0; i < count; ++i) {
    const Nanoseconds own = by_cost[i].first + table.fixed(0);
    rows[i] = {.begin = first_from(least - own), .end = first_from(latest - own + 1)};
    num_left[i] = rows[i].end - rows[i].begin;
    if (rows[i].begin <= i && i < rows[i].end) --num_left[i];
  }
  const auto take = [&](std::size_t i) {
    is_left[i] = false;
    for (std::size_t j = rows[i].begin; j < rows[i].end; ++j) {
      if (j != i) --num_left[j];
    }
  };
  std::vector<TightSet> sets;
  while (true) {
    std::size_t fewest = count;
    for (std::size_t i = 0; i < count; ++i) {
      if (!is_left[i] || num_left[i] == 0) continue;
      if (fewest == count || num_left[i] < num_left[fewest]) fewest = i;
    }
    if (fewest == count) break;
    std::size_t other = count;
    for (std::size_t j = rows[fewest].begin; j < rows[fewest].end; ++j) {
      if (j == fewest || !is_left[j]) continue;
      if (other == count || num_left[j] < num_left[other]) other = j;
    }
    take(fewest);
    take(other);
    sets.push_back({by_cost[fewest].second, by_cost[other].second});
  }
  // Triples of the others: for each the next two, closing in from both sides.
  for (std::size_t i = 0; i + 2 < count; ++i) {
    std::size_t j = i + 1;
    std::size_t k = count - 1;
    while (is_left[i] && j < k) {
      if (!is_left[j]) {
        ++j;
        continue;
      }
      const Nanoseconds time =
          by_cost[i].first + by_cost[j].first + by_cost[k].first + table.fixed(0);
      if (!is_left[k] || time > latest) {
        --k;
      } else if (time < least) {
        ++j;
      } else {
        is_left[i] = is_left[j] = is_left[k] = false;
        sets.push_back({by_cost[i].second, by_cost[j].second, by_cost[k].second});
      }
    }
  }
  return sets;
}

}  // namespace isochron
