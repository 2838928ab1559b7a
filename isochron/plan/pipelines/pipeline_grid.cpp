// Local search on the time of the slowest line, a pipeline that runs by itself: a cell, or several
// that wait for each other; with Sync::microbatch there is but one. Items go to faster lines or
// change places with others, inside a line and between two, and slots change places.

#include "isochron/plan/pipelines/pipeline_grid.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "isochron/core/random.h"
#include "isochron/simulate/chunk_cost.h"
#include "isochron/simulate/order_microbatches.h"
#include "isochron/simulate/pipeline_time.h"

namespace isochron {

namespace {

struct Bin {
  bool is_closed = false;  // others have the ranks in this slot
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
  // Every cell by itself, but where all wait for each other.
  GridSearch(const Problem& problem, const CellItems& cells, const GridShape& shape)
      : GridSearch(problem, cells, shape, [&] {
          const bool is_one = problem.options().sync == Sync::microbatch;
          std::vector<std::size_t> line_of(cells.num_cells(), 0);
          if (!is_one) std::iota(line_of.begin(), line_of.end(), std::size_t{0});
          return line_of;
        }()) {}

  GridSearch(const Problem& problem, const CellItems& cells, const GridShape& shape,
             std::vector<std::size_t> line_of_cell)
      : problem_(problem),
        cells_(cells),
        num_slots_(static_cast<std::size_t>(shape.num_slots)),
        num_cells_(cells.num_cells()),
        capacity_(shape.capacity),
        pipeline_(problem.topology().pipeline),
        is_order_free_(problem.options().pass == Pass::forward && pipeline_.virtual_ == 1 &&
                       pipeline_.shares.empty()),
        time_(pipeline_, shape.num_slots, problem.options().pass),
        rows_(pipeline_),
        bins_(num_cells_ * num_slots_),
        line_of_(std::move(line_of_cell)) {
    for (std::size_t cell = 0; cell < num_cells_; ++cell) {
      if (line_of_[cell] == lines_.size()) lines_.push_back({.first = cell, .end = cell});
      lines_.back().end = cell + 1;
    }
    slowest_.resize(lines_.size() * num_slots_);
    for (const PassCost& cost : slowest_) rows_.add(cost);
    order_.resize(slowest_.size());
    std::iota(order_.begin(), order_.end(), 0);
  }

  // Takes what is in the bins of a draft and leaves there what was in its own.
  void exchange_with(CellDraft& draft) {
    for (std::size_t cell = 0, i = 0; cell < num_cells_; ++cell) {
      for (std::size_t slot = 0; slot < num_slots_; ++slot, ++i) {
        Bin& filled = bins_[i];
        std::swap(filled.is_closed, draft.bins[i].is_closed);
        std::swap(filled.items, draft.bins[i].items);
        filled.cost = 0;
        filled.tokens = 0;
        filled.num_sequences = 0;
        filled.pass = {};
        for (const ItemId item : filled.items) count(filled, cell, item);
        if (!filled.is_closed) filled.pass = pass_of(cell, filled.cost, filled.items.empty());
      }
    }
    time_all();
  }

  void improve(Nanoseconds bound, std::int64_t work) {
    if (work <= 0 || num_slots_ < 2) return;
    if (!is_order_free_) reorder(bound, work / 8);
    exchange_items(bound, work - work / 4);
    if (!is_order_free_) reorder(bound, work / 8);
  }

  Nanoseconds longest() const { return times_[slowest_line_]; }

  // Leaves nothing in the bins.
  Grid take_grid() {
    Grid result{.slots = DraftSlots(num_slots_), .time = longest(), .is_full = true};
    for (std::size_t slot = 0; slot < num_slots_; ++slot) {
      result.slots[slot].reserve(num_cells_);
      std::int64_t num_busy = 0;  // ranks
      for (std::size_t cell = 0; cell < num_cells_; ++cell) {
        Bin& full = bin({cell, slot});
        if (full.items.empty()) continue;
        result.slots[slot].push_back({.ranks = cells_.ranks(cell), .items = std::move(full.items)});
        num_busy += cells_.ranks(cell).size;
      }
      result.is_full = result.is_full && num_busy == problem_.num_ranks();
    }
    return result;
  }

 private:
  const Bin& bin(Spot spot) const { return bins_[spot.cell * num_slots_ + spot.slot]; }
  Bin& bin(Spot spot) { return bins_[spot.cell * num_slots_ + spot.slot]; }
  // A line is a pipeline that runs by itself: a cell, or several that wait for each other.
  struct Line {
    std::size_t first;  // cells
    std::size_t end;
  };
  bool is_single(std::size_t line) const { return lines_[line].end - lines_[line].first == 1; }
  const PassCost& slowest(std::size_t line, std::size_t slot) const {
    return slowest_[line * num_slots_ + slot];
  }
  void set_slowest(std::size_t line, std::size_t slot, const PassCost& cost) {
    slowest_[line * num_slots_ + slot] = cost;
    rows_.set(line * num_slots_ + slot, cost);
  }

  bool takes(Spot spot, ItemId item, ItemId without = -1) const {
    const Bin& target = bin(spot);
    if (target.is_closed || !cells_.fits(spot.cell, item)) return false;
    if (target.items.empty() || (without >= 0 && target.items.size() == 1)) return true;
    const Tokens left = without < 0 ? 0 : cells_.tokens(spot.cell, without);
    const std::int32_t sequences_left = without < 0 ? 0 : problem_.num_sequences(without);
    const std::int32_t most = problem_.options().max_sequences;
    return target.tokens - left + cells_.tokens(spot.cell, item) <=
               capacity_ * cells_.ranks(spot.cell).size &&
           (most == 0 ||
            target.num_sequences - sequences_left + problem_.num_sequences(item) <= most);
  }

  // What a micro-batch of a cell takes whose items cost as much; without items a placeholder.
  PassCost pass_of(std::size_t cell, Nanoseconds cost_of_items, bool is_empty) const {
    const Nanoseconds even = is_empty ? problem_.microbatch() : cells_.fixed(cell) + cost_of_items;
    const Nanoseconds cost = Problem::slowed(even, problem_.slowness(cells_.ranks(cell)));
    PassCost pass = split_cost(cost, problem_.model().forward_share);
    if (problem_.options().pass == Pass::forward) pass.backward = 0;
    return pass;
  }
  // After an item leaves and another joins (-1: none does).
  PassCost pass_with(Spot spot, ItemId leaving, ItemId joining) const {
    const Bin& changed = bin(spot);
    Nanoseconds cost = changed.cost;
    if (leaving >= 0) cost -= cells_.cost(spot.cell, leaving);
    if (joining >= 0) cost += cells_.cost(spot.cell, joining);
    return pass_of(spot.cell, cost, joining < 0 && changed.items.size() == 1);
  }
  // These leave `pass` as it is.
  void put(Bin& target, std::size_t cell, ItemId item) const {
    target.items.push_back(item);
    count(target, cell, item);
  }
  void count(Bin& target, std::size_t cell, ItemId item) const {
    target.cost += cells_.cost(cell, item);
    target.tokens += cells_.tokens(cell, item);
    target.num_sequences += problem_.num_sequences(item);
  }
  void remove(Bin& source, std::size_t cell, ItemId item) const {
    source.items.erase(std::find(source.items.begin(), source.items.end(), item));
    source.cost -= cells_.cost(cell, item);
    source.tokens -= cells_.tokens(cell, item);
    source.num_sequences -= problem_.num_sequences(item);
  }

  Nanoseconds line_time(std::size_t line) {
    work_ -= static_cast<std::int64_t>(num_slots_) * pipeline_.num_chunks() * 2;
    return time_.makespan(rows_, std::span(order_).subspan(line * num_slots_, num_slots_));
  }
  void find_slowest(std::size_t line, std::size_t slot) {
    PassCost most = {};
    for (std::size_t cell = lines_[line].first; cell < lines_[line].end; ++cell) {
      const PassCost& pass = bin({cell, slot}).pass;
      most.forward = std::max(most.forward, pass.forward);
      most.backward = std::max(most.backward, pass.backward);
    }
    set_slowest(line, slot, most);
    work_ -= static_cast<std::int64_t>(lines_[line].end - lines_[line].first) - 1;
  }
  // The same after one bin of the slot changed, which took `before`.
  void find_slowest(std::size_t line, Spot changed, const PassCost& before) {
    PassCost most = slowest(line, changed.slot);
    const bool may_fall = before.forward >= most.forward || before.backward >= most.backward;
    if (may_fall || is_single(line)) {
      find_slowest(line, changed.slot);
      return;
    }
    const PassCost& now = bin(changed).pass;
    most.forward = std::max(most.forward, now.forward);
    most.backward = std::max(most.backward, now.backward);
    set_slowest(line, changed.slot, most);
    work_ -= static_cast<std::int64_t>(lines_[line].end - lines_[line].first) - 1;
  }
  void time_all() {
    times_.resize(lines_.size());
    for (std::size_t line = 0; line < lines_.size(); ++line) {
      for (std::size_t slot = 0; slot < num_slots_; ++slot) find_slowest(line, slot);
      times_[line] = line_time(line);
    }
    set_time(0, times_[0]);
  }
  void set_time(std::size_t line, Nanoseconds time) {
    times_[line] = time;
    slowest_line_ =
        static_cast<std::size_t>(std::max_element(times_.begin(), times_.end()) - times_.begin());
  }

  // The best order of the slowest lines, one after the other.
  void reorder(Nanoseconds bound, std::int64_t work) {
    const std::int64_t share = std::max<std::int64_t>(1, work / 4);
    for (int round = 0; round < 8 && longest() > bound; ++round) {
      const std::size_t line = slowest_line_;
      std::vector<PipelineItem> items;
      for (std::size_t slot = 0; slot < num_slots_; ++slot) {
        items.push_back({.cost = slowest(line, slot)});
      }
      const MicrobatchOrder best = order_microbatches(
          items, pipeline_, {.pass = problem_.options().pass, .max_work = share, .bound_work = 0});
      if (best.order.empty() || best.time_ns >= times_[line]) return;
      std::vector<Bin> old(num_slots_);
      for (std::size_t cell = lines_[line].first; cell < lines_[line].end; ++cell) {
        for (std::size_t slot = 0; slot < num_slots_; ++slot)
          std::swap(old[slot], bin({cell, slot}));
        for (std::size_t slot = 0; slot < num_slots_; ++slot) {
          const auto from = static_cast<std::size_t>(best.order[slot]);
          bin({cell, slot}) = std::move(old[from]);
          set_slowest(line, slot, items[from].cost);
        }
      }
      set_time(line, best.time_ns);
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
    const std::size_t line = slowest_line_;
    const auto any_slot = [&] { return static_cast<std::size_t>(random.below(num_slots_)); };
    const auto any_cell = [&](std::size_t of_line) {
      const Line& cells = lines_[of_line];
      return cells.first + static_cast<std::size_t>(random.below(cells.end - cells.first));
    };
    Spot from{.cell = lines_[line].first, .slot = any_slot()};
    Spot to{.cell = lines_[line].first, .slot = any_slot()};
    const bool may_leave_line = lines_.size() > 1;
    if (!is_single(line)) {
      to.cell = any_cell(line);
      from.cell = to.cell;
      if (random.below(4) > 0) from.cell = slowest_cell(line, from.slot);
    }
    if (may_leave_line && random.below(2) > 0) {
      // Of two others the faster.
      const auto other = [&] {
        const auto step = static_cast<std::size_t>(random.below(lines_.size() - 1)) + 1;
        return (line + step) % lines_.size();
      };
      const std::size_t first = other();
      const std::size_t second = other();
      const std::size_t faster = times_[second] < times_[first] ? second : first;
      to.cell = is_single(faster) ? lines_[faster].first : any_cell(faster);
    }
    if (from == to) return;
    if (from.cell == to.cell && !is_order_free_ && random.below(3) == 0) {
      try_swap_of_slots(from.slot, to.slot, line);
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

  std::size_t slowest_cell(std::size_t line, std::size_t slot) const {
    std::size_t found = lines_[line].first;
    for (std::size_t cell = found + 1; cell < lines_[line].end; ++cell) {
      if (bin({cell, slot}).cost > bin({found, slot}).cost) found = cell;
    }
    return found;
  }

  bool may_change_cell(ItemId item) const {
    return problem_.items_of(cells_.bundle_of(item)).size() == 1;
  }

  void try_swap_of_slots(std::size_t a, std::size_t b, std::size_t line) {
    const auto swap_all = [&] {
      for (std::size_t cell = lines_[line].first; cell < lines_[line].end; ++cell) {
        std::swap(bin({cell, a}), bin({cell, b}));
      }
      const PassCost cost = slowest(line, a);
      set_slowest(line, a, slowest(line, b));
      set_slowest(line, b, cost);
    };
    swap_all();
    const Nanoseconds time = line_time(line);
    if (time <= times_[line]) {
      set_time(line, time);
    } else {
      swap_all();
    }
  }

  Nanoseconds sum_of(std::size_t line, std::size_t a, std::size_t b) const {
    const auto one = [&](std::size_t slot) {
      return slowest(line, slot).forward + slowest(line, slot).backward;
    };
    return a == b ? one(a) : one(a) + one(b);
  }

  void try_exchange(Spot from, ItemId item, Spot to, ItemId other) {
    const std::size_t line = line_of_[from.cell];
    const std::size_t other_line = line_of_[to.cell];
    Bin& a = bin(from);
    Bin& b = bin(to);
    const auto exchange_passes = [&](PassCost& pass_a, PassCost& pass_b) {
      std::swap(a.pass, pass_a);
      std::swap(b.pass, pass_b);
      find_slowest(line, from, pass_a);
      find_slowest(other_line, to, pass_b);
    };
    const bool is_inside = line == other_line;
    const Nanoseconds sum = is_inside ? sum_of(line, from.slot, to.slot) : 0;
    PassCost pass_a = pass_with(from, item, other);
    PassCost pass_b = pass_with(to, other, item);
    exchange_passes(pass_a, pass_b);
    const Nanoseconds time = line_time(line);
    // Cells that wait for each other: what does not help now shall at least make a slot shorter.
    const bool is_better =
        !is_inside || time < times_[line]
            ? time < times_[line]
            : time == times_[line] && (is_single(line) || sum_of(line, from.slot, to.slot) <= sum);
    const Nanoseconds other_time = is_inside || !is_better ? time : line_time(other_line);
    if (!is_better || (!is_inside && other_time >= times_[line])) {
      exchange_passes(pass_a, pass_b);
      return;
    }
    remove(a, from.cell, item);
    if (other >= 0) remove(b, to.cell, other);
    put(b, to.cell, item);
    if (other >= 0) put(a, from.cell, other);
    times_[line] = time;
    set_time(other_line, other_time);
  }

  const Problem& problem_;
  const CellItems& cells_;
  std::size_t num_slots_;
  std::size_t num_cells_;
  Tokens capacity_;  // of a rank
  const PipelineShape& pipeline_;
  // On the way through equal stages slots wait for the longest, wherever that is.
  bool is_order_free_;
  PipelineTime time_;
  ChunkCosts rows_;                   // of slowest_
  std::vector<Bin> bins_;             // by cell, then slot
  std::vector<std::size_t> line_of_;  // of each cell
  std::vector<Line> lines_;
  std::vector<PassCost> slowest_;   // by line, then slot
  std::vector<Nanoseconds> times_;  // of the lines
  std::size_t slowest_line_ = 0;
  std::vector<std::int32_t> order_;  // of all rows
  std::int64_t work_ = 0;
};

}  // namespace

std::optional<Grid> find_grid(const Problem& problem, const CellItems& cells,
                              const GridShape& shape, std::span<const double> heights,
                              Nanoseconds bound, std::int64_t work) {
  std::optional<Nanoseconds> least;
  GridSearch search(problem, cells, shape);
  for (const bool is_wait_counted : {false, true}) {
    if (shape.is_rough && !is_wait_counted) continue;
    auto draft = find_even_cells(problem, cells, shape, heights, is_wait_counted);
    if (!draft) continue;
    search.exchange_with(*draft);
    if (least && search.longest() >= *least) {
      search.exchange_with(*draft);  // back to the first
    } else {
      least = search.longest();
    }
  }
  if (!least) return std::nullopt;
  search.improve(bound, work);
  return search.take_grid();
}

Grid improved_grid(const Problem& problem, CellDraft draft, const GridShape& shape,
                   Nanoseconds bound, std::int64_t work) {
  std::vector<RankRange> ranks;
  std::vector<std::size_t> line_of;
  for (const CellDraft::Cell& cell : draft.cells) {
    ranks.push_back(cell.ranks);
    line_of.push_back(problem.options().sync == Sync::microbatch ? 0 : cell.line);
  }
  const CellItems cells(problem, std::move(ranks));
  GridSearch search(problem, cells, shape, std::move(line_of));
  search.exchange_with(draft);
  search.improve(bound, work);
  return search.take_grid();
}

}  // namespace isochron
