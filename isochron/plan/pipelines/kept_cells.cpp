#include "isochron/plan/pipelines/kept_cells.h"

#include <algorithm>
#include <numeric>

#include "isochron/plan/bundles/sized_items.h"
#include "isochron/plan/least_areas.h"

namespace isochron {

namespace {

// Longest first, each into the slot that has most of its share left.
bool fill(const Problem& problem, const BundleCell& cell, std::span<const double> heights,
          Tokens capacity, std::span<CellDraft::Bin> bins) {
  const std::vector<SizedItem> items = sized_items(problem, cell.ranks, items_of(problem, cell));
  const double cost = std::accumulate(
      items.begin(), items.end(), 0.0,
      [](double sum, const SizedItem& item) { return sum + static_cast<double>(item.cost); });
  const double height = std::accumulate(heights.begin(), heights.end(), 0.0);
  struct Room {
    double cost = 0;
    Tokens tokens = 0;
    std::int32_t sequences = 0;
  };
  std::vector<Room> rooms;
  const std::int32_t max_sequences = problem.options().max_sequences;
  for (const double share : heights) {
    rooms.push_back({.cost = cost * share / height,
                     .tokens = capacity * cell.ranks.size,
                     .sequences = max_sequences});
  }
  for (const SizedItem& item : items) {
    std::size_t best = rooms.size();
    for (std::size_t s = 0; s < rooms.size(); ++s) {
      const bool is_empty = bins[s].items.empty();
      if (!is_empty && rooms[s].tokens < item.tokens) continue;
      if (max_sequences > 0 && rooms[s].sequences < item.sequences) continue;
      if (best == rooms.size() || rooms[s].cost > rooms[best].cost) best = s;
    }
    if (best == rooms.size()) return false;
    rooms[best].cost -= static_cast<double>(item.cost);
    rooms[best].tokens -= item.tokens;
    rooms[best].sequences -= item.sequences;
    bins[best].items.push_back(item.id);
  }
  return true;
}

}  // namespace

std::optional<CellDraft> fill_kept_cells(const Problem& problem,
                                         const std::vector<BundleCell>& cells,
                                         std::span<const double> heights, Tokens capacity) {
  CellDraft draft;
  draft.bins.resize(cells.size() * heights.size());
  for (std::size_t c = 0; c < cells.size(); ++c) {
    draft.cells.push_back({.ranks = cells[c].ranks, .line = c});
    const std::span<CellDraft::Bin> bins(draft.bins.data() + c * heights.size(), heights.size());
    if (!fill(problem, cells[c], heights, capacity, bins)) return std::nullopt;
  }
  return draft;
}

SlotRange slots_of_cells(const Problem& problem, const std::vector<BundleCell>& cells,
                         Tokens capacity) {
  Tokens fewest = 1;
  std::int64_t most = problem.num_items();
  for (const BundleCell& cell : cells) {
    const std::vector<ItemId> items = items_of(problem, cell);
    Tokens tokens = 0;
    for (const ItemId item : items) {
      tokens += problem.tokens(static_cast<std::int32_t>(cell.ranks.size), item);
    }
    const Tokens room = capacity * cell.ranks.size;
    fewest = std::max(fewest, (tokens + room - 1) / room);
    most = std::min(most, static_cast<std::int64_t>(items.size()));
  }
  fewest = std::min<Tokens>(fewest, problem.num_items());
  return {.least = static_cast<std::int32_t>(fewest),
          .most = static_cast<std::int32_t>(std::max<std::int64_t>(fewest, most))};
}

std::int32_t fewest_slots(const Problem& problem, Tokens capacity) {
  Tokens tokens = 0;
  std::int64_t sequences = 0;
  for (ItemId item = 0; item < problem.num_items(); ++item) {
    tokens += problem.tokens(1, item);
    sequences += problem.num_sequences(item);
  }
  const auto slots_of = [&](std::int64_t amount, std::int64_t of_a_slot) {
    const std::int64_t room = of_a_slot * problem.num_ranks();
    return std::clamp<std::int64_t>((amount + room - 1) / room, 1, problem.num_items());
  };
  const std::int64_t by_tokens = slots_of(tokens, capacity);
  const std::int64_t most = problem.options().max_sequences;
  return static_cast<std::int32_t>(most == 0 ? by_tokens
                                             : std::max(by_tokens, slots_of(sequences, most)));
}

bool may_have_few_slots(const Problem& problem, Tokens capacity, const RankRoom& room,
                        double time) {
  if (problem.has_speeds()) return true;
  const std::int32_t fewest = fewest_slots(problem, capacity);
  const SlotRange few{.least = 1, .most = fewest + fewest / 3 + 1};
  return narrow_area(problem) / problem.num_ranks() <= room.area(time, 0, few);
}

bool exceed(const Problem& problem, const std::vector<BundleCell>& cells, const RankRoom& room,
            double time, std::int32_t num_slots) {
  return std::any_of(cells.begin(), cells.end(), [&](const BundleCell& cell) {
    const PriceId price = problem.price_of(cell.ranks);
    Nanoseconds cost = 0;
    Nanoseconds longest = 0;
    for (const BundleId bundle : cell.bundles) {
      for (const ItemId item : problem.items_of(bundle)) {
        const Nanoseconds own = problem.item_cost(price, item);
        cost += own;
        longest = std::max(longest, own);
      }
    }
    const auto length = static_cast<double>(longest + problem.price(price).fixed);
    const SlotRange counted{.least = num_slots, .most = num_slots};
    return static_cast<double>(cost) > room.area(time, length, counted);
  });
}

}  // namespace isochron
