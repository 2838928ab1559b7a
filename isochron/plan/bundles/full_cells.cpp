// Bundles that need about equally many ranks are dealt into cells together: dearest first by what
// they take of all ranks, then the cells get ranks by what they run. That tells about what so many
// cells take in so many slots; of the best the items are spread over the slots. Which bundles run
// beside each other, and which after them, is chosen last. The cheapest of those that need the
// fewest ranks also stands apart: the ranks that wider cells leave over take no others.

#include "isochron/plan/bundles/full_cells.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "isochron/balance/assignment.h"
#include "isochron/plan/slots/rank_tiler.h"

namespace isochron {

namespace {

// What one cell runs.
struct Pile {
  std::vector<BundleId> bundles = {};
  double area = 0;
  std::int32_t num_items = 0;
  std::int32_t num_sequences = 0;
};

// Bundles on cells, in so many slots.
struct Cut {
  double likely_time = 0;
  std::int32_t num_slots = 0;
  std::vector<Pile> piles = {};
  std::vector<RankRange> ranges = {};  // of the piles
};

// Slots, and about the time that they take.
struct Part {
  double time = std::numeric_limits<double>::infinity();
  DraftSlots slots = {};
};

class FullCells {
 public:
  FullCells(const Problem& problem, std::int32_t multiple)
      : problem_(problem), multiple_(multiple), tiler_(problem), bundles_(find_bundles()) {}

  // By the parts that the bundles run in: those that need the most ranks last.
  std::optional<DraftSlots> run() const {
    const std::vector<std::vector<BundleId>> classes = size_classes();
    std::vector<Part> best(classes.size() + 1);  // of the first classes
    best[0].time = 0;
    for (std::size_t last = 1; last <= classes.size(); ++last) {
      std::vector<BundleId> others;  // than those of the first class
      for (std::size_t first = last; first-- > 0;) {
        const Part part =
            best[first].time < best[last].time ? best_part(classes[first], others) : Part{};
        others.insert(others.end(), classes[first].begin(), classes[first].end());
        if (best[first].time + part.time >= best[last].time) continue;
        best[last] = best[first];
        best[last].time += part.time;
        best[last].slots.insert(best[last].slots.end(), part.slots.begin(), part.slots.end());
      }
    }
    if (best.back().slots.empty()) return std::nullopt;
    return std::move(best.back().slots);
  }

 private:
  struct Bundle {
    double area = 0;
    std::int32_t smallest = 0;  // size that holds it
    std::int32_t num_sequences = 0;
    TimesBySize times = {};  // without the fixed part
    std::vector<Tokens> tokens = {};
  };

  std::vector<Bundle> find_bundles() const {
    const auto sizes = problem_.sizes();
    std::vector<Bundle> bundles;
    for (BundleId id = 0; id < problem_.num_bundles(); ++id) {
      Bundle bundle{.area = std::numeric_limits<double>::infinity(),
                    .smallest = problem_.num_ranks(),
                    .times = TimesBySize(sizes.size(), -1),
                    .tokens = std::vector<Tokens>(sizes.size(), 0)};
      for (std::size_t p = sizes.size(); p-- > 0;) {
        const PriceId price = problem_.cheapest_price(sizes[p]);
        if (price < 0 || !problem_.fits(sizes[p], id)) continue;
        bundle.smallest = sizes[p];
        bundle.times[p] = problem_.cost(price, id);
        bundle.area = std::min(bundle.area, static_cast<double>(bundle.times[p]) * sizes[p]);
        for (const ItemId item : problem_.items_of(id)) {
          bundle.tokens[p] += problem_.tokens(sizes[p], item);
        }
      }
      for (const ItemId item : problem_.items_of(id)) {
        bundle.num_sequences += problem_.num_sequences(item);
      }
      bundles.push_back(std::move(bundle));
    }
    return bundles;
  }

  // Bundles that fit the same power of two, and none smaller.
  std::vector<std::vector<BundleId>> size_classes() const {
    std::vector<std::vector<BundleId>> classes;
    for (std::int32_t least = 1; least / 2 < problem_.num_ranks(); least *= 2) {
      std::vector<BundleId> bundles;
      for (BundleId id = 0; id < problem_.num_bundles(); ++id) {
        const std::int32_t size = bundles_[static_cast<std::size_t>(id)].smallest;
        if (size > least / 2 && size <= least) bundles.push_back(id);
      }
      if (!bundles.empty()) classes.push_back(std::move(bundles));
    }
    return classes;
  }

  void put(BundleId id, Pile& pile) const {
    const Bundle& bundle = bundles_[static_cast<std::size_t>(id)];
    pile.bundles.push_back(id);
    pile.area += bundle.area;
    pile.num_items += num_items_of(id);
    pile.num_sequences += bundle.num_sequences;
  }

  std::int32_t num_items_of(BundleId id) const {
    return static_cast<std::int32_t>(problem_.items_of(id).size());
  }

  // Dearest first, each onto the cheapest pile that may hold it; then piles that are short of items
  // get cheap bundles of others. Empty if the limits are not kept.
  std::vector<Pile> deal(const std::vector<BundleId>& bundles, std::int32_t num_slots,
                         std::int32_t num_cells) const {
    const std::int32_t max_sequences = problem_.options().max_sequences;
    const std::int64_t most = max_sequences > 0 ? std::int64_t{max_sequences} * num_slots
                                                : std::numeric_limits<std::int64_t>::max();
    std::vector<Pile> piles(static_cast<std::size_t>(num_cells));
    for (const BundleId id : bundles) {
      const std::int64_t room = most - bundles_[static_cast<std::size_t>(id)].num_sequences;
      Pile* best = nullptr;
      for (Pile& pile : piles) {
        if (pile.num_sequences > room) continue;
        if (best == nullptr || pile.area < best->area) best = &pile;
      }
      if (best == nullptr) return {};
      put(id, *best);
    }
    for (Pile& pile : piles) {
      while (pile.num_items < num_slots) {
        Pile* donor = nullptr;
        for (Pile& other : piles) {
          if (&other == &pile || other.bundles.size() < 2) continue;
          if (other.num_items - num_items_of(other.bundles.back()) < num_slots) continue;
          if (donor == nullptr || area_of_last(other) < area_of_last(*donor)) donor = &other;
        }
        if (donor == nullptr) return {};
        const BundleId id = donor->bundles.back();
        Pile rest;
        for (std::size_t i = 0; i + 1 < donor->bundles.size(); ++i) put(donor->bundles[i], rest);
        *donor = std::move(rest);
        put(id, pile);
        if (pile.num_sequences > most) return {};
      }
    }
    return piles;
  }

  double area_of_last(const Pile& pile) const {
    return bundles_[static_cast<std::size_t>(pile.bundles.back())].area;
  }

  // On groups of each size, in so many micro-batches.
  TimesBySize times_of(const Pile& pile, std::int32_t num_slots) const {
    const auto sizes = problem_.sizes();
    TimesBySize times(sizes.size(), -1);
    for (std::size_t p = 0; p < sizes.size(); ++p) {
      Nanoseconds time = 0;
      Tokens tokens = 0;
      const bool do_fit = std::all_of(pile.bundles.begin(), pile.bundles.end(), [&](BundleId id) {
        const Bundle& bundle = bundles_[static_cast<std::size_t>(id)];
        time += bundle.times[p];
        tokens += bundle.tokens[p];
        return bundle.times[p] >= 0;
      });
      if (!do_fit || tokens > problem_.capacity() * sizes[p] * num_slots) continue;
      times[p] = time + num_slots * problem_.price(problem_.cheapest_price(sizes[p])).fixed;
    }
    return times;
  }

  // Few numbers of cells, those among them that fill the ranks with one more, and of slots that
  // each of so many fills, from as many as the limits need.
  std::set<std::int32_t> cell_counts(std::int32_t most) const {
    std::set<std::int32_t> counts;
    for (std::int32_t count = 1; count < most; count += 1 + count / 4) counts.insert(count);
    counts.insert(most);
    for (const std::int32_t size : problem_.sizes()) {
      const std::int32_t filled = problem_.num_ranks() / size;
      if (problem_.num_ranks() % size > 0 && filled < most) counts.insert(filled + 1);
    }
    return counts;
  }
  std::set<std::int32_t> slot_counts(std::int32_t num_cells, const Pile& all) const {
    const Tokens room = problem_.capacity() * problem_.num_ranks();
    const std::int32_t max_sequences = problem_.options().max_sequences;
    Tokens tokens = 0;
    for (const BundleId id : all.bundles) {
      const Bundle& bundle = bundles_[static_cast<std::size_t>(id)];
      tokens += *std::min_element(bundle.tokens.begin(), bundle.tokens.end());
    }
    auto least = static_cast<std::int32_t>((tokens + room - 1) / room);
    if (max_sequences > 0) {
      const std::int64_t seats = std::int64_t{max_sequences} * num_cells;
      least = std::max(least, static_cast<std::int32_t>((all.num_sequences + seats - 1) / seats));
    }
    const std::int32_t most = all.num_items / num_cells / multiple_ * multiple_;
    std::set<std::int32_t> counts;
    for (std::int32_t count = std::max(1, least); count <= most; count += 1 + count / 2) {
      const std::int32_t whole = (count + multiple_ - 1) / multiple_ * multiple_;
      if (whole <= most) counts.insert(whole);
    }
    if (most > 0) counts.insert(most);
    return counts;
  }

  // Nothing if the piles do not fill so many slots.
  std::optional<Cut> find_cut(std::vector<Pile> piles, std::int32_t num_slots) const {
    Cut cut{.num_slots = num_slots, .piles = std::move(piles)};
    if (cut.piles.empty()) return std::nullopt;
    std::vector<TimesBySize> loads;
    for (const Pile& pile : cut.piles) loads.push_back(times_of(pile, num_slots));
    cut.ranges = tiler_.find(loads);
    if (cut.ranges.empty()) return std::nullopt;
    Nanoseconds longest = 0;
    const auto sizes = problem_.sizes();
    for (std::size_t i = 0; i < loads.size(); ++i) {
      const auto place = std::lower_bound(sizes.begin(), sizes.end(), cut.ranges[i].size);
      longest = std::max(longest, loads[i][static_cast<std::size_t>(place - sizes.begin())]);
    }
    cut.likely_time = with_wait(static_cast<double>(longest), num_slots);
    return cut;
  }

  // Stages wait for about so many slots.
  double with_wait(double time, std::int32_t num_slots) const {
    const PipelineShape& shape = problem_.topology().pipeline;
    const double wait = static_cast<double>(shape.stages - 1) / shape.virtual_;
    return time * (num_slots + wait) / num_slots;
  }

  void sort_dearest_first(std::vector<BundleId>& bundles) const {
    std::stable_sort(bundles.begin(), bundles.end(), [&](BundleId a, BundleId b) {
      return bundles_[static_cast<std::size_t>(a)].area >
             bundles_[static_cast<std::size_t>(b)].area;
    });
  }

  // Of all these bundles, in any order.
  Part best_part(std::vector<BundleId> narrow, const std::vector<BundleId>& others) const {
    std::vector<BundleId> bundles = narrow;
    bundles.insert(bundles.end(), others.begin(), others.end());
    sort_dearest_first(bundles);
    sort_dearest_first(narrow);
    std::vector<BundleId> beside;  // all but the cheapest that needs the fewest ranks
    std::copy_if(bundles.begin(), bundles.end(), std::back_inserter(beside),
                 [&](BundleId id) { return id != narrow.back(); });
    Pile all;
    for (const BundleId id : bundles) put(id, all);
    const std::int32_t most_cells =
        std::min(problem_.num_ranks(), static_cast<std::int32_t>(bundles.size()));
    std::vector<Cut> cuts;
    for (const std::int32_t num_cells : cell_counts(most_cells)) {
      for (const std::int32_t num_slots : slot_counts(num_cells, all)) {
        if (auto cut = find_cut(deal(bundles, num_slots, num_cells), num_slots)) {
          cuts.push_back(*std::move(cut));
        }
        if (others.empty() || num_cells == 1) continue;
        auto piles = deal(beside, num_slots, num_cells - 1);
        const auto apart = piles.empty() ? piles : deal({narrow.back()}, num_slots, 1);
        if (apart.empty()) continue;
        piles.push_back(apart.front());
        if (auto cut = find_cut(std::move(piles), num_slots)) cuts.push_back(*std::move(cut));
      }
    }
    std::stable_sort(cuts.begin(), cuts.end(),
                     [](const Cut& a, const Cut& b) { return a.likely_time < b.likely_time; });
    constexpr int few = 3;
    int num_tried = 0;
    Part best;
    for (const Cut& cut : cuts) {
      if (num_tried == few || cut.likely_time >= best.time) break;
      auto slots = slots_of(cut);
      if (!slots) continue;
      ++num_tried;
      const bool is_synced =
          problem_.options().sync == Sync::microbatch || problem_.topology().pipeline.stages > 1;
      const Nanoseconds time =
          is_synced ? slots_time(problem_, *slots) : step_time(problem_, *slots);
      const double likely = with_wait(static_cast<double>(time), cut.num_slots);
      if (likely < best.time) best = {.time = likely, .slots = *std::move(slots)};
    }
    return best;
  }

  // The items of a cell in so many micro-batches, dearest first; empty if they are not found.
  std::vector<std::vector<ItemId>> spread(const Pile& pile, std::int32_t size,
                                          std::int32_t num_slots) const {
    const PriceId price = problem_.cheapest_price(size);
    std::vector<ItemId> items;
    for (const BundleId id : pile.bundles) {
      items.insert(items.end(), problem_.items_of(id).begin(), problem_.items_of(id).end());
    }
    std::vector<Nanoseconds> costs;
    std::vector<Tokens> tokens;
    std::vector<std::int32_t> sizes;
    for (const ItemId item : items) {
      costs.push_back(problem_.item_cost(price, item));
      tokens.push_back(std::min(problem_.tokens(size, item), problem_.capacity() * size));
      sizes.push_back(problem_.num_sequences(item));
    }
    Limits limits{.capacity = problem_.capacity() * size, .min_units = 1};
    if (problem_.options().max_sequences > 0) limits.max_size = problem_.options().max_sequences;
    const Units units{.costs = costs, .tokens = tokens, .sizes = sizes};
    auto bin_of = longest_first(units, dearest_first(costs), num_slots, limits);
    if (!bin_of) {
      bin_of = assign(units, num_slots, limits, RefineGoal::largest, std::nullopt).bin_of;
    }
    if (!bin_of) return {};
    std::vector<std::pair<Nanoseconds, std::vector<ItemId>>> bins(
        static_cast<std::size_t>(num_slots));
    for (std::size_t i = 0; i < items.size(); ++i) {
      auto& [cost, held] = bins[static_cast<std::size_t>((*bin_of)[i])];
      cost -= costs[i];
      held.push_back(items[i]);
    }
    std::sort(bins.begin(), bins.end());
    std::vector<std::vector<ItemId>> microbatches;
    for (auto& bin : bins) microbatches.push_back(std::move(bin.second));
    return microbatches;
  }

  // Nothing if the items of some cell are not spread.
  std::optional<DraftSlots> slots_of(const Cut& cut) const {
    DraftSlots slots(static_cast<std::size_t>(cut.num_slots));
    for (std::size_t i = 0; i < cut.piles.size(); ++i) {
      const auto size = static_cast<std::int32_t>(cut.ranges[i].size);
      auto microbatches = spread(cut.piles[i], size, cut.num_slots);
      if (microbatches.empty()) return std::nullopt;
      for (std::size_t s = 0; s < slots.size(); ++s) {
        slots[s].push_back({.ranks = cut.ranges[i], .items = std::move(microbatches[s])});
      }
    }
    return slots;
  }

  const Problem& problem_;
  std::int32_t multiple_;
  RankTiler tiler_;
  std::vector<Bundle> bundles_;
};

}  // namespace

std::optional<DraftSlots> find_full_cells(const Problem& problem, std::int32_t multiple) {
  return FullCells(problem, multiple).run();
}

}  // namespace isochron
