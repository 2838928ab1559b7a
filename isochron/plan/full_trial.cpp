// Depth first: the ranks of a slot from the first on, each time a group of some size with one item;
// when all slots are full, what is left joins the groups that have room. For every number of slots.

#include "isochron/plan/full_trial.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace isochron {

namespace {

class FullTrial {
 public:
  FullTrial(const Problem& problem, std::int64_t work)
      : problem_(problem),
        is_kept_(problem.options().keep_groups == KeepGroups::rank),
        is_left_(static_cast<std::size_t>(problem.num_items()), true),
        num_left_(problem.num_items()),
        bundle_of_(is_left_.size()),
        ranks_of_(static_cast<std::size_t>(problem.num_bundles())),
        work_(work) {
    for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
      for (const ItemId item : problem.items_of(bundle)) {
        bundle_of_[static_cast<std::size_t>(item)] = static_cast<std::size_t>(bundle);
      }
    }
  }

  bool is_spent() const { return work_ <= 0; }

  std::optional<DraftSlots> find(std::int32_t num_slots) {
    num_slots_ = num_slots;
    slots_.assign(1, {});
    if (!fill_from(0)) return std::nullopt;
    return std::move(slots_);
  }

 private:
  // Whether the ranks from `first` on, and all slots after this one, get something.
  bool fill_from(std::int64_t first) {
    if (first == problem_.num_ranks()) {
      if (std::ssize(slots_) == num_slots_) return has_room_for_rest();
      slots_.emplace_back();
      if (fill_from(0)) return true;
      slots_.pop_back();
      return false;
    }
    if (num_left_ < num_slots_ - std::ssize(slots_) + 1) return false;
    for (const std::int32_t size : problem_.sizes()) {
      const RankRange ranks{.first = first, .size = size};
      if (first + size > problem_.num_ranks()) break;
      if (first % problem_.first_step(size) != 0 || problem_.price_of(ranks) < 0) continue;
      for (ItemId item = 0; item < problem_.num_items(); ++item) {
        if (!is_left_[static_cast<std::size_t>(item)] || is_like_one_before(item)) continue;
        if (!problem_.item_fits(size, item) || !may_be_on(item, ranks)) continue;
        if (is_filled_with(item, ranks)) return true;
        if (is_spent()) return false;
      }
    }
    return false;
  }

  bool is_filled_with(ItemId item, RankRange ranks) {
    --work_;
    take(item, ranks);
    slots_.back().push_back({.ranks = ranks, .items = {item}});
    if (fill_from(ranks.first + ranks.size)) return true;
    slots_.back().pop_back();
    give_back(item);
    return false;
  }

  // Items that stay with nothing differ in their tokens alone.
  bool is_like_one_before(ItemId item) const {
    if (problem_.num_bundles() != problem_.num_items()) return false;
    for (ItemId other = 0; other < item; ++other) {
      if (is_left_[static_cast<std::size_t>(other)] &&
          problem_.is_alone(other) == problem_.is_alone(item) &&
          problem_.num_sequences(other) == problem_.num_sequences(item) &&
          problem_.tokens(1, other) == problem_.tokens(1, item)) {
        return true;
      }
    }
    return false;
  }

  struct Kept {
    RankRange ranks = {};
    std::int32_t num_items = 0;  // there
  };
  Kept& kept_of(ItemId item) { return ranks_of_[bundle_of_[static_cast<std::size_t>(item)]]; }

  bool may_be_on(ItemId item, RankRange ranks) {
    const Kept& kept = kept_of(item);
    return !is_kept_ || kept.num_items == 0 || kept.ranks == ranks;
  }
  void take(ItemId item, RankRange ranks) {
    is_left_[static_cast<std::size_t>(item)] = false;
    --num_left_;
    Kept& kept = kept_of(item);
    kept.ranks = ranks;
    ++kept.num_items;
  }
  void give_back(ItemId item) {
    is_left_[static_cast<std::size_t>(item)] = true;
    ++num_left_;
    --kept_of(item).num_items;
  }

  bool has_room(const DraftGroup& group, ItemId item) const {
    const auto size = static_cast<std::int32_t>(group.ranks.size);
    if (!problem_.item_fits(size, item) || problem_.is_alone(item)) return false;
    Tokens tokens = problem_.tokens(size, item);
    std::int64_t num_sequences = problem_.num_sequences(item);
    for (const ItemId other : group.items) {
      if (problem_.is_alone(other)) return false;
      tokens += problem_.tokens(size, other);
      num_sequences += problem_.num_sequences(other);
    }
    const std::int32_t most = problem_.options().max_sequences;
    return tokens <= problem_.capacity() * size && (most == 0 || num_sequences <= most);
  }

  // Longest first, each into the first group that has room; leaves all as it was if one has none.
  bool has_room_for_rest() {
    std::vector<ItemId> rest;
    for (ItemId item = 0; item < problem_.num_items(); ++item) {
      if (is_left_[static_cast<std::size_t>(item)]) rest.push_back(item);
    }
    std::stable_sort(rest.begin(), rest.end(), [&](ItemId a, ItemId b) {
      return problem_.tokens(1, a) > problem_.tokens(1, b);
    });
    const DraftSlots before = slots_;
    for (std::size_t i = 0; i < rest.size(); ++i) {
      if (joins(rest[i])) continue;
      for (std::size_t k = 0; k < i; ++k) give_back(rest[k]);
      slots_ = before;
      return false;
    }
    return true;
  }
  bool joins(ItemId item) {
    --work_;
    for (auto& slot : slots_) {
      for (DraftGroup& group : slot) {
        if (!may_be_on(item, group.ranks) || !has_room(group, item)) continue;
        group.items.push_back(item);
        take(item, group.ranks);
        return true;
      }
    }
    return false;
  }

  const Problem& problem_;
  bool is_kept_;
  std::vector<bool> is_left_;  // of each item
  std::int32_t num_left_;
  std::vector<std::size_t> bundle_of_;
  std::vector<Kept> ranks_of_;  // of each bundle
  std::int64_t work_;
  std::int32_t num_slots_ = 0;
  DraftSlots slots_;
};

}  // namespace

std::optional<DraftSlots> try_full_slots(const Problem& problem, std::int32_t multiple,
                                         std::int64_t work) {
  // Each number of slots gets its part: one that takes all of it may be impossible.
  const std::int32_t num_counts = problem.num_items() / multiple;
  for (std::int32_t count = num_counts; work > 0 && count >= 1; --count) {
    FullTrial trial(problem, work / num_counts);
    if (auto slots = trial.find(count * multiple)) return slots;
  }
  return std::nullopt;
}

}  // namespace isochron
