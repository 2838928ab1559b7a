// Balance first, then the slots, then what the pipelines themselves say.
//
// Items go to the cells as evenly as they can. A slot longer than the others of its cell makes all
// stages wait, so a long item weighs more there than it costs. In a cell the dearest items are
// placed first, each into the slot that is furthest from its part of the profile: cells look alike,
// so that slots that wait for each other take equally long. The rest is local search on the time of
// the slowest pipeline; with Sync::microbatch there is but one, of the slowest cell of every slot.

#include "isochron/plan/pipelines/pipeline_grid.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "isochron/balance/assignment.h"
#include "isochron/core/int128.h"
#include "isochron/core/random.h"
#include "isochron/simulate/order_microbatches.h"
#include "isochron/simulate/pipeline_time.h"

namespace isochron {

namespace {

struct Bin {
  std::vector<ItemId> items = {};
  Nanoseconds cost = 0;  // without the fixed part
  Tokens tokens = 0;
  std::int32_t num_sequences = 0;
  PassCost pass = {};  // with all
};

struct Spot {
  std::size_t cell = 0;
  std::size_t slot = 0;

  bool operator==(const Spot&) const = default;
};

class GridSearch {
 public:
  GridSearch(const Problem& problem, const CellItems& cells, const GridShape& shape)
      : problem_(problem),
        cells_(cells),
        num_slots_(static_cast<std::size_t>(shape.num_slots)),
        num_cells_(cells.num_cells()),
        capacity_(shape.capacity),
        is_rough_(shape.is_rough),
        pipeline_(problem.topology().pipeline),
        time_(pipeline_, shape.num_slots, problem.options().pass),
        bins_(num_cells_ * num_slots_),
        slowest_(num_slots_) {}

  bool fill(std::span<const std::int64_t> profile) {
    std::vector<Bin> best;
    Nanoseconds best_time = 0;
    for (const bool is_wait_counted : {false, true}) {
      const auto cell_of = cell_of_bundles(is_wait_counted);
      if (!cell_of || !fill_cells(*cell_of, profile)) continue;
      time_all();
      if (best.empty() || longest() < best_time) {
        best_time = longest();
        best = bins_;
      }
    }
    if (best.empty()) return false;
    bins_ = std::move(best);
    time_all();
    return true;
  }

  void fill(std::span<const std::vector<ItemId>> items_of_bin) {
    for (std::size_t i = 0; i < bins_.size(); ++i) {
      const Spot spot{.cell = i / num_slots_, .slot = i % num_slots_};
      set_pass(spot.cell, bins_[i]);
      for (const ItemId item : items_of_bin[i]) put(spot, item);
    }
    time_all();
  }

  void improve(Nanoseconds bound, std::int64_t work) {
    if (work <= 0 || num_slots_ < 2) return;
    reorder(bound, work / 8);
    exchange_items(bound, work - work / 4);
    reorder(bound, work / 8);
  }

  Grid grid() const {
    Grid result{.slots = DraftSlots(num_slots_), .time = longest()};
    for (std::size_t cell = 0; cell < num_cells_; ++cell) {
      for (std::size_t slot = 0; slot < num_slots_; ++slot) {
        const Bin& full = bin({cell, slot});
        if (full.items.empty()) continue;
        result.slots[slot].push_back({.ranks = cells_.ranks(cell), .items = full.items});
      }
    }
    return result;
  }

 private:
  const Bin& bin(Spot spot) const { return bins_[spot.cell * num_slots_ + spot.slot]; }
  Bin& bin(Spot spot) { return bins_[spot.cell * num_slots_ + spot.slot]; }
  bool meets() const { return problem_.options().sync == Sync::microbatch; }

  bool takes(Spot spot, ItemId item, ItemId without = -1) const {
    const Bin& target = bin(spot);
    if (!cells_.fits(spot.cell, item)) return false;
    if (target.items.empty() || (without >= 0 && target.items.size() == 1)) return true;
    const Tokens left = without < 0 ? 0 : cells_.tokens(spot.cell, without);
    const std::int32_t sequences_left = without < 0 ? 0 : problem_.num_sequences(without);
    const std::int32_t most = problem_.options().max_sequences;
    return target.tokens - left + cells_.tokens(spot.cell, item) <=
               capacity_ * cells_.ranks(spot.cell).size &&
           (most == 0 ||
            target.num_sequences - sequences_left + problem_.num_sequences(item) <= most);
  }

  void set_pass(std::size_t cell, Bin& changed) const {
    const Nanoseconds even =
        changed.items.empty() ? problem_.microbatch() : cells_.fixed(cell) + changed.cost;
    const Nanoseconds cost = Problem::slowed(even, problem_.slowness(cells_.ranks(cell)));
    changed.pass = split_cost(cost, problem_.model().forward_share);
    if (problem_.options().pass == Pass::forward) changed.pass.backward = 0;
  }
  void put(Spot spot, ItemId item) {
    Bin& target = bin(spot);
    target.items.push_back(item);
    target.cost += cells_.cost(spot.cell, item);
    target.tokens += cells_.tokens(spot.cell, item);
    target.num_sequences += problem_.num_sequences(item);
    set_pass(spot.cell, target);
  }
  void remove(Spot spot, ItemId item) {
    Bin& source = bin(spot);
    source.items.erase(std::find(source.items.begin(), source.items.end(), item));
    source.cost -= cells_.cost(spot.cell, item);
    source.tokens -= cells_.tokens(spot.cell, item);
    source.num_sequences -= problem_.num_sequences(item);
    set_pass(spot.cell, source);
  }

  // By what bundles cost, or with what a long item adds: d stages wait for what it is longer than
  // an even slot.
  std::optional<BinOf> cell_of_bundles(bool is_wait_counted) const {
    std::vector<Nanoseconds> costs;
    std::vector<Tokens> volumes;
    Nanoseconds sum = 0;
    const auto size = static_cast<std::int32_t>(cells_.ranks(0).size);
    const PriceId price = problem_.cheapest_price(size);
    for (BundleId bundle = 0; bundle < problem_.num_bundles(); ++bundle) {
      Tokens volume = 0;
      for (const ItemId item : problem_.items_of(bundle)) volume += cells_.tokens(0, item);
      volumes.push_back(volume);
      costs.push_back(problem_.cost(price, bundle));
      sum += costs.back();
    }
    const Nanoseconds even = sum / static_cast<Nanoseconds>(num_cells_ * num_slots_);
    for (BundleId bundle = 0; is_wait_counted && bundle < problem_.num_bundles(); ++bundle) {
      Nanoseconds longest = 0;
      for (const ItemId item : problem_.items_of(bundle)) {
        longest = std::max(longest, problem_.item_cost(price, item));
      }
      costs[static_cast<std::size_t>(bundle)] +=
          (pipeline_.stages - 1) * std::max<Nanoseconds>(0, longest - even);
    }
    Limits limits{.capacity = capacity_ * size * static_cast<Tokens>(num_slots_)};
    if (problem_.num_bundles() == problem_.num_items()) {
      // Every slot holds something, or none holds two.
      const bool is_full = bins_.size() <= static_cast<std::size_t>(problem_.num_items());
      (is_full ? limits.min_units : limits.max_units) = static_cast<std::int32_t>(num_slots_);
    }
    const Units units{.costs = costs, .tokens = volumes};
    const auto num_bins = static_cast<std::int32_t>(num_cells_);
    if (is_rough_) {
      if (auto found = longest_first(units, dearest_first(costs), num_bins, limits)) return found;
    }
    return assign(units, num_bins, limits, RefineGoal::largest,
                  8 * static_cast<std::int64_t>(costs.size()))
        .bin_of;
  }

  bool fill_cells(const BinOf& cell_of, std::span<const std::int64_t> profile) {
    for (std::size_t i = 0; i < bins_.size(); ++i) {
      bins_[i] = {};
      set_pass(i / num_slots_, bins_[i]);
    }
    std::vector<std::vector<ItemId>> items_of_cell(num_cells_);
    for (ItemId item = 0; item < problem_.num_items(); ++item) {
      const auto bundle = static_cast<std::size_t>(cells_.bundle_of(item));
      items_of_cell[static_cast<std::size_t>(cell_of[bundle])].push_back(item);
    }
    for (std::size_t cell = 0; cell < num_cells_; ++cell) {
      if (!fill_cell(cell, std::move(items_of_cell[cell]), profile)) return false;
    }
    return true;
  }

  bool fill_cell(std::size_t cell, std::vector<ItemId> items,
                 std::span<const std::int64_t> profile) {
    std::stable_sort(items.begin(), items.end(), [&](ItemId a, ItemId b) {
      return cells_.cost(cell, a) > cells_.cost(cell, b);
    });
    const Nanoseconds fixed = cells_.fixed(cell);
    Int128 whole = Int128{fixed} * static_cast<std::int64_t>(num_slots_);
    for (const ItemId item : items) whole += cells_.cost(cell, item);
    std::int64_t parts = 0;
    for (const std::int64_t part : profile) parts += part;
    std::vector<Nanoseconds> left;  // of each slot, until it has its part
    for (const std::int64_t part : profile) {
      left.push_back(static_cast<Nanoseconds>(whole * part / parts) - fixed);
    }
    // While there are as many items as empty slots, each goes into one of those.
    std::size_t num_empty = num_slots_;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const bool must_open = items.size() - i <= num_empty;
      std::optional<std::size_t> best;
      for (std::size_t slot = 0; slot < num_slots_; ++slot) {
        const Bin& target = bin({cell, slot});
        if (!target.items.empty() && (must_open || !takes({cell, slot}, items[i]))) continue;
        if (!best || left[slot] > left[*best]) best = slot;
      }
      if (!best) return false;
      if (bin({cell, *best}).items.empty()) --num_empty;
      put({cell, *best}, items[i]);
      left[*best] -= cells_.cost(cell, items[i]);
    }
    return true;
  }

  // A line is a pipeline that runs by itself: a cell, or all of them if they wait for each other.
  Nanoseconds line_time(std::size_t line) {
    costs_.clear();
    for (std::size_t slot = 0; slot < num_slots_; ++slot) {
      costs_.push_back(meets() ? slowest_[slot] : bin({line, slot}).pass);
    }
    work_ -= static_cast<std::int64_t>(num_slots_) * pipeline_.num_chunks() * 2;
    return time_.makespan(costs_);
  }
  void set_slowest(std::size_t slot) {
    PassCost& slowest = slowest_[slot];
    slowest = {};
    for (std::size_t cell = 0; cell < num_cells_; ++cell) {
      const PassCost& pass = bin({cell, slot}).pass;
      slowest.forward = std::max(slowest.forward, pass.forward);
      slowest.backward = std::max(slowest.backward, pass.backward);
    }
    if (meets()) work_ -= static_cast<std::int64_t>(num_cells_);
  }
  void time_all() {
    for (std::size_t slot = 0; meets() && slot < num_slots_; ++slot) set_slowest(slot);
    times_.resize(meets() ? 1 : num_cells_);
    for (std::size_t line = 0; line < times_.size(); ++line) times_[line] = line_time(line);
  }
  std::size_t slowest_line() const {
    return static_cast<std::size_t>(std::max_element(times_.begin(), times_.end()) -
                                    times_.begin());
  }
  Nanoseconds longest() const { return times_[slowest_line()]; }

  // The best order of the slowest lines, one after the other.
  void reorder(Nanoseconds bound, std::int64_t work) {
    const std::int64_t share = std::max<std::int64_t>(1, work / 4);
    for (int round = 0; round < 8 && longest() > bound; ++round) {
      const std::size_t line = slowest_line();
      std::vector<PipelineItem> items;
      for (std::size_t slot = 0; slot < num_slots_; ++slot) {
        items.push_back({.cost = meets() ? slowest_[slot] : bin({line, slot}).pass});
      }
      const MicrobatchOrder best = order_microbatches(
          items, pipeline_, {.pass = problem_.options().pass, .max_work = share, .bound_work = 0});
      if (best.order.empty() || best.time_ns >= times_[line]) return;
      std::vector<Bin> old(num_slots_);
      for (std::size_t cell = 0; cell < num_cells_; ++cell) {
        if (!meets() && cell != line) continue;
        for (std::size_t slot = 0; slot < num_slots_; ++slot)
          std::swap(old[slot], bin({cell, slot}));
        for (std::size_t slot = 0; slot < num_slots_; ++slot) {
          const auto from = static_cast<std::size_t>(best.order[slot]);
          bin({cell, slot}) = std::move(old[from]);
          if (meets()) slowest_[slot] = items[from].cost;
        }
      }
      times_[line] = best.time_ns;
    }
  }

  void exchange_items(Nanoseconds bound, std::int64_t work) {
    Random random(0);
    work_ = work;
    const std::size_t max_idle = 64 * num_slots_ + 4 * bins_.size();
    std::size_t num_idle = 0;
    while (work_ > 0 && num_idle < max_idle && longest() > bound) {
      --work_;
      const Nanoseconds before = longest();
      try_move(random);
      num_idle = longest() < before ? 0 : num_idle + 1;
    }
  }

  void try_move(Random& random) {
    const std::size_t line = slowest_line();
    const auto any_slot = [&] { return static_cast<std::size_t>(random.below(num_slots_)); };
    Spot from{.cell = line, .slot = any_slot()};
    Spot to{.cell = line, .slot = any_slot()};
    if (meets()) {
      to.cell = static_cast<std::size_t>(random.below(num_cells_));
      from.cell = to.cell;
      if (random.below(4) > 0) from.cell = slowest_cell(from.slot);
    } else if (num_cells_ > 1 && random.below(2) > 0) {
      // Of two others the faster.
      const auto other = [&] {
        const auto step = static_cast<std::size_t>(random.below(num_cells_ - 1)) + 1;
        return (line + step) % num_cells_;
      };
      const std::size_t first = other();
      const std::size_t second = other();
      to.cell = times_[second] < times_[first] ? second : first;
    }
    if (from == to) return;
    if (from.cell == to.cell && random.below(3) == 0) {
      try_swap_of_slots(from.slot, to.slot, from.cell);
      return;
    }
    const Bin& source = bin(from);
    const Bin& target = bin(to);
    if (source.items.empty()) return;
    const ItemId item = source.items[random.below(source.items.size())];
    ItemId other = -1;
    const bool may_leave = source.items.size() > 1;
    if (!target.items.empty() && (!may_leave || random.below(2) == 0)) {
      other = target.items[random.below(target.items.size())];
    } else if (!may_leave) {
      return;
    }
    if (from.cell != to.cell &&
        (!may_change_cell(item) || (other >= 0 && !may_change_cell(other)))) {
      return;
    }
    const bool helps = other < 0 || cells_.cost(from.cell, item) > cells_.cost(from.cell, other);
    if ((from.cell != to.cell && !helps) || !takes(to, item, other) ||
        (other >= 0 && !takes(from, other, item))) {
      return;
    }
    try_exchange(from, item, to, other);
  }

  std::size_t slowest_cell(std::size_t slot) const {
    std::size_t slowest = 0;
    for (std::size_t cell = 1; cell < num_cells_; ++cell) {
      if (bin({cell, slot}).cost > bin({slowest, slot}).cost) slowest = cell;
    }
    return slowest;
  }

  bool may_change_cell(ItemId item) const {
    return problem_.items_of(cells_.bundle_of(item)).size() == 1;
  }

  void try_swap_of_slots(std::size_t a, std::size_t b, std::size_t line) {
    const auto swap_all = [&] {
      for (std::size_t cell = 0; cell < num_cells_; ++cell) {
        if (meets() || cell == line) std::swap(bin({cell, a}), bin({cell, b}));
      }
      std::swap(slowest_[a], slowest_[b]);
    };
    const std::size_t timed = meets() ? 0 : line;
    swap_all();
    const Nanoseconds time = line_time(timed);
    if (time <= times_[timed]) {
      times_[timed] = time;
    } else {
      swap_all();
    }
  }

  Nanoseconds sum_of(std::size_t a, std::size_t b) const {
    const auto one = [&](std::size_t slot) {
      return slowest_[slot].forward + slowest_[slot].backward;
    };
    return a == b ? one(a) : one(a) + one(b);
  }

  void try_exchange(Spot from, ItemId item, Spot to, ItemId other) {
    const auto exchange = [&](Spot a, ItemId x, Spot b, ItemId y) {
      remove(a, x);
      if (y >= 0) remove(b, y);
      put(b, x);
      if (y >= 0) put(a, y);
    };
    const auto undo = [&] { exchange(to, item, from, other); };
    if (meets()) {
      const Nanoseconds sum = sum_of(from.slot, to.slot);
      exchange(from, item, to, other);
      set_slowest(from.slot);
      set_slowest(to.slot);
      const Nanoseconds time = line_time(0);
      const bool is_kept =
          time < times_[0] || (time == times_[0] && sum_of(from.slot, to.slot) <= sum);
      if (is_kept) {
        times_[0] = time;
        return;
      }
      undo();
      set_slowest(from.slot);
      set_slowest(to.slot);
      return;
    }
    exchange(from, item, to, other);
    const Nanoseconds time = line_time(from.cell);
    const bool is_inside = from.cell == to.cell;
    const bool is_better = is_inside ? time <= times_[from.cell] : time < times_[from.cell];
    const Nanoseconds other_time = is_inside || !is_better ? time : line_time(to.cell);
    if (is_better && (is_inside || other_time < times_[from.cell])) {
      times_[from.cell] = time;
      times_[to.cell] = other_time;
      return;
    }
    undo();
  }

  const Problem& problem_;
  const CellItems& cells_;
  std::size_t num_slots_;
  std::size_t num_cells_;
  Tokens capacity_;  // of a rank
  bool is_rough_;
  const PipelineShape& pipeline_;
  PipelineTime time_;
  std::vector<Bin> bins_;           // by cell, then slot
  std::vector<PassCost> slowest_;   // of each slot, if cells meet
  std::vector<Nanoseconds> times_;  // of the lines
  std::vector<PassCost> costs_;
  std::int64_t work_ = 0;
};

}  // namespace

std::optional<Grid> find_grid(const Problem& problem, const CellItems& cells,
                              const GridShape& shape, std::span<const std::int64_t> profile,
                              Nanoseconds bound, std::int64_t work) {
  GridSearch search(problem, cells, shape);
  if (!search.fill(profile)) return std::nullopt;
  search.improve(bound, work);
  return search.grid();
}

Grid improved_grid(const Problem& problem, const CellItems& cells, const GridShape& shape,
                   std::span<const std::vector<ItemId>> bins, Nanoseconds bound,
                   std::int64_t work) {
  GridSearch search(problem, cells, shape);
  search.fill(bins);
  search.improve(bound, work);
  return search.grid();
}

}  // namespace isochron
