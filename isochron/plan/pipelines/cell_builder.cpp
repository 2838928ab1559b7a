// The bound of room_bound.cpp, carried out. Largest first, the item that is left decides the size
// of the next cell: the one on which it takes the least part of all ranks. The slots of the cell
// are as high as slot_heights() says for the time, with one as long as the item if need be. Tallest
// first each takes the largest items that fit, so that cells hold what is alike, long items stand
// together where slots are long, and small ones fill what they leave.

#include "isochron/plan/pipelines/cell_builder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "isochron/core/radix_sort.h"
#include "isochron/simulate/chunk_cost.h"

namespace isochron {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

}  // namespace

CellBuilder::CellBuilder(const Problem& problem, Tokens capacity, const RankRoom& room,
                         SlotHeights& heights, RestRanks rest, double nanoseconds)
    : problem_(problem),
      capacity_(capacity),
      room_(room),
      slot_heights_(heights),
      rest_(rest),
      nanoseconds_left_(nanoseconds) {
  std::vector<double> areas;  // by item
  std::vector<std::uint64_t> keys;
  for (ItemId item = 0; item < problem.num_items(); ++item) {
    const std::int32_t size = problem.sizes()[problem.smallest_place(item)];
    areas.push_back(static_cast<double>(problem.item_cost(problem.cheapest_price(size), item)) *
                    size);
    keys.push_back(
        ~std::bit_cast<std::uint64_t>(areas.back()));  // in their order: none is negative
  }
  order_ = ascending_positions(std::move(keys));
  for (const ItemId item : order_) areas_.push_back(areas[static_cast<std::size_t>(item)]);
  area_ = std::accumulate(areas_.begin(), areas_.end(), 0.0);
}

const CellBuilder::Table& CellBuilder::table_of(PriceId price) {
  const auto [found, is_new] = tables_.try_emplace(price);
  Table& table = found->second;
  if (!is_new) return table;
  table.price = price;
  table.size = problem_.price(price).size;
  table.fixed = static_cast<double>(problem_.price(price).fixed);
  table.items.resize(order_.size());
  return table;
}

const CellBuilder::Table::Item& CellBuilder::find_item(const Table& table,
                                                       std::size_t place) const {
  const ItemId item = order_[place];
  const bool fits = problem_.item_fits(table.size, item);
  return table.items[place] = {
             .cost = fits ? static_cast<double>(problem_.item_cost(table.price, item)) : infinite,
             .tokens =
                 fits ? problem_.tokens(table.size, item) : std::numeric_limits<Tokens>::max() / 2};
}

void CellBuilder::put(std::size_t bin, std::size_t place) {
  next_[place] = place + 1;
  --num_items_left_;
  area_left_ -= areas_[place];
  built_.placed.push_back({.bin = bin, .item = order_[place]});
}

std::size_t CellBuilder::next_left(std::size_t place) {
  std::size_t found = place;
  while (next_[found] != found) found = next_[found];
  while (next_[place] != place) {
    const std::size_t after = next_[place];
    next_[place] = found;
    place = after;
  }
  return found;
}

// The size on which the item takes the least part of all ranks, for a cell that begins here.
const CellBuilder::Table* CellBuilder::find_table(std::size_t lead, std::int64_t first,
                                                  std::int32_t narrowest, std::int32_t widest,
                                                  SlotRange num_slots, double time) {
  const ItemId item = order_[lead];
  const double most_room = room_.area(time, 0, num_slots);
  PriceId best = -1;
  double least = infinite;
  for (const std::int32_t size : problem_.sizes()) {
    const RankRange ranks{.first = first, .size = size};
    if (size < narrowest) continue;
    if (size > widest || first + size > problem_.num_ranks()) break;
    if (first % problem_.first_step(size) != 0 || !problem_.item_fits(size, item)) continue;
    const PriceId price = problem_.price_of(ranks);
    if (price < 0) continue;
    const auto cost = static_cast<double>(problem_.item_cost(price, item));
    // No larger group has the smaller area, nor more room than that.
    if (problem_.grows_from(size) && cost * size / most_room >= least) break;
    const auto fixed = static_cast<double>(problem_.price(price).fixed);
    const double room = room_.area(time, cost + fixed, num_slots);
    if (room <= 0 || cost * size / room >= least) continue;
    least = cost * size / room;
    best = price;
  }
  return best < 0 ? nullptr : &table_of(best);
}

CellBuilder::Heights CellBuilder::sorted(std::vector<double> of_slot) {
  Heights heights{.of_slot = std::move(of_slot), .tallest_first = {}};
  heights.tallest_first.resize(heights.of_slot.size());
  std::iota(heights.tallest_first.begin(), heights.tallest_first.end(), std::size_t{0});
  std::stable_sort(
      heights.tallest_first.begin(), heights.tallest_first.end(),
      [&](std::size_t a, std::size_t b) { return heights.of_slot[a] > heights.of_slot[b]; });
  return heights;
}

// In parts of the time, for a slot of at least `lead` parts. Slots that wait for each other are
// equally high in all cells: those of the first, which holds the longest item.
const CellBuilder::Heights& CellBuilder::heights_for(double lead, double shortest,
                                                     std::int32_t num_slots) {
  const PipelineShape& shape = problem_.topology().pipeline;
  const Pass pass = problem_.options().pass;
  const double forward_share = problem_.model().forward_share;
  if (free_heights_.of_slot.size() != static_cast<std::size_t>(num_slots)) {
    peak_heights_.clear();
    free_heights_ = sorted(slot_heights_.of(num_slots));
  }
  const bool is_paced = problem_.options().sync == Sync::microbatch;
  if (is_paced && first_heights_ != nullptr) return *first_heights_;
  const double free = tallest(free_heights_);
  first_heights_ = &free_heights_;
  if (lead <= free) return free_heights_;
  // What differs by less than a step is not worth heights of its own.
  constexpr double much = 0.12;
  const double step = lead > much ? 1.003 : 1.03;
  const auto place = static_cast<int>(std::ceil(std::log(lead / free) / std::log(step)));
  const auto [found, is_new] = peak_heights_.try_emplace(lead > much ? -place : place);
  if (is_new) {
    const double longest = std::max(lead, free * std::pow(step, place));
    const PeakCare care = is_spent() ? PeakCare::rough : PeakCare::proper;
    if (care == PeakCare::proper) nanoseconds_left_ -= time_of_peak(shape, pass, num_slots);
    found->second =
        sorted(peak_heights(shape, pass, forward_share, num_slots, 1, longest, shortest, care));
  }
  first_heights_ = &found->second;
  return found->second;
}

// The largest item left at or behind `place` that keeps all limits, or the number of items.
std::size_t CellBuilder::find_fitting(const Table& table, std::size_t place, double time,
                                      Tokens tokens, std::int32_t sequences) {
  const auto is_too_large = [&](std::size_t other) {
    return item_of(table, other).cost > time || item_of(table, other).tokens > tokens;
  };
  constexpr double to_look = 40;
  nanoseconds_left_ -= to_look;
  place = next_left(place);
  while (smallest_ > place && next_left(smallest_ - 1) != smallest_ - 1) --smallest_;
  if (smallest_ <= place || is_too_large(smallest_ - 1)) return order_.size();
  if (is_too_large(place)) {
    std::size_t end = smallest_ - 1;  // is small enough
    for (std::size_t step = 1; place + step < end; step *= 2) {
      if (!is_too_large(place + step)) {
        end = place + step;
        break;
      }
      place += step;
    }
    while (place + 1 < end) {
      const std::size_t middle = place + (end - place) / 2;
      (is_too_large(middle) ? place : end) = middle;
    }
    place = end;
  }
  // Costs and tokens of items are in this order, but for padding and extra costs.
  constexpr int max_tries = 4;
  for (int i = 0; i < max_tries; ++i) {
    place = next_left(place);
    if (place == order_.size()) break;
    if (item_of(table, place).cost <= time && item_of(table, place).tokens <= tokens &&
        problem_.num_sequences(order_[place]) <= sequences) {
      return place;
    }
    ++place;
  }
  return order_.size();
}

// What its items cost; 0 if none fits. The first of them is at or behind `place`, which becomes its
// place.
double CellBuilder::fill_bin(const Table& table, double height, std::int64_t& num_more,
                             std::size_t bin, std::size_t& place) {
  const std::int32_t most = problem_.options().max_sequences;
  constexpr double slack = 1 + 1e-12;
  double time = height * slack - table.fixed;
  Tokens tokens = problem_.capacity() * table.size;
  std::int32_t sequences = most == 0 ? std::numeric_limits<std::int32_t>::max() : most;
  double cost = 0;
  std::size_t from = place;
  for (bool is_empty = true; is_empty || num_more > 0; is_empty = false) {
    // What is left of a bin only gets less.
    from = find_fitting(table, from, time, tokens, sequences);
    if (from == order_.size()) return cost;
    if (is_empty) place = from;
    if (!is_empty) --num_more;
    put(bin, from);
    cost += item_of(table, from).cost;
    time -= item_of(table, from).cost;
    tokens = std::min(tokens, capacity_ * table.size) - item_of(table, from).tokens;
    sequences -= problem_.num_sequences(order_[from]);
  }
  return cost;
}

// A cell with something in every slot but `closed`, as long as there is anything left: if nothing
// fits, the smallest.
void CellBuilder::add_cell(const Table& table, std::int64_t first, const Heights& heights,
                           std::size_t closed, double time) {
  const std::size_t num_slots = heights.of_slot.size();
  const std::size_t first_bin = built_.cells.size() * num_slots;
  built_.cells.push_back(
      {.cell = {.ranks = {.first = first, .size = table.size}, .line = num_lines_},
       .is_wide = false,
       .slot = closed});
  // What is needed for all slots that are still to come, in cells as narrow as can be.
  const auto num_open = static_cast<std::int64_t>(num_slots) - (closed < num_slots ? 1 : 0);
  const std::int64_t num_left = problem_.num_ranks() - first - table.size;
  std::int64_t num_more =
      num_items_left_ - (num_open + static_cast<std::int64_t>(num_slots) *
                                        num_cells(num_left, narrowest_size(first)));
  std::size_t place = 0;  // all larger ones are taken, or too large for the slots that follow
  for (const std::size_t slot : heights.tallest_first) {
    if (slot == closed) continue;
    const std::size_t first_placed = built_.placed.size();
    double cost = fill_bin(table, heights.of_slot[slot] * time, num_more, first_bin + slot, place);
    if (built_.placed.size() == first_placed) {
      while (smallest_ > 0 && next_left(smallest_ - 1) != smallest_ - 1) --smallest_;
      if (smallest_ == 0 || item_of(table, smallest_ - 1).cost == infinite) continue;
      cost = item_of(table, smallest_ - 1).cost;
      put(first_bin + slot, smallest_ - 1);
    }
    count_slot(table, slot, cost);
  }
}

// A cell that runs one item in the lowest slot that is long enough for it; the others are closed.
std::size_t CellBuilder::add_wide_cell(const Table& table, std::int64_t first,
                                       const Heights& heights, std::size_t lead, double time) {
  const double needed = (item_of(table, lead).cost + table.fixed) / time;
  std::size_t slot = heights.tallest_first.front();
  for (const std::size_t lower : heights.tallest_first) {
    if (heights.of_slot[lower] < needed) break;
    slot = lower;
  }
  put(built_.cells.size() * heights.of_slot.size() + slot, lead);
  built_.cells.push_back(
      {.cell = {.ranks = {.first = first, .size = table.size}, .line = num_lines_},
       .is_wide = true,
       .slot = slot});
  count_slot(table, slot, item_of(table, lead).cost);
  return slot;
}

// The cells beside the slot of a wide one: of those sizes on which the largest item that fits costs
// little more than on its best one, the widest.
namespace {

// Of very many sizes the wide ones in steps of an eighth.
bool is_tried(const Problem& problem, std::int32_t size) {
  constexpr std::size_t few_sizes = 256;
  if (problem.sizes().size() <= few_sizes) return true;
  const auto step = static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(size)) / 8);
  return step == 0 || size % step == 0;
}

}  // namespace

void CellBuilder::add_cells_beside(const Table& wide, std::int64_t first, const Heights& heights,
                                   std::size_t closed, double time) {
  double limit = 0;
  for (std::size_t slot = 0; slot < heights.of_slot.size(); ++slot) {
    if (slot != closed) limit = std::max(limit, heights.of_slot[slot] * time);
  }
  const double little = 1.15;
  const std::int64_t end = first + wide.size;
  while (first < end && num_items_left_ > 0) {
    const Table* best = nullptr;
    double least = infinite;  // area over the best one
    for (const std::int32_t size : problem_.sizes()) {
      if (first + size > end) break;
      if (size < narrowest_size(first) || first % problem_.first_step(size) != 0) continue;
      if (!is_tried(problem_, size)) continue;
      const PriceId price = problem_.price_of({.first = first, .size = size});
      if (price < 0) continue;
      const Table& table = table_of(price);
      const std::size_t lead =
          find_fitting(table, 0, limit - table.fixed, problem_.capacity() * size,
                       std::numeric_limits<std::int32_t>::max());
      const double excess = lead < order_.size()
                                ? std::max(little, item_of(table, lead).cost * size / areas_[lead])
                                : infinite;
      if (best != nullptr && excess > least) continue;
      best = &table;
      least = excess;
    }
    if (best == nullptr) return;
    add_cell(*best, first, heights, closed, time);
    first += best->size;
  }
}

// So many cells of a size have place on as many ranks, with those of smaller sizes on the rest.
std::int64_t CellBuilder::num_cells(std::int64_t num_ranks, std::int32_t size) const {
  std::int64_t count = num_ranks / size;
  std::int64_t rest = num_ranks % size;
  if (rest_ == RestRanks::idle) return count;
  const auto sizes = problem_.sizes();
  for (auto smaller = std::lower_bound(sizes.begin(), sizes.end(), size);
       rest > 0 && smaller != sizes.begin();) {
    --smaller;
    count += rest / *smaller;
    rest %= *smaller;
  }
  return count;
}

// Cells so narrow that there is something for every slot of as many as there is place for.
std::int32_t CellBuilder::narrowest_size(std::int64_t first) const {
  const std::int64_t num_left = problem_.num_ranks() - first;
  const auto num_slots = static_cast<std::int64_t>(slot_costs_.size());
  for (const std::int32_t size : problem_.sizes()) {
    if (num_slots * num_cells(num_left, size) <= num_items_left_) return size;
  }
  return problem_.sizes().back();
}

// A bin of the slot, whose items cost so much.
void CellBuilder::count_slot(const Table& table, std::size_t slot, double cost) {
  PassCost pass =
      split_cost(static_cast<Nanoseconds>(table.fixed + cost), problem_.model().forward_share);
  if (problem_.options().pass == Pass::forward) pass.backward = 0;
  PassCost& slowest = slot_costs_[slot];
  if (pass.forward <= slowest.forward && pass.backward <= slowest.backward) return;
  slowest.forward = std::max(slowest.forward, pass.forward);
  slowest.backward = std::max(slowest.backward, pass.backward);
  is_line_slower_ = true;
}

// Of what the line holds so far, as RankRoom counts it.
double CellBuilder::line_time() {
  const PipelineShape& shape = problem_.topology().pipeline;
  const Pass pass = problem_.options().pass;
  const auto num_slots = static_cast<std::int32_t>(slot_costs_.size());
  if (!pipeline_ || pipeline_->num_slots() != num_slots) pipeline_.emplace(shape, num_slots, pass);
  const double for_an_operation = shape.virtual_ == 1 && shape.shares.empty() ? 1.5 : 4;
  nanoseconds_left_ -= for_an_operation * num_slots * shape.num_chunks();
  const double share = pass == Pass::train ? 1 : problem_.model().forward_share;
  return static_cast<double>(pipeline_->makespan(slot_costs_) - room_.transfers()) * shape.stages /
         share;
}

bool CellBuilder::builds_cells(std::int32_t num_slots, double time) {
  next_.resize(order_.size() + 1);
  std::iota(next_.begin(), next_.end(), std::size_t{0});
  smallest_ = order_.size();
  num_items_left_ = problem_.num_items();
  area_left_ = area_;
  first_heights_ = nullptr;
  built_.cells.clear();
  built_.placed.clear();
  num_lines_ = 0;
  is_line_slower_ = false;
  time_ = 0;
  slot_costs_.assign(static_cast<std::size_t>(num_slots), {});
  built_.num_slots = slot_costs_.size();
  const bool is_paced = problem_.options().sync == Sync::microbatch;
  constexpr double much = 1.03;
  const SlotRange counted{.least = num_slots, .most = num_slots};
  const double most_room = std::max(0.0, room_.area(time, 0, counted));
  room_left_ = problem_.num_ranks() * most_room;
  const std::size_t none = slot_costs_.size();
  std::int64_t first = 0;
  std::int32_t widest = problem_.sizes().back();
  for (std::size_t lead = next_left(0); lead < order_.size(); lead = next_left(0)) {
    const Table* table =
        find_table(lead, first, std::min(narrowest_size(first), widest), widest, counted, time);
    if (table == nullptr) return false;
    const double needed = (item_of(*table, lead).cost + table->fixed) / time;
    const double shortest = (item_of(*table, order_.size() - 1).cost + table->fixed) / time;
    const Heights& heights = heights_for(needed, shortest, num_slots);
    if (heights.of_slot.empty()) return false;
    if (needed > tallest(free_heights_) && table->size > problem_.sizes().front()) {
      const std::size_t closed = add_wide_cell(*table, first, heights, lead, time);
      add_cells_beside(*table, first, heights, closed, time);
    } else {
      add_cell(*table, first, heights, none, time);
    }
    if (std::exchange(is_line_slower_, false)) time_ = std::max(time_, line_time());
    if (next_left(0) == lead || time_ > much * time) return false;
    first += table->size;
    // No rank does more, however the rest is put.
    room_left_ = static_cast<double>(problem_.num_ranks() - first) * most_room;
    if (area_left_ > room_left_ + area_ * 1e-9) return false;
    widest = table->size;
    ++num_lines_;
    if (!is_paced) std::fill(slot_costs_.begin(), slot_costs_.end(), PassCost{});
  }
  return true;
}

CellDraft CellBuilder::draft_of(const Layout& layout) {
  CellDraft draft{.cells = {},
                  .bins = std::vector<CellDraft::Bin>(layout.cells.size() * layout.num_slots)};
  for (const Built& built : layout.cells) {
    for (std::size_t slot = 0; slot < layout.num_slots; ++slot) {
      draft.bins[draft.cells.size() * layout.num_slots + slot].is_closed =
          (slot == built.slot) != built.is_wide;
    }
    draft.cells.push_back(built.cell);
  }
  std::vector<std::size_t> counts(draft.bins.size(), 0);
  for (const Placed& placed : layout.placed) ++counts[placed.bin];
  for (std::size_t bin = 0; bin < counts.size(); ++bin) draft.bins[bin].items.reserve(counts[bin]);
  for (const auto& [bin, item] : layout.placed) draft.bins[bin].items.push_back(item);
  return draft;
}

}  // namespace isochron
