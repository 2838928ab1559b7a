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
      rank_order_(problem),
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

std::optional<CellBuilder::Seat> CellBuilder::find_seat(std::int64_t first_place,
                                                        std::int32_t size) {
  const auto ranks = rank_order_.find_ranks(first_place, size);
  if (!ranks || ranks->first % problem_.first_step(size) != 0) return std::nullopt;
  const PriceId price = problem_.price_of(*ranks);
  if (price < 0) return std::nullopt;
  return Seat{.table = &table_of(price),
              .first_place = first_place,
              .ranks = *ranks,
              .slowness = problem_.slowness(*ranks)};
}

// The size on which the item takes the least part of all ranks, for a cell that begins here.
std::optional<CellBuilder::Seat> CellBuilder::best_seat(std::size_t lead, std::int64_t first_place,
                                                        std::int32_t narrowest, std::int32_t widest,
                                                        SlotRange num_slots, double time) {
  const ItemId item = order_[lead];
  const double most_room = room_.area(time * rank_order_.fastest(), 0, num_slots);
  std::optional<Seat> best;
  double least = infinite;
  for (const std::int32_t size : problem_.sizes()) {
    if (size < narrowest) continue;
    if (size > widest || first_place + size > problem_.num_ranks()) break;
    if (!problem_.item_fits(size, item)) continue;
    const auto seat = find_seat(first_place, size);
    if (!seat) continue;
    const double cost = item_of(*seat->table, lead).cost;
    const double speed = rank_order_.speed(first_place, first_place + size);
    // No larger group has the smaller area, nor more room than that.
    const double least_area = cost * size * rank_order_.slowest();
    if (problem_.grows_from(size) && least_area / most_room >= least) break;
    const double room = room_.area(time / seat->slowness, cost + seat->table->fixed, num_slots);
    if (room <= 0 || cost * speed / room >= least) continue;
    least = cost * speed / room;
    best = seat;
  }
  return best;
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
void CellBuilder::add_cell(const Seat& seat, const Heights& heights, std::size_t closed,
                           double time) {
  const Table& table = *seat.table;
  const double own_time = time / seat.slowness;
  const std::size_t num_slots = heights.of_slot.size();
  const std::size_t first_bin = built_.cells.size() * num_slots;
  built_.cells.push_back(
      {.cell = {.ranks = seat.ranks, .line = num_lines_}, .is_wide = false, .slot = closed});
  // What is needed for all slots that are still to come, in cells as narrow as can be.
  const auto num_open = static_cast<std::int64_t>(num_slots) - (closed < num_slots ? 1 : 0);
  const std::int64_t num_left = problem_.num_ranks() - seat.first_place - table.size;
  std::int64_t num_more =
      num_items_left_ - (num_open + static_cast<std::int64_t>(num_slots) *
                                        num_cells(num_left, narrowest_size(seat.first_place)));
  std::size_t place = 0;  // all larger ones are taken, or too large for the slots that follow
  for (const std::size_t slot : heights.tallest_first) {
    if (slot == closed) continue;
    const std::size_t first_placed = built_.placed.size();
    double cost =
        fill_bin(table, heights.of_slot[slot] * own_time, num_more, first_bin + slot, place);
    if (built_.placed.size() == first_placed) {
      while (smallest_ > 0 && next_left(smallest_ - 1) != smallest_ - 1) --smallest_;
      if (smallest_ == 0 || item_of(table, smallest_ - 1).cost == infinite) continue;
      cost = item_of(table, smallest_ - 1).cost;
      put(first_bin + slot, smallest_ - 1);
    }
    count_slot(seat, slot, cost);
  }
}

// A cell that runs one item in the lowest slot that is long enough for it; the others are closed.
std::size_t CellBuilder::add_wide_cell(const Seat& seat, const Heights& heights, std::size_t lead,
                                       double time) {
  const double needed = part_of_time(seat, lead, time);
  std::size_t slot = heights.tallest_first.front();
  for (const std::size_t lower : heights.tallest_first) {
    if (heights.of_slot[lower] < needed) break;
    slot = lower;
  }
  put(built_.cells.size() * heights.of_slot.size() + slot, lead);
  built_.cells.push_back(
      {.cell = {.ranks = seat.ranks, .line = num_lines_}, .is_wide = true, .slot = slot});
  count_slot(seat, slot, item_of(*seat.table, lead).cost);
  return slot;
}

namespace {

// Of very many sizes the wide ones in steps of an eighth.
bool is_tried(const Problem& problem, std::int32_t size) {
  constexpr std::size_t few_sizes = 256;
  if (problem.sizes().size() <= few_sizes) return true;
  const auto step = static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(size)) / 8);
  return step == 0 || size % step == 0;
}

}  // namespace

// The cells beside the slot of a wide one: of those sizes on which the largest item that fits costs
// little more than on its best one, the widest.
void CellBuilder::add_cells_beside(const Seat& wide, const Heights& heights, std::size_t closed,
                                   double time) {
  double limit = 0;
  for (std::size_t slot = 0; slot < heights.of_slot.size(); ++slot) {
    if (slot != closed) limit = std::max(limit, heights.of_slot[slot] * time);
  }
  constexpr double little = 1.15;
  const std::int64_t end = wide.first_place + wide.ranks.size;
  for (std::int64_t first = wide.first_place; first < end && num_items_left_ > 0;) {
    std::optional<Seat> best;
    double least = infinite;  // area over the best one
    for (const std::int32_t size : problem_.sizes()) {
      if (first + size > end) break;
      if (size < narrowest_size(first) || !is_tried(problem_, size)) continue;
      const auto seat = find_seat(first, size);
      if (!seat) continue;
      const Table& table = *seat->table;
      const std::size_t lead =
          find_fitting(table, 0, limit / seat->slowness - table.fixed, problem_.capacity() * size,
                       std::numeric_limits<std::int32_t>::max());
      const double speed = rank_order_.speed(first, first + size) * seat->slowness;
      double excess = infinite;
      if (lead < order_.size()) {
        excess = std::max(little, item_of(table, lead).cost * speed / areas_[lead]);
      }
      if (best && excess > least) continue;
      best = seat;
      least = excess;
    }
    if (!best) return;
    add_cell(*best, heights, closed, time);
    first += best->ranks.size;
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
std::int32_t CellBuilder::narrowest_size(std::int64_t first_place) const {
  const std::int64_t num_left = problem_.num_ranks() - first_place;
  const auto num_slots = static_cast<std::int64_t>(slot_costs_.size());
  for (const std::int32_t size : problem_.sizes()) {
    if (num_slots * num_cells(num_left, size) <= num_items_left_) return size;
  }
  return problem_.sizes().back();
}

// A bin of the slot, whose items cost so much.
void CellBuilder::count_slot(const Seat& seat, std::size_t slot, double cost) {
  const double own_cost = (seat.table->fixed + cost) * seat.slowness;
  PassCost pass = split_cost(static_cast<Nanoseconds>(own_cost), problem_.model().forward_share);
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
  // Of a rank of speed 1.
  const double most_room = std::max(0.0, room_.area(time, 0, counted));
  const auto room_from = [&](std::int64_t place) {
    return rank_order_.speed(place, problem_.num_ranks()) * most_room;
  };
  room_left_ = room_from(0);
  const std::size_t none = slot_costs_.size();
  std::int64_t first = 0;
  std::int32_t widest = problem_.sizes().back();
  for (std::size_t lead = next_left(0); lead < order_.size(); lead = next_left(0)) {
    const auto seat =
        best_seat(lead, first, std::min(narrowest_size(first), widest), widest, counted, time);
    if (!seat) return false;
    const double needed = part_of_time(*seat, lead, time);
    const double shortest = part_of_time(*seat, order_.size() - 1, time);
    const Heights& heights = heights_for(needed, shortest, num_slots);
    if (heights.of_slot.empty()) return false;
    if (needed > tallest(free_heights_) && seat->ranks.size > problem_.sizes().front()) {
      const std::size_t closed = add_wide_cell(*seat, heights, lead, time);
      add_cells_beside(*seat, heights, closed, time);
    } else {
      add_cell(*seat, heights, none, time);
    }
    if (std::exchange(is_line_slower_, false)) time_ = std::max(time_, line_time());
    if (next_left(0) == lead || time_ > much * time) return false;
    first += seat->ranks.size;
    // No rank does more, however the rest is put.
    room_left_ = room_from(first);
    if (area_left_ > room_left_ + area_ * 1e-9) return false;
    widest = static_cast<std::int32_t>(seat->ranks.size);
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
