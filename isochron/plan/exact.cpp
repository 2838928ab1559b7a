// With aligned groups that nest, let every rank run its widest groups first: then no rank ever
// waits, and the step is the largest sum from the root of the tree of groups to a leaf. So for a
// set S of items on a block of c ranks
//   f(S, c) = min over U of own(U, c) + min over A of max(f(A, c/2), f(S - U - A, c/2)),
// where own(U, c) runs U on the whole block in the best micro-batches. The same with bundles for
// items, which keep their ranks; how many micro-batches they fill follows from their tokens then.
//
// With a barrier after every slot, a slot on r ranks takes
//   F(S, r) = min over B, c of max(time(B, c), F(S - B, r - c)),
// one micro-batch B on c ranks beside the rest, and a step is a partition of all items into slots.
// Where places differ these are the first r ranks, and B runs on the last c of them.

#include "isochron/plan/exact.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/set_costs.h"

namespace isochron {

namespace {

using Set = ItemSet;

constexpr Nanoseconds never = cannot_run;
constexpr std::int32_t max_items = 10;

// Every bundle is one item.
bool is_plain(const Problem& problem) { return problem.num_items() == problem.num_bundles(); }

bool is_small(const Problem& problem) {
  return problem.num_bundles() <= max_items && !problem.has_speeds() &&
         has_one_price(problem, problem.sizes());
}

// The same of bundles that have several items, but for the bins: as many as their tokens fill.
SetCosts bundle_costs(const Problem& problem, std::int32_t size) {
  const auto count = static_cast<std::size_t>(1) << problem.num_bundles();
  const Price& price = problem.price(problem.cheapest_price(size));
  const Tokens capacity = problem.capacity() * size;
  const std::int32_t limit = problem.options().max_sequences;
  SetCosts costs;
  costs.all.assign(count, never);
  costs.all[0] = 0;
  std::vector<Nanoseconds> sums(count, 0);
  std::vector<Tokens> tokens(count, 0);
  std::vector<std::int32_t> sequences(count, 0);
  for (Set set = 1; set < count; ++set) {
    const Set rest = set & (set - 1);
    const auto bundle = static_cast<BundleId>(std::countr_zero(set));
    if (costs.all[rest] >= never || !problem.fits(size, bundle)) continue;
    sums[set] = sums[rest] + problem.cost(problem.cheapest_price(size), bundle);
    tokens[set] = tokens[rest];
    sequences[set] = sequences[rest];
    for (const ItemId item : problem.items_of(bundle)) {
      tokens[set] += problem.tokens(size, item);
      sequences[set] += problem.num_sequences(item);
    }
    Tokens bins = (tokens[set] + capacity - 1) / capacity;
    if (limit > 0) bins = std::max<Tokens>(bins, (sequences[set] + limit - 1) / limit);
    costs.all[set] = sums[set] + bins * price.fixed;
  }
  return costs;
}

// The micro-batches of a set on a group of `size`.
std::vector<std::vector<ItemId>> bins_of(const Problem& problem, const SetCosts& costs,
                                         std::int32_t size, Set set) {
  std::vector<std::vector<ItemId>> bins;
  if (is_plain(problem)) {
    for (Set rest = set; rest != 0; rest ^= costs.first_bin[rest]) {
      bins.push_back(items_of(costs.first_bin[rest]));
    }
    return bins;
  }
  std::vector<ItemId> items;
  for (const BundleId bundle : items_of(set)) {
    const auto more = problem.items_of(bundle);
    items.insert(items.end(), more.begin(), more.end());
  }
  std::stable_sort(items.begin(), items.end(), [&](ItemId a, ItemId b) {
    return problem.tokens(size, a) > problem.tokens(size, b);
  });
  return first_fit(problem, size, items);
}

// One level of the tree of blocks.
struct Level {
  std::int32_t size = 1;
  std::optional<SetCosts> costs;  // none: no group has this size
  std::vector<Nanoseconds> best;  // f
  std::vector<Set> own;           // the best U
  std::vector<Set> left;          // the best A, of what U leaves
};

void collect(const Problem& problem, const std::vector<Level>& levels, std::size_t index, Set set,
             std::int64_t first, Draft& draft) {
  if (set == 0) return;
  const Level& level = levels[index];
  const Set own = level.own[set];
  if (own != 0) {
    for (auto& items : bins_of(problem, *level.costs, level.size, own)) {
      draft.groups.push_back(
          {.ranks = {.first = first, .size = level.size}, .items = std::move(items)});
    }
  }
  if (index == 0) return;
  const Set left = level.left[set];
  collect(problem, levels, index - 1, left, first, draft);
  collect(problem, levels, index - 1, set ^ own ^ left, first + levels[index - 1].size, draft);
}

}  // namespace

std::optional<ExactStep> find_exact_step(const Problem& problem) {
  const auto sizes = problem.sizes();
  const std::int32_t blocks = problem.num_ranks() / sizes.front();
  const bool is_nested =
      problem.is_aligned() && problem.num_ranks() % sizes.front() == 0 &&
      std::has_single_bit(static_cast<std::uint32_t>(blocks)) &&
      std::all_of(sizes.begin(), sizes.end(), [&](std::int32_t size) {
        return size % sizes.front() == 0 &&
               std::has_single_bit(static_cast<std::uint32_t>(size / sizes.front()));
      });
  // Exchanges are chosen by micro-batch, which bundles do not know.
  const bool is_priced = is_plain(problem) || problem.order().has_one_exchange;
  if (!is_small(problem) || !is_nested || !is_priced) return std::nullopt;
  const Set all = (Set{1} << problem.num_bundles()) - 1;
  std::vector<Level> levels;
  for (std::int32_t size = sizes.front(); size <= problem.num_ranks(); size *= 2) {
    Level level{.size = size, .costs = {}, .best = {}, .own = {}, .left = {}};
    if (std::find(sizes.begin(), sizes.end(), size) != sizes.end()) {
      level.costs = is_plain(problem) ? set_costs(problem, {.first = 0, .size = size})
                                      : bundle_costs(problem, size);
    }
    level.best.assign(all + 1, never);
    level.own.assign(all + 1, 0);
    level.left.assign(all + 1, 0);
    level.best[0] = 0;
    if (levels.empty()) {
      for (Set set = 1; set <= all; ++set) {
        level.best[set] = level.costs->all[set];
        level.own[set] = set;
      }
    } else {
      const std::vector<Nanoseconds>& half = levels.back().best;
      std::vector<Nanoseconds> split(all + 1, never);  // over the two halves of the block
      std::vector<Set> split_left(all + 1, 0);
      split[0] = 0;
      for (Set set = 1; set <= all; ++set) {
        const Set rest = set & (set - 1);
        for (Set with = rest;; with = (with - 1) & rest) {
          const Set left = (set ^ rest) | with;  // halves are alike: the lowest item is on the left
          const Nanoseconds time = std::max(half[left], half[set ^ left]);
          if (time < split[set]) {
            split[set] = time;
            split_left[set] = left;
          }
          if (with == 0) break;
        }
      }
      for (Set set = 1; set <= all; ++set) {
        level.best[set] = split[set];
        level.left[set] = split_left[set];
        if (!level.costs) continue;
        for (Set own = set; own != 0; own = (own - 1) & set) {
          const Nanoseconds time = std::min(never, level.costs->all[own] + split[set ^ own]);
          if (time < level.best[set]) {
            level.best[set] = time;
            level.own[set] = own;
            level.left[set] = split_left[set ^ own];
          }
        }
      }
    }
    levels.push_back(std::move(level));
  }
  if (levels.back().best[all] >= never) return std::nullopt;
  ExactStep step;
  step.bound = levels.back().best[all];
  collect(problem, levels, levels.size() - 1, all, 0, step.draft);
  step.draft.time = step_time(problem, step.draft);
  return step;
}

namespace {

constexpr std::int32_t max_slot_ranks = 16;

// What each set of items takes in one slot at least, and the groups that run it so.
struct OneSlot {
  std::vector<Nanoseconds> times;
  std::function<std::vector<DraftGroup>(Set)> groups;
};

// Whether groups cost the same wherever they are, and fit side by side as soon as their sizes add
// up.
bool are_places_alike(const Problem& problem) {
  const auto sizes = problem.sizes();
  if (!has_one_price(problem, sizes)) return false;
  if (!problem.is_aligned()) return true;
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    if (sizes[i] % sizes[i - 1] != 0) return false;
  }
  return problem.num_ranks() % sizes.back() == 0;
}

OneSlot slot_of_sizes(const Problem& problem, SlotRanks used) {
  const auto sizes = problem.sizes();
  const Set all = (Set{1} << problem.num_items()) - 1;
  std::vector<SetCosts> costs;
  for (const std::int32_t size : sizes) {
    costs.push_back(set_costs(problem, {.first = 0, .size = size}));
  }
  struct Choice {
    Nanoseconds time = never;
    Set bin = 0;
    std::int32_t size = 0;
  };
  const auto ranks = static_cast<std::size_t>(problem.num_ranks());
  std::vector<std::vector<Choice>> slot(ranks + 1, std::vector<Choice>(all + 1));
  for (std::size_t r = 0; r <= ranks; ++r) {
    if (r == 0 || used == SlotRanks::some) slot[r][0].time = 0;
    for (Set set = 1; set <= all; ++set) {
      // What a bin leaves is without the lowest item of all.
      if ((set & 1) != 0 && r < ranks) continue;
      Choice& best = slot[r][set];
      const Set rest = set & (set - 1);
      const Set low = set ^ rest;
      for (std::size_t p = 0; p < sizes.size() && static_cast<std::size_t>(sizes[p]) <= r; ++p) {
        const auto left = r - static_cast<std::size_t>(sizes[p]);
        for (Set with = rest;; with = (with - 1) & rest) {
          const Set bin = low | with;
          const Nanoseconds own = costs[p].one[bin];
          if (own < best.time) {
            const Nanoseconds time = std::max(own, slot[left][set ^ bin].time);
            if (time < best.time) best = {.time = time, .bin = bin, .size = sizes[p]};
          }
          if (with == 0) break;
        }
      }
    }
  }
  OneSlot result;
  for (const Choice& choice : slot[ranks]) result.times.push_back(choice.time);
  result.groups = [slot = std::move(slot)](Set set) {
    std::vector<DraftGroup> groups;
    for (std::size_t r = slot.size() - 1; set != 0;) {
      const Choice& choice = slot[r][set];
      groups.push_back({.ranks = {.first = 0, .size = choice.size}, .items = items_of(choice.bin)});
      set ^= choice.bin;
      r -= static_cast<std::size_t>(choice.size);
    }
    // Widest first, so that aligned groups follow each other.
    std::stable_sort(groups.begin(), groups.end(), [](const DraftGroup& a, const DraftGroup& b) {
      return a.ranks.size > b.ranks.size;
    });
    std::int64_t first = 0;
    for (DraftGroup& group : groups) {
      group.ranks.first = first;
      first += group.ranks.size;
    }
    return groups;
  };
  return result;
}

// From the first rank to the last: the last one of those so far idles, or ends a group.
OneSlot slot_of_places(const Problem& problem, const std::vector<RankRange>& ranges,
                       SlotRanks used) {
  const Set all = (Set{1} << problem.num_items()) - 1;
  struct Choice {
    Nanoseconds time = never;
    Set bin = 0;            // of the group that ends with the rank
    std::int64_t size = 1;  // of that group; 1 if the rank idles
  };
  const auto ranks = static_cast<std::size_t>(problem.num_ranks());
  std::vector<std::vector<Choice>> slot(ranks + 1, std::vector<Choice>(all + 1));
  slot[0][0].time = 0;
  std::map<PriceId, std::vector<Nanoseconds>> known;  // where one exchange is all there is
  for (std::size_t r = 1; r <= ranks; ++r) {
    if (used == SlotRanks::some) {
      for (Set set = 0; set <= all; ++set) slot[r][set].time = slot[r - 1][set].time;
    }
    for (const RankRange& range : ranges) {
      if (static_cast<std::size_t>(range.first + range.size) != r) continue;
      const PriceId price = problem.price_of(range);
      std::vector<Nanoseconds>& costs = known[price];
      if (costs.empty() || !problem.order().has_one_exchange) costs = set_costs(problem, range).one;
      const auto& before = slot[static_cast<std::size_t>(range.first)];
      for (Set bin = 1; bin <= all; ++bin) {
        if (costs[bin] >= never) continue;
        const Set others = all ^ bin;
        for (Set rest = others;; rest = (rest - 1) & others) {
          const Nanoseconds time = std::max(costs[bin], before[rest].time);
          Choice& best = slot[r][rest | bin];
          if (time < best.time) best = {.time = time, .bin = bin, .size = range.size};
          if (rest == 0) break;
        }
      }
    }
  }
  OneSlot result;
  for (const Choice& choice : slot[ranks]) result.times.push_back(choice.time);
  result.groups = [slot = std::move(slot)](Set set) {
    std::vector<DraftGroup> groups;
    for (std::size_t r = slot.size() - 1; set != 0;) {
      const Choice& choice = slot[r][set];
      r -= static_cast<std::size_t>(choice.size);
      if (choice.bin == 0) continue;
      groups.push_back({.ranks = {.first = static_cast<std::int64_t>(r), .size = choice.size},
                        .items = items_of(choice.bin)});
      set ^= choice.bin;
    }
    std::reverse(groups.begin(), groups.end());
    return groups;
  };
  return result;
}

std::optional<OneSlot> find_one_slot(const Problem& problem, SlotRanks used) {
  const bool is_few = problem.num_items() <= max_items && is_plain(problem) &&
                      !problem.has_speeds() && problem.num_ranks() <= max_slot_ranks;
  if (!is_few) return std::nullopt;
  if (are_places_alike(problem)) return slot_of_sizes(problem, used);
  // 3^n for each range of ranks, about a nanosecond each.
  constexpr std::size_t max_work = 2'500'000;
  const std::vector<RankRange> ranges = admitted_ranges(problem);
  std::size_t work = ranges.size();
  for (ItemId item = 0; item < problem.num_items(); ++item) work *= 3;
  if (work > max_work) return std::nullopt;
  return slot_of_places(problem, ranges, used);
}

}  // namespace

std::optional<SlotDraft> find_exact_slots(const Problem& problem, SlotRanks used) {
  const auto slot = find_one_slot(problem, used);
  if (!slot) return std::nullopt;
  const Set all = (Set{1} << problem.num_items()) - 1;
  std::vector<Nanoseconds> total(all + 1, never);
  std::vector<Set> last(all + 1, 0);
  total[0] = 0;
  for (Set set = 1; set <= all; ++set) {
    const Set rest = set & (set - 1);
    const Set low = set ^ rest;
    for (Set with = rest;; with = (with - 1) & rest) {
      const Set part = low | with;
      const Nanoseconds time = std::min(never, slot->times[part] + total[set ^ part]);
      if (time < total[set]) {
        total[set] = time;
        last[set] = part;
      }
      if (with == 0) break;
    }
  }
  if (total[all] >= never) return std::nullopt;
  SlotDraft draft;
  draft.time = total[all];
  for (Set set = all; set != 0; set ^= last[set]) draft.slots.push_back(slot->groups(last[set]));
  return draft;
}

}  // namespace isochron
