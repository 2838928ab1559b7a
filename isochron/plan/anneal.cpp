// Simulated annealing over lists of groups.
//
// A state is a list of micro-batches, each with its ranks, in the order in which ranks run them;
// slots follow from the order. A change moves a bundle into another micro-batch or a fresh one,
// exchanges two, gives a micro-batch other ranks, or moves it in the order; an item of a bundle
// changes its micro-batch on the same ranks.

#include "isochron/plan/anneal.h"

#include <algorithm>

#include "isochron/core/random.h"
#include "isochron/plan/cooling.h"

namespace isochron {

namespace {

class Annealing {
 public:
  Annealing(const Problem& problem, const DraftTime& time)
      : problem_(problem),
        time_(time),
        random_(7),
        bundle_of_(static_cast<std::size_t>(problem.num_items())),
        ranges_(admitted_ranges(problem)) {
    for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
      for (const ItemId item : problem.items_of(bundle))
        bundle_of_[static_cast<std::size_t>(item)] = bundle;
    }
  }

  DraftSlots run(const DraftSlots& start, Nanoseconds bound, double heat, std::int64_t num_trials) {
    Draft state;
    for (const auto& slot : start) {
      for (const DraftGroup& group : slot) {
        if (!group.items.empty()) state.groups.push_back(group);
      }
    }
    const Nanoseconds start_time = time_(state);
    Draft best = state;
    Nanoseconds best_time = start_time;
    Nanoseconds state_time = best_time;
    Draft next;
    constexpr std::int64_t num_rounds = 3;  // each begins hot, from the best so far
    const std::int64_t length = std::max<std::int64_t>(1, num_trials / num_rounds);
    // Then what is beside the best, which a hot round leaves at once.
    const std::int64_t num_hot = num_rounds * length;
    const std::int64_t num_all = num_trials + num_trials / 8;
    for (std::int64_t trial = 0; trial < num_all && best_time > bound; ++trial) {
      const bool is_cold = trial >= num_hot;
      const double cooled =
          is_cold ? 1 : static_cast<double>(trial % length) / static_cast<double>(length);
      if (is_cold ? trial == num_hot : trial % length == 0) {
        state = best;
        state_time = best_time;
      }
      next = state;  // keeps its memory
      if (!change(next)) continue;
      const Nanoseconds time = time_(next);
      // What is taken with even odds: down to a thousandth of what it was at first.
      const double even = heat * static_cast<double>(best_time) * halved(10 * cooled);
      const auto worse = static_cast<double>(time - state_time);
      if (worse > 0 && random_.unit() >= halved(worse / even)) continue;
      std::swap(state, next);
      state_time = time;
      if (state_time < best_time) {
        best = state;
        best_time = state_time;
      }
    }
    return best_time < start_time ? slots_of(problem_, best) : start;
  }

 private:
  std::size_t pick(std::size_t count) { return static_cast<std::size_t>(random_.below(count)); }

  bool has_room(const DraftGroup& group, ItemId item) const {
    const auto size = static_cast<std::int32_t>(group.ranks.size);
    if (!problem_.item_fits(size, item)) return false;
    Tokens tokens = problem_.tokens(size, item);
    std::int32_t sequences = problem_.num_sequences(item);
    for (const ItemId other : group.items) {
      tokens += problem_.tokens(size, other);
      sequences += problem_.num_sequences(other);
    }
    const std::int32_t limit = problem_.options().max_sequences;
    return tokens <= problem_.capacity() * size && (limit == 0 || sequences <= limit);
  }

  // Takes a bundle out of all micro-batches.
  void remove(BundleId bundle, Draft& draft) const {
    for (DraftGroup& group : draft.groups) {
      std::erase_if(group.items, [&](ItemId item) {
        return bundle_of_[static_cast<std::size_t>(item)] == bundle;
      });
    }
  }

  // Puts a bundle on these ranks: the first item into `into` if that has room, the others where
  // there is room, or into fresh micro-batches at the end.
  bool insert(BundleId bundle, RankRange ranks, std::size_t into, Draft& draft) {
    if (!problem_.fits(static_cast<std::int32_t>(ranks.size), bundle)) return false;
    for (const ItemId item : problem_.items_of(bundle)) {
      DraftGroup* home = nullptr;
      if (into < draft.groups.size() && draft.groups[into].ranks == ranks &&
          has_room(draft.groups[into], item)) {
        home = &draft.groups[into];
      }
      for (std::size_t g = 0; home == nullptr && g < draft.groups.size(); ++g) {
        // One item may open a micro-batch of its own; the rest of a bundle shares.
        const bool may_share = item != problem_.items_of(bundle).front();
        if (may_share && draft.groups[g].ranks == ranks && !draft.groups[g].items.empty() &&
            has_room(draft.groups[g], item)) {
          home = &draft.groups[g];
        }
      }
      if (home == nullptr) {
        const std::size_t place = pick(draft.groups.size() + 1);
        home = &*draft.groups.insert(draft.groups.begin() + static_cast<std::ptrdiff_t>(place),
                                     {.ranks = ranks});
        if (place <= into) ++into;
      }
      home->items.push_back(item);
    }
    return true;
  }

  // Puts an item into another micro-batch on the same ranks that has room, or into a fresh one.
  bool move_part(Draft& draft) {
    const std::size_t from = pick(draft.groups.size());
    const RankRange ranks = draft.groups[from].ranks;
    const std::size_t place = pick(draft.groups[from].items.size());
    const ItemId item = draft.groups[from].items[place];
    std::vector<std::size_t> homes;
    for (std::size_t g = 0; g < draft.groups.size(); ++g) {
      if (g != from && draft.groups[g].ranks == ranks && has_room(draft.groups[g], item)) {
        homes.push_back(g);
      }
    }
    if (homes.empty() && draft.groups[from].items.size() == 1) return false;
    const std::size_t home = pick(homes.size() + 1);
    draft.groups[from].items.erase(draft.groups[from].items.begin() +
                                   static_cast<std::ptrdiff_t>(place));
    if (home < homes.size()) {
      draft.groups[homes[home]].items.push_back(item);
      return true;
    }
    const std::size_t at = pick(draft.groups.size() + 1);
    draft.groups.insert(draft.groups.begin() + static_cast<std::ptrdiff_t>(at),
                        {.ranks = ranks, .items = {item}});
    return true;
  }

  static void drop_empty(Draft& draft) {
    std::erase_if(draft.groups, [](const DraftGroup& group) { return group.items.empty(); });
  }

  bool change(Draft& draft) {
    const std::size_t count = draft.groups.size();
    const bool has_parts = problem_.num_bundles() < problem_.num_items();
    switch (random_.below(has_parts ? 7 : 6)) {
      case 0: {  // a bundle into another micro-batch
        const auto bundle =
            static_cast<BundleId>(pick(static_cast<std::size_t>(problem_.num_bundles())));
        const std::size_t into = pick(count);
        remove(bundle, draft);
        const RankRange ranks = draft.groups[into].ranks;
        if (!insert(bundle, ranks, into, draft)) return false;
        break;
      }
      case 1: {  // a bundle into a fresh one
        const auto bundle =
            static_cast<BundleId>(pick(static_cast<std::size_t>(problem_.num_bundles())));
        remove(bundle, draft);
        if (!insert(bundle, ranges_[pick(ranges_.size())], draft.groups.size(), draft))
          return false;
        break;
      }
      case 2: {  // two bundles change places
        const auto a =
            static_cast<BundleId>(pick(static_cast<std::size_t>(problem_.num_bundles())));
        const auto b =
            static_cast<BundleId>(pick(static_cast<std::size_t>(problem_.num_bundles())));
        const auto find = [&](BundleId bundle) {
          const ItemId item = problem_.items_of(bundle).front();
          return static_cast<std::size_t>(
              std::find_if(draft.groups.begin(), draft.groups.end(),
                           [&](const DraftGroup& group) {
                             return std::find(group.items.begin(), group.items.end(), item) !=
                                    group.items.end();
                           }) -
              draft.groups.begin());
        };
        const std::size_t at_a = find(a);
        const std::size_t at_b = find(b);
        if (at_a == at_b) return false;
        const RankRange ranks_a = draft.groups[at_a].ranks;
        const RankRange ranks_b = draft.groups[at_b].ranks;
        remove(a, draft);
        remove(b, draft);
        const std::size_t before = draft.groups.size();
        if (!insert(a, ranks_b, at_b, draft) || draft.groups.size() != before) return false;
        if (!insert(b, ranks_a, at_a, draft) || draft.groups.size() != before) return false;
        break;
      }
      case 3:
      case 4: {  // other ranks for a micro-batch
        DraftGroup& group = draft.groups[pick(count)];
        if (problem_.options().keep_groups == KeepGroups::rank) {
          const BundleId bundle = bundle_of_[static_cast<std::size_t>(group.items.front())];
          const RankRange ranks = ranges_[pick(ranges_.size())];
          remove(bundle, draft);
          if (!insert(bundle, ranks, draft.groups.size(), draft)) return false;
          break;
        }
        const std::vector<ItemId> items = std::move(group.items);
        group.items.clear();
        group.ranks = ranges_[pick(ranges_.size())];
        for (const ItemId item : items) {
          if (!has_room(group, item)) return false;
          group.items.push_back(item);
        }
        break;
      }
      case 6:
        if (!move_part(draft)) return false;
        break;
      default: {  // another place in the order
        const std::size_t from = pick(count);
        const std::size_t to = pick(count);
        const DraftGroup group = draft.groups[from];
        draft.groups.erase(draft.groups.begin() + static_cast<std::ptrdiff_t>(from));
        draft.groups.insert(draft.groups.begin() + static_cast<std::ptrdiff_t>(to), group);
        break;
      }
    }
    drop_empty(draft);
    return true;
  }

  const Problem& problem_;
  const DraftTime& time_;
  Random random_;
  std::vector<BundleId> bundle_of_;
  std::vector<RankRange> ranges_;
};

}  // namespace

bool is_annealed(const Problem& problem) {
  constexpr std::int32_t max_items = 24;
  constexpr std::int32_t max_ranks_here = 64;
  return problem.num_items() <= max_items && problem.num_ranks() <= max_ranks_here;
}

DraftSlots anneal(const Problem& problem, const DraftSlots& slots, Nanoseconds bound, double heat,
                  std::int64_t num_trials, const DraftTime& time) {
  return Annealing(problem, time).run(slots, bound, heat, num_trials);
}

}  // namespace isochron
