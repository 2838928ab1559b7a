// A slot of an item that takes longer than its share of the rest is filled by every cell as far as
// its time and tokens allow; what is left is divided evenly. Then cell after cell is packed anew
// under the times for which it has to wait anyway, as long as that shortens the step.

#include "isochron/plan/bundles/lock_step.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "isochron/balance/assignment.h"
#include "isochron/plan/bundles/sized_items.h"

namespace isochron {

std::optional<std::vector<DraftGroup>> even_groups(const Problem& problem, RankRange cell,
                                                   const std::vector<ItemId>& items,
                                                   std::int32_t count) {
  const auto size = static_cast<std::int32_t>(cell.size);
  const PriceId price = problem.price_of(cell);
  std::vector<Nanoseconds> costs;
  std::vector<Tokens> tokens;
  std::vector<std::int32_t> sequences;
  for (const ItemId item : items) {
    costs.push_back(problem.item_cost(price, item));
    tokens.push_back(problem.tokens(size, item));
    sequences.push_back(problem.num_sequences(item));
  }
  Limits limits{.capacity = problem.capacity() * size};
  if (problem.options().max_sequences > 0) limits.max_size = problem.options().max_sequences;
  const Assignment packed =
      assign({.costs = costs, .tokens = tokens, .sizes = sequences}, count, limits,
             RefineGoal::spread, static_cast<std::int64_t>(items.size()) * 4);
  if (!packed.bin_of) return std::nullopt;
  std::vector<DraftGroup> groups(static_cast<std::size_t>(count), {.ranks = cell});
  for (std::size_t i = 0; i < items.size(); ++i) {
    groups[static_cast<std::size_t>((*packed.bin_of)[i])].items.push_back(items[i]);
  }
  std::erase_if(groups, [](const DraftGroup& group) { return group.items.empty(); });
  return groups;
}

namespace {

class LockStep {
 public:
  LockStep(const Problem& problem, const std::vector<BundleCell>& cells)
      : problem_(problem), max_sequences_(problem.options().max_sequences) {
    for (const BundleCell& from : cells) {
      cells_.push_back({.ranks = from.ranks,
                        .capacity = problem.capacity() * from.ranks.size,
                        .fixed = problem.price(problem.price_of(from.ranks)).fixed,
                        .items = sized_items(problem, from.ranks, items_of(problem, from)),
                        .bins = {}});
    }
  }

  DraftSlots run() {
    const std::vector<Cell> all = cells_;
    for (Nanoseconds longest = longest_item(); longest > share_of_rest();
         longest = longest_item()) {
      add_filled_slot(longest);
    }
    add_even_slots();
    for (std::size_t c = 0; c < cells_.size(); ++c) cells_[c].items = all[c].items;
    settle();
    return slots();
  }

 private:
  // What a cell runs in a slot.
  struct Bin {
    Nanoseconds time = 0;
    Tokens tokens = 0;
    std::int32_t sequences = 0;
    std::vector<ItemId> items;
  };
  struct Cell {
    RankRange ranks;
    Tokens capacity = 0;
    Nanoseconds fixed = 0;
    std::vector<SizedItem> items;  // the longest first
    std::vector<Bin> bins;         // by slot
  };

  bool has_room(const Cell& cell, const Bin& bin, const SizedItem& item) const {
    return bin.tokens + item.tokens <= cell.capacity &&
           (max_sequences_ == 0 || bin.sequences + item.sequences <= max_sequences_);
  }

  static Nanoseconds time_with(const Cell& cell, const Bin& bin, const SizedItem& item) {
    return (bin.items.empty() ? cell.fixed : bin.time) + item.cost;
  }

  static void put(const Cell& cell, Bin& bin, const SizedItem& item) {
    bin.time = time_with(cell, bin, item);
    bin.tokens += item.tokens;
    bin.sequences += item.sequences;
    bin.items.push_back(item.id);
  }

  // With its micro-batch; 0 if nothing is left.
  Nanoseconds longest_item() const {
    Nanoseconds longest = 0;
    for (const Cell& cell : cells_) {
      if (!cell.items.empty()) longest = std::max(longest, cell.fixed + cell.items.front().cost);
    }
    return longest;
  }

  // No fewer slots hold the tokens, or the sequences, of every cell.
  std::int32_t fewest_slots() const {
    std::int64_t fewest = 0;
    for (const Cell& cell : cells_) {
      Tokens tokens = 0;
      std::int64_t sequences = 0;
      for (const SizedItem& item : cell.items) {
        tokens += item.tokens;
        sequences += item.sequences;
      }
      fewest = std::max(fewest, (tokens + cell.capacity - 1) / cell.capacity);
      if (max_sequences_ > 0) {
        fewest = std::max(fewest, (sequences + max_sequences_ - 1) / max_sequences_);
      }
    }
    return static_cast<std::int32_t>(fewest);
  }

  // What so many slots of what is left take if no cell waits for another one.
  Nanoseconds time_of_rest(std::int32_t count) const {
    Nanoseconds longest = 0;
    for (const Cell& cell : cells_) {
      Nanoseconds cost = 0;
      for (const SizedItem& item : cell.items) cost += item.cost;
      longest = std::max(longest, count * cell.fixed + cost);
    }
    return longest;
  }

  // What a slot takes if the fullest cell is divided evenly.
  Nanoseconds share_of_rest() const {
    const std::int32_t count = std::max(1, fewest_slots());
    return time_of_rest(count) / count;
  }

  void add_filled_slot(Nanoseconds limit) {
    for (Cell& cell : cells_) {
      Bin& bin = cell.bins.emplace_back();
      std::erase_if(cell.items, [&](const SizedItem& item) {
        if (time_with(cell, bin, item) > limit || !has_room(cell, bin, item)) return false;
        put(cell, bin, item);
        return true;
      });
    }
  }

  // All that is left, in slots of any length where no even ones are found.
  void add_even_slots() {
    std::vector<std::vector<Bin>> best;  // by cell
    Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
    const std::int32_t fewest = fewest_slots();
    int num_tried = 0;
    for (std::int32_t count = fewest; num_tried < 2 && count <= 2 * fewest + 2; ++count) {
      if (time_of_rest(count) >= least) break;
      std::vector<std::vector<Bin>> bins;
      for (const Cell& cell : cells_) {
        auto even = even_bins(cell, count);
        if (even.empty() && count > 0) break;
        bins.push_back(std::move(even));
      }
      if (bins.size() != cells_.size()) continue;
      ++num_tried;
      Nanoseconds time = 0;
      for (std::size_t s = 0; s < static_cast<std::size_t>(count); ++s) {
        Nanoseconds slowest = 0;
        for (const auto& of_cell : bins) slowest = std::max(slowest, of_cell[s].time);
        time += slowest;
      }
      if (time < least) {
        least = time;
        best = std::move(bins);
      }
    }
    while (best.empty() && longest_item() > 0) add_filled_slot(max_total_cost);
    for (std::size_t c = 0; c < best.size(); ++c) {
      std::move(best[c].begin(), best[c].end(), std::back_inserter(cells_[c].bins));
    }
  }

  // What is left of a cell, the longest micro-batch first. Nothing if no way is found.
  std::vector<Bin> even_bins(const Cell& cell, std::int32_t count) const {
    std::vector<ItemId> ids;
    std::map<ItemId, const SizedItem*> item_of;
    for (const SizedItem& item : cell.items) {
      ids.push_back(item.id);
      item_of[item.id] = &item;
    }
    const auto groups = even_groups(problem_, cell.ranks, ids, count);
    if (!groups) return {};
    std::vector<Bin> bins(static_cast<std::size_t>(count));
    for (std::size_t s = 0; s < groups->size(); ++s) {
      for (const ItemId id : (*groups)[s].items) put(cell, bins[s], *item_of[id]);
    }
    std::stable_sort(bins.begin(), bins.end(),
                     [](const Bin& a, const Bin& b) { return a.time > b.time; });
    return bins;
  }

  // Packs cells anew, each under what the others take.
  void settle() {
    if (cells_.empty()) return;
    constexpr int max_rounds = 8;
    bool is_better = true;
    for (int round = 0; round < max_rounds && is_better; ++round) {
      is_better = false;
      for (Cell& cell : cells_) {
        const std::vector<Nanoseconds> others = longest_of_others(cell);
        std::vector<Bin> bins = packed_under(cell, others);
        if (bins.empty() || time_of(bins, others) >= time_of(cell.bins, others)) continue;
        cell.bins = std::move(bins);
        is_better = true;
      }
    }
  }

  std::vector<Nanoseconds> longest_of_others(const Cell& cell) const {
    std::vector<Nanoseconds> longest(cell.bins.size(), 0);
    for (const Cell& other : cells_) {
      if (&other == &cell) continue;
      for (std::size_t s = 0; s < longest.size(); ++s) {
        longest[s] = std::max(longest[s], other.bins[s].time);
      }
    }
    return longest;
  }

  static Nanoseconds time_of(const std::vector<Bin>& bins, const std::vector<Nanoseconds>& others) {
    Nanoseconds time = 0;
    for (std::size_t s = 0; s < bins.size(); ++s) time += std::max(bins[s].time, others[s]);
    return time;
  }

  // Every item in the slot that it makes longer by least, of those that it does not where it fits
  // best. Nothing if some item finds no room.
  std::vector<Bin> packed_under(const Cell& cell, const std::vector<Nanoseconds>& others) const {
    std::vector<Bin> bins(others.size());
    for (const SizedItem& item : cell.items) {
      std::size_t best = bins.size();
      auto least = std::pair(std::numeric_limits<Nanoseconds>::max(), Nanoseconds{0});
      for (std::size_t s = 0; s < bins.size(); ++s) {
        if (!has_room(cell, bins[s], item)) continue;
        const Nanoseconds before = std::max(others[s], bins[s].time);
        const Nanoseconds time = time_with(cell, bins[s], item);
        const auto here = std::pair(std::max<Nanoseconds>(0, time - before), before - time);
        if (here < least) {
          least = here;
          best = s;
        }
      }
      if (best == bins.size()) return {};
      put(cell, bins[best], item);
    }
    return bins;
  }

  DraftSlots slots() const {
    DraftSlots slots(cells_.empty() ? 0 : cells_.front().bins.size());
    for (const Cell& cell : cells_) {
      for (std::size_t s = 0; s < slots.size(); ++s) {
        if (cell.bins[s].items.empty()) continue;
        slots[s].push_back({.ranks = cell.ranks, .items = cell.bins[s].items});
      }
    }
    std::erase_if(slots, [](const auto& slot) { return slot.empty(); });
    return slots;
  }

  const Problem& problem_;
  std::int32_t max_sequences_;
  std::vector<Cell> cells_;
};

}  // namespace

DraftSlots lock_step(const Problem& problem, const std::vector<BundleCell>& cells) {
  return LockStep(problem, cells).run();
}

}  // namespace isochron
