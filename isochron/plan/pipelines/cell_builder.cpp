// The bound of room_bound.cpp, carried out. Largest first, the item that is left decides the size
// of the next cell: the one on which it takes the least part of all ranks. The slots of the cell
// are as high as slot_heights() says for the time, with one as long as the item if need be. Tallest
// first each takes the largest items that fit, so that cells hold what is alike, long items stand
// together where slots are long, and small ones fill what they leave.

#include "isochron/plan/pipelines/cell_builder.h"

#include <algorithm>
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
  std::vector<double> areas;
  for (const ItemId item : order_) {
    const std::int32_t size = problem.sizes()[problem.smallest_place(item)];
    areas.push_back(static_cast<double>(problem.item_cost(problem.cheapest_price(size), item)) *
                    size);
  }
  std::stable_sort(order_.begin(), order_.end(), [&](ItemId a, ItemId b) {
    return areas[static_cast<std::size_t>(a)] > areas[static_cast<std::size_t>(b)];
  });
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
  const Table* best = nullptr;
  double least = infinite;
  for (const std::int32_t size : problem_.sizes()) {
    const RankRange ranks{.first = first, .size = size};
    if (size < narrowest) continue;
    if (size > widest || first + size > problem_.num_ranks()) break;
    if (first % problem_.first_step(size) != 0) continue;
    const PriceId price = problem_.price_of(ranks);
    if (price < 0) continue;
    const Table& table = table_of(price);
    const double cost = table.costs[lead];
    if (cost == infinite) continue;
    const double room = room_.area(time, cost + table.fixed, num_slots);
    if (room <= 0 || cost * size / room >= least) continue;
    least = cost * size / room;
    best = &table;
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
const CellBuilder::Heights& CellBuilder::heights_for(double lead, std::int32_t num_slots) {
  const PipelineShape& shape = problem_.topology().pipeline;
  const Pass pass = problem_.options().pass;
  const double forward_share = problem_.model().forward_share;
  if (free_heights_.of_slot.size() != static_cast<std::size_t>(num_slots)) {
    peak_heights_.clear();
    free_heights_ = sorted(slot_heights(shape, pass, forward_share, num_slots, 1));
  }
  const bool is_paced = problem_.options().sync == Sync::microbatch;
  if (is_paced && first_heights_ != nullptr) return *first_heights_;
  const double tallest = free_heights_.of_slot[free_heights_.tallest_first.front()];
  first_heights_ = &free_heights_;
  if (lead <= tallest) return free_heights_;
  // What differs by less than this is not worth heights of its own.
  constexpr double step = 1.01;
  const auto place = static_cast<int>(std::ceil(std::log(lead / tallest) / std::log(step)));
  const auto [found, is_new] = peak_heights_.try_emplace(place);
  if (is_new) {
    const double longest = std::max(lead, tallest * std::pow(step, place));
    found->second = sorted(peak_heights(shape, pass, forward_share, num_slots, 1, longest));
    if (found->second.of_slot.empty()) {
      found->second = sorted(peak_heights(shape, pass, forward_share, num_slots, 1, lead));
    }
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

// Every slot gets something, as long as there is anything left: if nothing fits, the smallest.
void CellBuilder::fill_cell(const Table& table, const Heights& heights, double time,
                            std::int64_t num_more, std::span<std::vector<ItemId>> bins) {
  for (const std::size_t slot : heights.tallest_first) {
    fill_bin(table, heights.of_slot[slot] * time, num_more, bins[slot]);
    if (!bins[slot].empty()) continue;
    while (smallest_ > 0 && next_left(smallest_ - 1) != smallest_ - 1) --smallest_;
    if (smallest_ == 0) break;
    take(smallest_ - 1);
    bins[slot].push_back(order_[smallest_ - 1]);
  }
}

// Of a cell by itself, as RankRoom counts it.
double CellBuilder::cell_time(const Table& table, std::span<const std::vector<ItemId>> bins) {
  const double forward_share = problem_.model().forward_share;
  const PipelineShape& shape = problem_.topology().pipeline;
  const Pass pass = problem_.options().pass;
  slot_costs_.clear();
  for (const auto& bin : bins) {
    auto cost = static_cast<Nanoseconds>(table.fixed);
    for (const ItemId item : bin) cost += problem_.item_cost(table.price, item);
    slot_costs_.push_back(split_cost(cost, forward_share));
    if (pass == Pass::forward) slot_costs_.back().backward = 0;
  }
  const auto num_slots = static_cast<std::int32_t>(bins.size());
  if (!time_ || time_->num_slots() != num_slots) time_.emplace(shape, num_slots, pass);
  const double share = pass == Pass::train ? 1 : forward_share;
  return static_cast<double>(time_->makespan(slot_costs_) - room_.transfers()) * shape.stages /
         share;
}

std::optional<CellDraft> CellBuilder::find_cells(std::int32_t num_slots, double time) {
  next_.resize(order_.size() + 1);
  std::iota(next_.begin(), next_.end(), std::size_t{0});
  smallest_ = order_.size();
  num_items_left_ = problem_.num_items();
  first_heights_ = nullptr;
  CellDraft draft;
  const auto num_bins = static_cast<std::size_t>(num_slots);
  std::int64_t first = 0;
  std::int32_t widest = problem_.sizes().back();
  for (std::size_t lead = next_left(0); lead < order_.size(); lead = next_left(0)) {
    // Cells so narrow that there is something for every slot of as many as there is place for.
    const std::int64_t num_left = problem_.num_ranks() - first;
    std::int32_t narrowest = problem_.sizes().front();
    for (const std::int32_t size : problem_.sizes()) {
      narrowest = size;
      if (num_slots * (num_left / size) <= num_items_left_) break;
    }
    const Table* table = find_table(lead, first, std::min(narrowest, widest), widest,
                                    {.least = num_slots, .most = num_slots}, time);
    if (table == nullptr) return std::nullopt;
    const std::int64_t num_more =
        num_items_left_ - num_slots * (1 + (num_left - table->size) / narrowest);
    const std::size_t place = draft.bins.size();
    draft.sizes.push_back(table->size);
    draft.bins.resize(place + num_bins);
    const Heights& heights = heights_for((table->costs[lead] + table->fixed) / time, num_slots);
    if (heights.of_slot.empty()) return std::nullopt;
    const auto bins = std::span(draft.bins).subspan(place, num_bins);
    fill_cell(*table, heights, time, num_more, bins);
    draft.time = std::max(draft.time, cell_time(*table, bins));
    constexpr double much = 1.03;
    if (next_left(0) == lead || draft.time > much * time) return std::nullopt;
    first += table->size;
    widest = table->size;
  }
  return draft;
}

}  // namespace isochron
