#include "isochron/plan/steps/wide_groups.h"

#include <algorithm>

namespace isochron {

void WideGroups::reset(std::int32_t num_ranks) {
  groups.clear();
  height.assign(static_cast<std::size_t>(num_ranks), 0);
  top = 0;
}

void WideGroups::raise(RankRange ranks, Nanoseconds height_of_all) {
  const auto first = height.begin() + ranks.first;
  std::fill(first, first + ranks.size, height_of_all);
  top = std::max(top, height_of_all);
}

bool has_room(const Problem& problem, const WideGroup& group, ItemId item) {
  const auto size = static_cast<std::int32_t>(group.ranks.size);
  const std::int32_t limit = problem.options().max_sequences;
  return group.tokens + problem.tokens(size, item) <= problem.capacity() * size &&
         (limit == 0 || group.num_sequences + problem.num_sequences(item) <= limit);
}

bool can_join(const Problem& problem, const WideGroup& group, BundleId bundle) {
  const auto items = problem.items_of(bundle);
  return items.size() == 1 && has_room(problem, group, items.front());
}

void add_item(const Problem& problem, ItemId item, WideGroup& group) {
  group.items.push_back(item);
  group.tokens += problem.tokens(static_cast<std::int32_t>(group.ranks.size), item);
  group.num_sequences += problem.num_sequences(item);
}

std::int32_t open_groups(const Problem& problem, BundleId bundle, RankRange ranks,
                         std::vector<WideGroup>& groups) {
  const std::size_t begin = groups.size();
  for (const ItemId item : problem.items_of(bundle)) {
    std::size_t g = begin;
    while (g < groups.size() && !has_room(problem, groups[g], item)) ++g;
    if (g == groups.size()) groups.push_back({.ranks = ranks});
    add_item(problem, item, groups[g]);
  }
  return static_cast<std::int32_t>(groups.size() - begin);
}

}  // namespace isochron
