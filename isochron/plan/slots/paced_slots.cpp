// Slot by slot, on ranks that are known from the start.
//
// A slot has a length: what the longest item that is left takes on the fastest ranks that suit it,
// or more, so that what is left needs few slots. Longest first, an item stands on the slowest free
// ranks that still end in time, so that fast ones stay free for what needs them; the rest fills
// every group up to the length and the capacity, tightest first. Several lengths are tried.

#include "isochron/plan/slots/paced_slots.h"

#include <algorithm>
#include <compare>
#include <limits>
#include <numeric>
#include <vector>

#include "isochron/plan/draft_slots.h"

namespace isochron {

namespace {

constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max();

class PacedSlots {
 public:
  explicit PacedSlots(const Problem& problem) : problem_(problem) {
    for (const std::int32_t size : problem.sizes()) {
      std::vector<Block> blocks;
      for (std::int32_t first = 0; first + size <= problem.num_ranks();
           first += problem.first_step(size)) {
        const RankRange ranks{.first = first, .size = size};
        const PriceId price = problem.price_of(ranks);
        if (price < 0) continue;
        blocks.push_back({.ranks = ranks, .price = price, .slowness = problem.slowness(ranks)});
      }
      std::stable_sort(blocks.begin(), blocks.end(),
                       [](const Block& a, const Block& b) { return a.slowness > b.slowness; });
      for (Block& block : blocks) block.pace = pace_of(block);
      blocks_of_size_.push_back(std::move(blocks));
    }
    std::vector<double> speeds = problem.topology().rank_speed;
    std::sort(speeds.begin(), speeds.end(), std::greater<>());
    speed_ = std::accumulate(speeds.begin(), speeds.end(), 0.0);
    for (const std::size_t i : {std::size_t{0}, speeds.size() / 2, speeds.size() - 1}) {
      const double delay = speeds.front() / speeds[i];
      if (delays_.empty() || delay > delays_.back()) delays_.push_back(delay);
    }
    for (ItemId item = 0; item < problem.num_items(); ++item) {
      std::size_t place = 0;
      while (!problem.item_fits(problem.sizes()[place], item)) ++place;
      const std::int32_t size = problem.sizes()[place];
      areas_.push_back(static_cast<double>(problem.item_cost(problem.cheapest_price(size), item)) *
                       size);
      tokens_.push_back(problem.tokens(size, item));
    }
  }

  SlotDraft run(std::int64_t work) {
    const double area = std::accumulate(areas_.begin(), areas_.end(), 0.0);
    const Tokens tokens = std::accumulate(tokens_.begin(), tokens_.end(), Tokens{0});
    // What a micro-batch full of average tokens takes at nominal speed.
    const double full = area * static_cast<double>(problem_.capacity()) /
                        static_cast<double>(std::max<Tokens>(1, tokens));
    SlotDraft best;
    best.time = never;
    for (const double factor : {1.1, 1.0, 1.25, 0.9, 1.5, 0.75, 2.0, 0.6, 1.05, 1.15, 0.5, 3.0}) {
      if (best.time != never && work <= 0) break;
      SlotDraft draft =
          build(static_cast<Nanoseconds>(full * factor) + problem_.microbatch(), work);
      if (draft.time < best.time) best = std::move(draft);
    }
    return best;
  }

 private:
  struct Block {
    RankRange ranks;
    PriceId price = 0;
    double slowness = 1;
    std::size_t pace = 0;
  };
  struct Pace {  // blocks on which everything takes equally long
    PriceId price = 0;
    double slowness = 1;
    std::size_t place = 0;  // of their size
    Nanoseconds fixed = 0;
  };
  struct Entry {  // an item on the smallest size that ends within the limit
    Nanoseconds time = never;
    std::size_t place = 0;
    ItemId item = 0;
  };
  struct Group {
    const Block* block = nullptr;
    Nanoseconds time = 0;
    Tokens tokens = 0;
    std::int32_t num_sequences = 0;
    std::vector<ItemId> items = {};
  };

  struct Attempt {  // a slot
    std::vector<Group> groups = {};
    std::vector<Entry> left = {};
    double worth = -1;
  };

  // The pace of a block of the size that follows those known so far.
  std::size_t pace_of(const Block& block) {
    const std::size_t place = blocks_of_size_.size();
    const auto found = std::find_if(paces_.begin(), paces_.end(), [&](const Pace& pace) {
      return pace.place == place && pace.price == block.price && pace.slowness == block.slowness;
    });
    if (found == paces_.end()) {
      const Nanoseconds fixed = Problem::slowed(problem_.price(block.price).fixed, block.slowness);
      paces_.push_back({block.price, block.slowness, place, fixed});
      return paces_.size() - 1;
    }
    return static_cast<std::size_t>(found - paces_.begin());
  }

  [[nodiscard]] Nanoseconds cost_at(const Pace& pace, ItemId item) const {
    return Problem::slowed(problem_.item_cost(pace.price, item), pace.slowness);
  }
  [[nodiscard]] Nanoseconds cost_on(const Block& block, ItemId item) const {
    return cost_at(paces_[block.pace], item);
  }
  [[nodiscard]] Nanoseconds fixed_on(const Block& block) const { return paces_[block.pace].fixed; }

  [[nodiscard]] Entry entry_of(ItemId item, Nanoseconds limit) const {
    Entry entry{.item = item};
    for (const Pace& pace : paces_) {  // by size
      if (pace.place > entry.place && entry.time <= limit) break;
      if (!problem_.item_fits(problem_.sizes()[pace.place], item)) continue;
      const Nanoseconds time = cost_at(pace, item) + pace.fixed;
      if (time < entry.time) entry = {.time = time, .place = pace.place, .item = item};
    }
    return entry;
  }

  [[nodiscard]] SlotDraft build(Nanoseconds limit, std::int64_t& work) const {
    std::vector<Entry> left;  // longest first
    for (ItemId item = 0; item < problem_.num_items(); ++item) {
      left.push_back(entry_of(item, limit));
    }
    std::sort(left.begin(), left.end(), [](const Entry& a, const Entry& b) {
      return std::pair(-a.time, a.item) < std::pair(-b.time, b.item);
    });
    SlotDraft draft;
    while (!left.empty()) {
      Attempt best;
      for (const double delay : delays_) {
        const auto longest =
            static_cast<Nanoseconds>(static_cast<double>(left.front().time) * delay);
        const Nanoseconds length =
            std::max(longest, std::min(limit, even_length(left) + problem_.microbatch()));
        Attempt attempt{.left = left};
        attempt.groups = begun_slot(attempt.left, length, work);
        fill(attempt.groups, attempt.left, length, work);
        rate(attempt);
        if (attempt.worth > best.worth) best = std::move(attempt);
      }
      std::vector<DraftGroup>& slot = draft.slots.emplace_back();
      for (Group& group : best.groups) {
        slot.push_back({.ranks = group.block->ranks, .items = std::move(group.items)});
      }
      left = std::move(best.left);
    }
    draft.time = slots_time(problem_, draft.slots);
    return draft;
  }

  // Sets what the slot gets done in its time.
  void rate(Attempt& attempt) const {
    double area = 0;
    Nanoseconds longest = 1;
    for (const Group& group : attempt.groups) {
      longest = std::max(longest, group.time);
      for (const ItemId item : group.items) area += areas_[static_cast<std::size_t>(item)];
    }
    attempt.worth = area / static_cast<double>(longest);
  }

  // What all ranks take for what is left, in as many slots as its tokens fill.
  [[nodiscard]] Nanoseconds even_length(const std::vector<Entry>& left) const {
    double area = 0;
    Tokens tokens = 0;
    for (const Entry& entry : left) {
      area += areas_[static_cast<std::size_t>(entry.item)];
      tokens += tokens_[static_cast<std::size_t>(entry.item)];
    }
    const Tokens room = problem_.capacity() * problem_.num_ranks();
    const Tokens slots = (tokens + room - 1) / room;
    return static_cast<Nanoseconds>(area / speed_ / static_cast<double>(slots) * 1.01);
  }

  // Groups of one item each, until no rank is free or nothing ends in time.
  std::vector<Group> begun_slot(std::vector<Entry>& left, Nanoseconds length,
                                std::int64_t& work) const {
    std::vector<bool> is_taken(static_cast<std::size_t>(problem_.num_ranks()), false);
    std::int64_t num_free = problem_.num_ranks();
    std::vector<Group> groups;
    std::size_t kept = 0;
    for (const Entry& entry : left) {
      const Block* found = nullptr;
      if (num_free >= problem_.sizes()[entry.place]) {
        std::size_t pace = paces_.size();  // of the block before
        Nanoseconds time = 0;
        for (const Block& block : blocks_of_size_[entry.place]) {
          --work;
          const auto first = is_taken.begin() + block.ranks.first;
          if (std::find(first, first + block.ranks.size, true) != first + block.ranks.size)
            continue;
          if (block.pace != pace) time = cost_on(block, entry.item) + fixed_on(block);
          pace = block.pace;
          if (time > length) continue;
          found = &block;
          break;
        }
      }
      if (found == nullptr) {
        left[kept++] = entry;
        continue;
      }
      std::fill_n(is_taken.begin() + found->ranks.first, found->ranks.size, true);
      num_free -= found->ranks.size;
      Group group{.block = found, .time = fixed_on(*found)};
      put(group, entry.item);
      groups.push_back(std::move(group));
    }
    left.resize(kept);
    return groups;
  }

  void put(Group& group, ItemId item) const {
    group.items.push_back(item);
    group.time += cost_on(*group.block, item);
    group.tokens += problem_.tokens(static_cast<std::int32_t>(group.block->ranks.size), item);
    group.num_sequences += problem_.num_sequences(item);
  }

  // A group that has room, by its number.
  struct Open {
    Nanoseconds room = 0;
    std::size_t group = 0;

    auto operator<=>(const Open&) const = default;
  };

  // Puts each entry into the group that it leaves the least room, of those that it fits.
  void fill(std::vector<Group>& groups, std::vector<Entry>& left, Nanoseconds length,
            std::int64_t& work) const {
    std::vector<std::vector<Open>> open_at(paces_.size());  // sorted
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (is_full(groups[g])) continue;
      open_at[groups[g].block->pace].push_back({length - groups[g].time, g});
    }
    std::vector<std::size_t> used;  // paces
    for (std::size_t pace = 0; pace < paces_.size(); ++pace) {
      std::sort(open_at[pace].begin(), open_at[pace].end());
      if (!open_at[pace].empty()) used.push_back(pace);
    }
    std::size_t kept = 0;
    for (const Entry& entry : left) {
      constexpr Open none{.room = never};
      Open best = none;
      for (const std::size_t pace : used) {
        const Nanoseconds cost = cost_at(paces_[pace], entry.item);
        const std::vector<Open>& open = open_at[pace];
        auto tight = std::lower_bound(open.begin(), open.end(), Open{.room = cost});
        --work;
        while (tight != open.end() && *tight < best && !has_room(groups[tight->group], entry)) {
          ++tight;
        }
        if (tight != open.end()) best = std::min(best, *tight);
      }
      if (best == none) {
        left[kept++] = entry;
        continue;
      }
      Group& group = groups[best.group];
      put(group, entry.item);
      std::vector<Open>& open = open_at[group.block->pace];
      const auto to = std::lower_bound(open.begin(), open.end(), best);
      if (is_full(group)) {
        open.erase(to);
        continue;
      }
      const Open now{length - group.time, best.group};
      const auto from = std::lower_bound(open.begin(), to, now);
      std::move_backward(from, to, to + 1);
      *from = now;
    }
    left.resize(kept);
  }

  // Whether its sequences are as many as it may have.
  [[nodiscard]] bool is_full(const Group& group) const {
    const std::int32_t limit = problem_.options().max_sequences;
    return limit > 0 && group.num_sequences >= limit;
  }
  [[nodiscard]] bool has_room(const Group& group, const Entry& entry) const {
    const auto size = static_cast<std::int32_t>(group.block->ranks.size);
    const std::int32_t limit = problem_.options().max_sequences;
    return (limit == 0 || group.num_sequences + problem_.num_sequences(entry.item) <= limit) &&
           problem_.item_fits(size, entry.item) &&
           group.tokens + problem_.tokens(size, entry.item) <= problem_.capacity() * size;
  }

  const Problem& problem_;
  std::vector<std::vector<Block>> blocks_of_size_;  // slowest first
  double speed_ = 0;                                // of all ranks
  std::vector<Pace> paces_;                         // by size
  std::vector<double> delays_;  // of slow ranks, in parts of the fastest: 1, a middle, the slowest
  std::vector<double> areas_;   // of items, on the smallest size that holds them
  std::vector<Tokens> tokens_;
};

}  // namespace

SlotDraft search_paced_slots(const Problem& problem, std::int64_t work) {
  return PacedSlots(problem).run(work);
}

}  // namespace isochron
