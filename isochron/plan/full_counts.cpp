#include "isochron/plan/full_counts.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "isochron/pack/bounds.h"

namespace isochron {

namespace {

std::int64_t ceil_divided(std::int64_t dividend, std::int64_t divisor) {
  return (dividend + divisor - 1) / divisor;
}

// Sizes of groups that hold some of the items.
std::vector<std::int32_t> useful_sizes(const Problem& problem, std::span<const ItemId> items) {
  std::vector<std::int32_t> sizes;
  for (const std::int32_t size : problem.sizes()) {
    const bool is_useful = std::any_of(items.begin(), items.end(),
                                       [&](ItemId item) { return problem.item_fits(size, item); });
    if (is_useful) sizes.push_back(size);
  }
  return sizes;
}

// Items that do not have a slot to themselves.
std::vector<ItemId> items_with_others(const Problem& problem) {
  // A bundle that keeps its ranks stays with an item that has all of them.
  const bool have_slots =
      problem.alone_size() == problem.num_ranks() && problem.num_bundles() == problem.num_items();
  std::vector<ItemId> items;
  for (ItemId item = 0; item < problem.num_items(); ++item) {
    if (!have_slots || !problem.is_alone(item)) items.push_back(item);
  }
  return items;
}

// How many groups of a slot can make up all ranks.
struct GroupCounts {
  std::int32_t fewest = 0;
  std::int32_t most = 0;
};

// Nothing if none can.
std::optional<GroupCounts> groups_of_all_ranks(const Problem& problem,
                                               const std::vector<std::int32_t>& sizes) {
  std::vector<std::optional<GroupCounts>> counts(static_cast<std::size_t>(problem.num_ranks()) + 1);
  counts.front() = GroupCounts{};
  for (std::int32_t first = 0; first < problem.num_ranks(); ++first) {
    const auto before = counts[static_cast<std::size_t>(first)];
    if (!before) continue;
    for (const std::int32_t size : sizes) {
      if (first % problem.first_step(size) != 0 || first + size > problem.num_ranks()) continue;
      if (problem.price_of({.first = first, .size = size}) < 0) continue;
      auto& after = counts[static_cast<std::size_t>(first) + static_cast<std::size_t>(size)];
      if (!after) after = {.fewest = before->fewest + 1, .most = before->most + 1};
      after->fewest = std::min(after->fewest, before->fewest + 1);
      after->most = std::max(after->most, before->most + 1);
    }
  }
  return counts.back();
}

// Of items that stand in groups of one size.
std::int64_t fewest_of_size(const Problem& problem, std::span<const ItemId> items,
                            std::int32_t size) {
  std::vector<Tokens> tokens;
  for (const ItemId item : items) tokens.push_back(problem.tokens(size, item));
  return count_bound(tokens, problem.capacity() * size);
}

// Micro-batches that sequences need at least.
std::int64_t fewest_of_sequences(const Problem& problem, std::span<const ItemId> items) {
  if (problem.options().max_sequences == 0) return 1;
  std::int64_t num_sequences = 0;
  for (const ItemId item : items) num_sequences += problem.num_sequences(item);
  return ceil_divided(num_sequences, problem.options().max_sequences);
}

// What a number of slots has to keep.
struct SlotLimits {
  std::int64_t fewest_slots = 1;
  std::int64_t most_slots = 0;
  std::int64_t fewest_groups = 1;
};

// A bundle that keeps its ranks has one micro-batch in a slot.
void limit_by_bundles(const Problem& problem, const GroupCounts& counts, SlotLimits& limits) {
  std::vector<std::int64_t> sizes;
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    const auto items = problem.items_of(bundle);
    sizes.push_back(std::ssize(items));
    limits.fewest_slots = std::max(limits.fewest_slots, fewest_of_sequences(problem, items));
  }
  // Whatever the largest ones fill, the others have to fill the rest of every slot.
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  std::int64_t left = problem.num_items();
  for (std::int32_t i = 0; i < counts.fewest; ++i) {
    limits.most_slots = std::min(limits.most_slots, left / (counts.fewest - i));
    if (i < std::ssize(sizes)) left -= sizes[static_cast<std::size_t>(i)];
  }
}

// Micro-batches that the items of the first bundles need at least, on groups of these sizes.
class FewestOfFirst {
 public:
  FewestOfFirst(const Problem& problem, std::vector<std::int32_t> sizes)
      : problem_(problem), sizes_(std::move(sizes)) {}

  std::int64_t groups(BundleId num_bundles) const {
    const std::vector<ItemId> items = items_of(num_bundles);
    const std::int64_t fewest = fewest_of_sequences(problem_, items);
    return sizes_.size() > 1 ? fewest
                             : std::max(fewest, fewest_of_size(problem_, items, sizes_.front()));
  }

  // The most bundles, fewer than `high`, that need no more; none if even one does.
  BundleId most_bundles(std::int64_t num_groups, BundleId high) const {
    BundleId low = 0;
    while (high - low > 1) {
      const BundleId middle = low + (high - low) / 2;
      (groups(middle) <= num_groups ? low : high) = middle;
    }
    return low;
  }

  std::int64_t num_items(BundleId num_bundles) const {
    std::int64_t count = 0;
    for (BundleId bundle = 0; bundle < num_bundles; ++bundle) {
      count += std::ssize(problem_.items_of(bundle));
    }
    return count;
  }

 private:
  std::vector<ItemId> items_of(BundleId num_bundles) const {
    std::vector<ItemId> items;
    for (BundleId bundle = 0; bundle < num_bundles; ++bundle) {
      const auto parts = problem_.items_of(bundle);
      items.insert(items.end(), parts.begin(), parts.end());
    }
    return items;
  }

  const Problem& problem_;
  std::vector<std::int32_t> sizes_;
};

}  // namespace

bool are_full_slots_excluded(const Problem& problem) {
  const std::vector<ItemId> items = items_with_others(problem);
  const auto num_items = std::ssize(items);
  const std::int64_t num_alone = problem.num_items() - num_items;
  const std::int64_t multiple = problem.topology().pipeline.group;
  if (items.empty()) return num_alone % multiple != 0;
  const std::vector<std::int32_t> sizes = useful_sizes(problem, items);
  const auto counts = groups_of_all_ranks(problem, sizes);
  if (!counts) return true;
  SlotLimits limits{.most_slots = num_items / counts->fewest,
                    .fewest_groups = fewest_of_sequences(problem, items)};
  if (sizes.size() == 1) {
    limits.fewest_groups =
        std::max(limits.fewest_groups, fewest_of_size(problem, items, sizes.front()));
  }
  Tokens tokens = 0;
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    const bool is_alone = num_alone > 0 && problem.is_alone(problem.items_of(bundle).front());
    if (!is_alone) tokens += problem.least_tokens(bundle);
  }
  const Tokens of_a_rank = ceil_divided(tokens, problem.num_ranks());
  limits.fewest_slots = ceil_divided(of_a_rank, problem.capacity());
  if (problem.options().keep_groups == KeepGroups::rank) {
    limit_by_bundles(problem, *counts, limits);
  }
  const std::int64_t first = ceil_divided(limits.fewest_slots + num_alone, multiple) * multiple;
  for (std::int64_t all = first; all <= limits.most_slots + num_alone; all += multiple) {
    const std::int64_t count = all - num_alone;
    const std::int64_t fewest = std::max(count * counts->fewest, limits.fewest_groups);
    if (fewest <= std::min(count * counts->most, num_items)) return false;
  }
  return true;
}

BundleId most_bundles_of_full_slots(const Problem& problem) {
  const std::vector<ItemId> items = items_with_others(problem);
  BundleId most = problem.num_bundles() - 1;
  if (std::ssize(items) < problem.num_items()) return most;
  const std::vector<std::int32_t> sizes = useful_sizes(problem, items);
  // Fewer items may use fewer sizes, which make up the ranks in fewer ways.
  const auto counts = groups_of_all_ranks(problem, sizes);
  if (!counts) return 0;
  const FewestOfFirst fewest(problem, sizes);
  const std::int64_t multiple = problem.topology().pipeline.group;
  while (most > 0) {
    const std::int64_t slots = fewest.num_items(most) / counts->fewest / multiple * multiple;
    if (slots == 0) return 0;
    if (fewest.groups(most) <= slots * counts->most) return most;
    most = fewest.most_bundles(slots * counts->most, most);
  }
  return 0;
}

}  // namespace isochron
