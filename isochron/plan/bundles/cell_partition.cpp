// Cells are bins that last for a given time; the shortest time for which the ranks suffice is found
// by halving. A bundle takes the smallest size at which it is done in time. Widest first, the
// largest first, it goes to the fullest cell of its size that has room for it, else to a wider one,
// else to a new one.

#include "isochron/plan/bundles/cell_partition.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "isochron/plan/draft_slots.h"

namespace isochron {

namespace {

class CellCutter {
 public:
  CellCutter(const Problem& problem, const BundleTable& table, const CellRule& rule)
      : table_(table), num_ranks_(problem.num_ranks()), rule_(rule) {
    if (rule.wait == 0) return;
    for (std::int32_t level = 0; level < table.num_levels(); ++level) {
      const PriceId price = problem.cheapest_price(table.size(level));
      auto& longest = longest_of_.emplace_back();
      for (BundleId bundle = 0; bundle < table.num_bundles(); ++bundle) {
        Nanoseconds most = 0;
        for (const ItemId item : problem.items_of(bundle)) {
          if (table.fits(level, bundle)) most = std::max(most, problem.item_cost(price, item));
        }
        longest.push_back(most);
      }
    }
  }

  std::vector<std::vector<BundleCell>> run() {
    // No time below `least` suffices: a bundle has its cell alone, and all ranks are busy.
    double area = 0;
    Nanoseconds least = 0;
    Nanoseconds most = rule_.limit - 1;
    for (BundleId bundle = 0; bundle < table_.num_bundles(); ++bundle) {
      double least_area = 0;
      Nanoseconds shortest = rule_.limit;
      for (std::int32_t level = rule_.narrowest; level < table_.num_levels(); ++level) {
        if (!table_.fits(level, bundle)) continue;
        const Nanoseconds time = time_of(level, table_.use(level, bundle), longest(level, bundle));
        const double here = static_cast<double>(time) * table_.size(level);
        shortest = std::min(shortest, time);
        if (least_area == 0 || here < least_area) least_area = here;
      }
      least = std::max(least, shortest);
      area += least_area;
    }
    // Micro-batches that bundles share are counted for each of them.
    least = std::max(least, static_cast<Nanoseconds>(area / num_ranks_ / 2));
    if (least > most || !is_cut(most)) return {};
    most = time_of_all();
    std::vector<Cell> best = cells_;
    while (most - least > most / 512 + 1) {
      const Nanoseconds time = least + (most - least) / 2;
      if (is_cut(time)) {
        best = cells_;
        most = time_of_all();
      } else {
        least = time;
      }
    }
    cells_ = std::move(best);
    std::stable_sort(cells_.begin(), cells_.end(),
                     [](const Cell& a, const Cell& b) { return a.level > b.level; });
    std::vector<std::vector<BundleCell>> cuts = {placed_cells()};
    if (rule_.wait > 0) return cuts;
    even_out();
    std::vector<BundleCell> even = placed_cells();
    if (even != cuts.front()) cuts.push_back(std::move(even));
    return cuts;
  }

 private:
  struct Cell {
    std::int32_t level = 0;
    BlockUse use;
    Nanoseconds longest = 0;  // item, where cells wait for it
    std::vector<BundleId> bundles;
  };

  [[nodiscard]] Nanoseconds longest(std::int32_t level, BundleId bundle) const {
    if (longest_of_.empty()) return 0;
    return longest_of_[static_cast<std::size_t>(level)][static_cast<std::size_t>(bundle)];
  }

  [[nodiscard]] Nanoseconds time_of(std::int32_t level, const BlockUse& use,
                                    Nanoseconds longest_item) const {
    const Nanoseconds time = table_.time(level, use);
    if (longest_item == 0) return time;
    return time + static_cast<Nanoseconds>(rule_.wait * static_cast<double>(longest_item));
  }

  // The first level at which a bundle is done in time; the number of levels if there is none.
  std::int32_t level_within(BundleId bundle, Nanoseconds time) const {
    std::int32_t level = rule_.narrowest;
    while (level < table_.num_levels() &&
           (!table_.fits(level, bundle) ||
            time_of(level, table_.use(level, bundle), longest(level, bundle)) > time)) {
      ++level;
    }
    return level;
  }

  static BlockUse sum(const BlockUse& a, const BlockUse& b) {
    return {.cost = a.cost + b.cost,
            .tokens = a.tokens + b.tokens,
            .sequences = a.sequences + b.sequences};
  }

  // Makes cells_ that are done within `time`.
  bool is_cut(Nanoseconds time) {
    const auto num_levels = static_cast<std::size_t>(table_.num_levels());
    std::vector<std::vector<std::pair<Nanoseconds, BundleId>>> bundles(num_levels);
    for (BundleId bundle = 0; bundle < table_.num_bundles(); ++bundle) {
      const std::int32_t level = level_within(bundle, time);
      if (level == table_.num_levels()) return false;
      bundles[static_cast<std::size_t>(level)].emplace_back(-table_.use(level, bundle).cost,
                                                            bundle);
    }
    cells_.clear();
    std::int64_t ranks_left = num_ranks_;
    // Cells by what they still take, for each level.
    std::vector<std::multimap<Nanoseconds, std::size_t>> rooms(num_levels);
    const auto put = [&](std::size_t level, BundleId bundle) {
      const auto l = static_cast<std::int32_t>(level);
      auto& open = rooms[level];
      for (auto room = open.lower_bound(table_.use(l, bundle).cost); room != open.end(); ++room) {
        Cell& cell = cells_[room->second];
        const BlockUse use = sum(cell.use, table_.use(l, bundle));
        const Nanoseconds longest_item = std::max(cell.longest, longest(l, bundle));
        const Nanoseconds taken = time_of(l, use, longest_item);
        if (taken > time) continue;
        cell.use = use;
        cell.longest = longest_item;
        cell.bundles.push_back(bundle);
        const std::size_t place = room->second;
        open.erase(room);
        open.emplace(time - taken, place);
        return true;
      }
      return false;
    };
    for (std::size_t level = num_levels; level-- > static_cast<std::size_t>(rule_.narrowest);) {
      std::sort(bundles[level].begin(), bundles[level].end());
      const std::int32_t size = table_.size(static_cast<std::int32_t>(level));
      for (const auto& [cost, bundle] : bundles[level]) {
        bool is_put = false;
        for (std::size_t wider = level; wider < num_levels && !is_put; ++wider) {
          is_put = table_.fits(static_cast<std::int32_t>(wider), bundle) && put(wider, bundle);
        }
        if (is_put) continue;
        if (ranks_left < size) return false;
        ranks_left -= size;
        rooms[level].emplace(time, cells_.size());
        cells_.push_back(
            {.level = static_cast<std::int32_t>(level), .use = {}, .longest = 0, .bundles = {}});
        if (!put(level, bundle)) return false;
      }
    }
    return true;
  }

  std::vector<BundleCell> placed_cells() const {
    std::vector<BundleCell> cells;
    std::int64_t first = 0;
    for (const Cell& cell : cells_) {
      const std::int64_t size = table_.size(cell.level);
      if (!cell.bundles.empty()) {
        cells.push_back({.ranks = {.first = first, .size = size}, .bundles = cell.bundles});
      }
      first += size;
    }
    return cells;
  }

  // How far a cell is from the mean in time and tokens. Where slots are few, tokens below the last
  // full slot do no harm, and the fullest cells count most.
  [[nodiscard]] double unevenness(std::int32_t level, const BlockUse& use) const {
    const double time = static_cast<double>(table_.time(level, use)) / mean_time_ - 1;
    const double tokens = static_cast<double>(use.tokens) / table_.size(level) / mean_tokens_ - 1;
    if (has_many_slots_) return time * time + tokens * tokens;
    const double most = std::max({0.0, time, tokens});
    return most * most * most;
  }

  void set_means() {
    mean_time_ = 0;
    mean_tokens_ = 0;
    for (const Cell& cell : cells_) {
      mean_time_ +=
          static_cast<double>(table_.time(cell.level, cell.use)) * table_.size(cell.level);
      mean_tokens_ += static_cast<double>(cell.use.tokens);
    }
    mean_time_ /= num_ranks_;
    mean_tokens_ /= num_ranks_;
    const auto capacity = static_cast<double>(table_.capacity());
    has_many_slots_ = mean_tokens_ > 4 * capacity;
    const double full = 0.9 * std::ceil(mean_tokens_ / capacity) * capacity;
    if (!has_many_slots_) mean_tokens_ = std::max(mean_tokens_, full);
  }

  // Exchanges bundles of the most uneven cell while that helps.
  void even_out() {
    set_means();
    std::vector<bool> is_settled(cells_.size(), false);
    while (num_weighed_ < max_weighed) {
      std::size_t worst = cells_.size();
      double most = 0;
      for (std::size_t c = 0; c < cells_.size(); ++c) {
        const double here = is_settled[c] ? 0 : unevenness(cells_[c].level, cells_[c].use);
        if (here > most) {
          most = here;
          worst = c;
        }
      }
      if (worst == cells_.size()) return;
      const std::size_t other = exchange(worst);
      if (other == cells_.size()) {
        is_settled[worst] = true;
      } else {
        is_settled[other] = false;
      }
    }
  }

  // A bundle of a cell, or nothing: one past its last.
  struct Offer {
    const Cell& cell;
    std::size_t place;

    [[nodiscard]] bool is_any() const { return place < cell.bundles.size(); }
    [[nodiscard]] BundleId bundle() const { return cell.bundles[place]; }
  };

  // What `out.cell` holds if it gives one offer for the other.
  [[nodiscard]] BlockUse use_after(const Offer& out, const Offer& in) const {
    BlockUse use = out.cell.use;
    if (out.is_any()) {
      const BlockUse& less = table_.use(out.cell.level, out.bundle());
      use = {.cost = use.cost - less.cost,
             .tokens = use.tokens - less.tokens,
             .sequences = use.sequences - less.sequences};
    }
    return in.is_any() ? sum(use, table_.use(out.cell.level, in.bundle())) : use;
  }

  [[nodiscard]] bool is_taken(const Offer& offer, const Cell& by) const {
    return !offer.is_any() || table_.fits(by.level, offer.bundle());
  }

  // Makes the exchange with another cell that helps most, and says which; the number of cells if
  // none helps.
  std::size_t exchange(std::size_t from) {
    Cell& a = cells_[from];
    const double before_a = unevenness(a.level, a.use);
    double most = 1e-12;
    std::size_t best = cells_.size();
    std::size_t best_out = 0;
    std::size_t best_in = 0;
    for (std::size_t c = 0; c < cells_.size(); ++c) {
      if (c == from) continue;
      const Cell& b = cells_[c];
      const double before = before_a + unevenness(b.level, b.use);
      for (std::size_t i = 0; i <= a.bundles.size(); ++i) {
        const Offer out{.cell = a, .place = i};
        if (!is_taken(out, b)) continue;
        num_weighed_ += static_cast<std::int64_t>(b.bundles.size()) + 1;
        for (std::size_t j = 0; j <= b.bundles.size(); ++j) {
          const Offer in{.cell = b, .place = j};
          if (!is_taken(in, a)) continue;
          const double after =
              unevenness(a.level, use_after(out, in)) + unevenness(b.level, use_after(in, out));
          if (before - after <= most) continue;
          most = before - after;
          best = c;
          best_out = i;
          best_in = j;
        }
      }
    }
    if (best < cells_.size()) swap_bundles(a, best_out, cells_[best], best_in);
    return best;
  }

  void swap_bundles(Cell& a, std::size_t out_place, Cell& b, std::size_t in_place) const {
    const Offer out{.cell = a, .place = out_place};
    const Offer in{.cell = b, .place = in_place};
    const BlockUse use_a = use_after(out, in);
    const BlockUse use_b = use_after(in, out);
    if (out.is_any() && in.is_any()) {
      std::swap(a.bundles[out_place], b.bundles[in_place]);
    } else {
      auto& giver = out.is_any() ? a.bundles : b.bundles;
      auto& taker = out.is_any() ? b.bundles : a.bundles;
      const std::size_t place = out.is_any() ? out_place : in_place;
      taker.push_back(giver[place]);
      giver.erase(giver.begin() + static_cast<std::ptrdiff_t>(place));
    }
    a.use = use_a;
    b.use = use_b;
  }

  Nanoseconds time_of_all() const {
    Nanoseconds last = 0;
    for (const Cell& cell : cells_) {
      last = std::max(last, time_of(cell.level, cell.use, cell.longest));
    }
    return last;
  }

  const BundleTable& table_;
  std::int32_t num_ranks_;
  CellRule rule_;
  std::vector<std::vector<Nanoseconds>> longest_of_;  // by level and bundle; empty: no matter
  std::vector<Cell> cells_;
  static constexpr std::int64_t max_weighed = 200'000;  // exchanges
  std::int64_t num_weighed_ = 0;
  double mean_time_ = 0;    // of a cell
  double mean_tokens_ = 0;  // of a rank
  bool has_many_slots_ = false;
};

}  // namespace

std::vector<std::vector<std::int32_t>> cell_sizes(const Problem& problem) {
  if (!problem.is_aligned() || problem.has_speeds() || !problem.order().has_one_exchange ||
      problem.num_items() == problem.num_bundles()) {
    return {};
  }
  const auto sizes = problem.sizes();
  std::vector<std::int32_t> doubling;
  for (const std::int32_t size : sizes) {
    if (doubling.empty() || size % doubling.back() == 0) doubling.push_back(size);
  }
  std::vector<std::int32_t> dividing;  // from the largest on
  for (std::size_t i = sizes.size(); i-- > 0;) {
    const std::int32_t of = dividing.empty() ? problem.num_ranks() : dividing.back();
    if (of % sizes[i] == 0) dividing.push_back(sizes[i]);
  }
  std::reverse(dividing.begin(), dividing.end());
  std::vector<std::vector<std::int32_t>> chains;
  for (auto& chain : {doubling, dividing}) {
    if (!has_one_price(problem, chain)) continue;
    if (chains.empty() || chain != chains.front()) chains.push_back(chain);
  }
  return chains;
}

std::vector<ItemId> items_of(const Problem& problem, const BundleCell& cell) {
  std::vector<ItemId> items;
  for (const BundleId bundle : cell.bundles) {
    const auto more = problem.items_of(bundle);
    items.insert(items.end(), more.begin(), more.end());
  }
  return items;
}

std::vector<std::vector<BundleCell>> cut_into_cells(const Problem& problem,
                                                    const BundleTable& table,
                                                    const CellRule& rule) {
  return CellCutter(problem, table, rule).run();
}

}  // namespace isochron
