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

#include "isochron/plan/pipelines/slot_heights.h"
#include "isochron/simulate/chunk_cost.h"

namespace isochron {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

}  // namespace

CellBuilder::CellBuilder(const Problem& problem, Tokens capacity, const RankRoom& room)
    : problem_(problem),
      capacity_(capacity),
      room_(room),
      order_(static_cast<std::size_t>(problem.num_items())) {
  std::iota(order_.begin(), order_.end(), 0);
  std::vector<double> areas;  // by item
  for (const ItemId item : order_) {
    const std::int32_t size = problem.sizes()[problem.smallest_place(item)];
    areas.push_back(static_cast<double>(problem.item_cost(problem.cheapest_price(size), item)) *
                    size);
  }
  std::stable_sort(order_.begin(), order_.end(), [&](ItemId a, ItemId b) {
    return areas[static_cast<std::size_t>(a)] > areas[static_cast<std::size_t>(b)];
  });
  for (const ItemId item : order_) areas_.push_back(areas[static_cast<std::size_t>(item)]);
}

const CellBuilder::Table& CellBuilder::table_of(PriceId price) {
  const auto [found, is_new] = tables_.try_emplace(price);
  Table& table = found->second;
  if (!is_new) return table;
  table.price = price;
  table.size = problem_.price(price).size;
  table.fixed = static_cast<double>(problem_.price(price).fixed);
  for (const ItemId item : order_) {
    const bool fits = problem_.item_fits(table.size, item);
    table.costs.push_back(fits ? static_cast<double>(problem_.item_cost(price, item)) : infinite);
    table.tokens.push_back(fits ? problem_.tokens(table.size, item)
                                : std::numeric_limits<Tokens>::max() / 2);
  }
  return table;
}

void CellBuilder::take(std::size_t place) {
  next_[place] = place + 1;
  --num_items_left_;
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
    if (problem_.has_ordered_links() && cost * size / most_room >= least) break;
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
    free_heights_ = sorted(slot_heights(shape, pass, forward_share, num_slots, 1));
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
    found->second =
        sorted(peak_heights(shape, pass, forward_share, num_slots, 1, longest, shortest));
  }
  first_heights_ = &found->second;
  return found->second;
}

// The largest item left that keeps all limits, or the number of items.
std::size_t CellBuilder::find_fitting(const Table& table, double time, Tokens tokens,
                                      std::int32_t sequences) {
  const auto by_time = std::partition_point(table.costs.begin(), table.costs.end(),
                                            [&](double cost) { return cost > time; });
  const auto by_tokens = std::partition_point(table.tokens.begin(), table.tokens.end(),
                                              [&](Tokens count) { return count > tokens; });
  std::size_t place = static_cast<std::size_t>(
      std::max(by_time - table.costs.begin(), by_tokens - table.tokens.begin()));
  // Costs and tokens of items are in this order, but for padding and extra costs.
  constexpr int max_tries = 4;
  for (int i = 0; i < max_tries; ++i) {
    place = next_left(place);
    if (place == order_.size()) break;
    if (table.costs[place] <= time && table.tokens[place] <= tokens &&
        problem_.num_sequences(order_[place]) <= sequences) {
      return place;
    }
    ++place;
  }
  return order_.size();
}

void CellBuilder::fill_bin(const Table& table, double height, std::int64_t& num_more,
                           std::vector<ItemId>& bin) {
  const std::int32_t most = problem_.options().max_sequences;
  constexpr double slack = 1 + 1e-12;
  double time = height * slack - table.fixed;
  Tokens tokens = problem_.capacity() * table.size;
  std::int32_t sequences = most == 0 ? std::numeric_limits<std::int32_t>::max() : most;
  while (bin.empty() || num_more > 0) {
    const std::size_t place = find_fitting(table, time, tokens, sequences);
    if (place == order_.size()) return;
    if (!bin.empty()) --num_more;
    take(place);
    bin.push_back(order_[place]);
    time -= table.costs[place];
    tokens = std::min(tokens, capacity_ * table.size) - table.tokens[place];
    sequences -= problem_.num_sequences(order_[place]);
  }
}

// A cell with something in every slot but `closed`, as long as there is anything left: if nothing
// fits, the smallest.
void CellBuilder::add_cell(const Table& table, std::int64_t first, const Heights& heights,
                           std::size_t closed, double time) {
  const std::size_t place = draft_.bins.size();
  const std::size_t num_slots = heights.of_slot.size();
  draft_.cells.push_back({.ranks = {.first = first, .size = table.size}, .line = num_lines_});
  draft_.bins.resize(place + num_slots);
  // What is needed for all slots that are still to come, in cells as narrow as can be.
  const auto num_open = static_cast<std::int64_t>(num_slots) - (closed < num_slots ? 1 : 0);
  const std::int64_t num_left = problem_.num_ranks() - first - table.size;
  std::int64_t num_more = num_items_left_ - (num_open + static_cast<std::int64_t>(num_slots) *
                                                            (num_left / narrowest_size(first)));
  for (const std::size_t slot : heights.tallest_first) {
    CellDraft::Bin& bin = draft_.bins[place + slot];
    bin.is_closed = slot == closed;
    if (bin.is_closed) continue;
    fill_bin(table, heights.of_slot[slot] * time, num_more, bin.items);
    if (bin.items.empty()) {
      while (smallest_ > 0 && next_left(smallest_ - 1) != smallest_ - 1) --smallest_;
      if (smallest_ == 0 || table.costs[smallest_ - 1] == infinite) continue;
      take(smallest_ - 1);
      bin.items.push_back(order_[smallest_ - 1]);
    }
    count_bin(table, slot, bin.items);
  }
}

// A cell that runs one item in the lowest slot that is long enough for it; the others are closed.
std::size_t CellBuilder::add_wide_cell(const Table& table, std::int64_t first,
                                       const Heights& heights, std::size_t lead, double time) {
  const double needed = (table.costs[lead] + table.fixed) / time;
  std::size_t slot = heights.tallest_first.front();
  for (const std::size_t lower : heights.tallest_first) {
    if (heights.of_slot[lower] < needed) break;
    slot = lower;
  }
  const std::size_t place = draft_.bins.size();
  draft_.cells.push_back({.ranks = {.first = first, .size = table.size}, .line = num_lines_});
  draft_.bins.resize(place + heights.of_slot.size(), {.items = {}, .is_closed = true});
  take(lead);
  draft_.bins[place + slot] = {.items = {order_[lead]}, .is_closed = false};
  count_bin(table, slot, draft_.bins[place + slot].items);
  return slot;
}

// The cells beside the slot of a wide one: of those sizes on which the largest item that fits costs
// little more than on its best one, the widest.
namespace {

// Of very many sizes the wide ones in steps of an eighth.
bool is_tried(const Problem& problem, std::int32_t size) {
  constexpr std::size_t few_sizes = 256;
  if (problem.sizes().size() <= few_sizes || size < 16) return true;
  return size % (static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(size))) / 8) ==
         0;
}

}  // namespace

void CellBuilder::add_cells_beside(const Table& wide, std::int64_t first, const Heights& heights,
                                   std::size_t closed, double time) {
  double limit = 0;
  for (std::size_t slot = 0; slot < heights.of_slot.size(); ++slot) {
    if (slot != closed) limit = std::max(limit, heights.of_slot[slot] * time);
  }
  constexpr double little = 1.15;
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
      const std::size_t lead = find_fitting(table, limit - table.fixed, problem_.capacity() * size,
                                            std::numeric_limits<std::int32_t>::max());
      const double excess = lead < order_.size()
                                ? std::max(little, table.costs[lead] * size / areas_[lead])
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

// Cells so narrow that there is something for every slot of as many as there is place for.
std::int32_t CellBuilder::narrowest_size(std::int64_t first) const {
  const std::int64_t num_left = problem_.num_ranks() - first;
  const auto num_slots = static_cast<std::int64_t>(slot_costs_.size());
  for (const std::int32_t size : problem_.sizes()) {
    if (num_slots * (num_left / size) <= num_items_left_) return size;
  }
  return problem_.sizes().back();
}

void CellBuilder::count_bin(const Table& table, std::size_t slot,
                            const std::vector<ItemId>& items) {
  auto cost = static_cast<Nanoseconds>(table.fixed);
  for (const ItemId item : items) cost += problem_.item_cost(table.price, item);
  PassCost pass = split_cost(cost, problem_.model().forward_share);
  if (problem_.options().pass == Pass::forward) pass.backward = 0;
  slot_costs_[slot].forward = std::max(slot_costs_[slot].forward, pass.forward);
  slot_costs_[slot].backward = std::max(slot_costs_[slot].backward, pass.backward);
}

// Of what the line holds so far, as RankRoom counts it.
double CellBuilder::line_time() {
  const PipelineShape& shape = problem_.topology().pipeline;
  const Pass pass = problem_.options().pass;
  const auto num_slots = static_cast<std::int32_t>(slot_costs_.size());
  if (!time_ || time_->num_slots() != num_slots) time_.emplace(shape, num_slots, pass);
  const double share = pass == Pass::train ? 1 : problem_.model().forward_share;
  return static_cast<double>(time_->makespan(slot_costs_) - room_.transfers()) * shape.stages /
         share;
}

std::optional<CellDraft> CellBuilder::find_cells(std::int32_t num_slots, double time) {
  next_.resize(order_.size() + 1);
  std::iota(next_.begin(), next_.end(), std::size_t{0});
  smallest_ = order_.size();
  num_items_left_ = problem_.num_items();
  first_heights_ = nullptr;
  draft_ = {};
  num_lines_ = 0;
  slot_costs_.assign(static_cast<std::size_t>(num_slots), {});
  const bool is_paced = problem_.options().sync == Sync::microbatch;
  const std::size_t none = slot_costs_.size();
  std::int64_t first = 0;
  std::int32_t widest = problem_.sizes().back();
  for (std::size_t lead = next_left(0); lead < order_.size(); lead = next_left(0)) {
    const Table* table = find_table(lead, first, std::min(narrowest_size(first), widest), widest,
                                    {.least = num_slots, .most = num_slots}, time);
    if (table == nullptr) return std::nullopt;
    const double needed = (table->costs[lead] + table->fixed) / time;
    const double shortest = (table->costs.back() + table->fixed) / time;
    const Heights& heights = heights_for(needed, shortest, num_slots);
    if (heights.of_slot.empty()) return std::nullopt;
    if (needed > tallest(free_heights_) && table->size > problem_.sizes().front()) {
      const std::size_t closed = add_wide_cell(*table, first, heights, lead, time);
      add_cells_beside(*table, first, heights, closed, time);
    } else {
      add_cell(*table, first, heights, none, time);
    }
    draft_.time = std::max(draft_.time, line_time());
    constexpr double much = 1.03;
    if (next_left(0) == lead || draft_.time > much * time) return std::nullopt;
    first += table->size;
    widest = table->size;
    ++num_lines_;
    if (!is_paced) std::fill(slot_costs_.begin(), slot_costs_.end(), PassCost{});
  }
  return std::move(draft_);
}

}  // namespace isochron
