// Groups that nest run widest first, so that a rank is done after the sum of its groups and nothing
// but their places decides: a state says in which block of ranks each item runs. What a block runs
// is packed first fit, longest first.
//
// The last rank alone is a poor guide, since most changes leave it as it is. So a state is judged
// by its excess: the time that all ranks together run beyond a target, a little of the way from the
// best step to the bound. Changes that lower it are kept, others less and less often.

#include "isochron/plan/steps/nested_anneal.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "isochron/core/random.h"
#include "isochron/plan/anneal.h"
#include "isochron/plan/cooling.h"
#include "isochron/plan/default_effort.h"
#include "isochron/plan/steps/nested_blocks.h"

namespace isochron {

namespace {

class NestedAnnealing {
 public:
  explicit NestedAnnealing(const Problem& problem)
      : problem_(problem),
        num_places_(problem.sizes().size()),
        longest_first_(static_cast<std::size_t>(problem.num_items())),
        load_(static_cast<std::size_t>(problem.num_ranks()), 0),
        block_of_(longest_first_.size(), 0),
        random_(11) {
    std::iota(longest_first_.begin(), longest_first_.end(), 0);
    const std::int32_t widest = problem.sizes().back();
    std::stable_sort(longest_first_.begin(), longest_first_.end(), [&](ItemId a, ItemId b) {
      return problem.tokens(widest, a) > problem.tokens(widest, b);
    });
    for (std::size_t place = 0; place < num_places_; ++place) {
      const std::int32_t size = problem.sizes()[place];
      first_block_.push_back(blocks_.size());
      fixed_.push_back(problem.price(problem.cheapest_price(size)).fixed);
      for (std::int32_t first = 0; first + size <= problem.num_ranks(); first += size) {
        blocks_.push_back({.place = place,
                           .first = static_cast<std::size_t>(first),
                           .end = static_cast<std::size_t>(first + size)});
      }
    }
    first_block_.push_back(blocks_.size());
    for (const ItemId item : longest_first_) {
      sequences_.push_back(problem.num_sequences(item));
      for (const std::int32_t size : problem.sizes()) {
        const bool fits = problem.item_fits(size, item);
        runs_.push_back({.cost = fits ? problem.cost(problem.cheapest_price(size), item) : -1,
                         .tokens = problem.tokens(size, item)});
      }
    }
  }

  std::optional<Draft> run(Nanoseconds bound, Nanoseconds limit, std::int64_t num_trials) {
    Nanoseconds best_time = limit;
    std::vector<std::size_t> best;
    // What the widest groups are is decided at first, and hardly ever changed: two beginnings.
    constexpr std::int64_t num_rounds = 2;
    const std::int64_t length = std::max<std::int64_t>(1, num_trials / num_rounds);
    for (std::int64_t trial = 0; trial < num_trials && best_time > bound; ++trial) {
      if (trial % length == 0) {
        put_all(trial == 0 ? bound + bound / 32 : bound + (best_time - bound) / 2);
        set_target(bound, best_time);
      }
      // What is taken with even odds: down to a sixteenth of what it was at first.
      const double cooled = 4 * static_cast<double>(trial % length) / static_cast<double>(length);
      change(heat * static_cast<double>(bound) * halved(cooled));
      if (num_late_ > 0) continue;
      best_time = *std::max_element(load_.begin(), load_.end());
      best = block_of_;
      set_target(bound, best_time);
    }
    if (best.empty()) return std::nullopt;
    Draft found = draft_of(best);
    found.time = best_time;
    return found;
  }

 private:
  static constexpr double heat = 0.02;  // of the step
  static constexpr auto none = static_cast<std::size_t>(-1);

  struct Run {              // of an item on a size
    Nanoseconds cost = -1;  // negative: it does not fit
    Tokens tokens = 0;
  };
  struct Contents {
    Nanoseconds cost = 0;
    Tokens tokens = 0;
    std::int32_t sequences = 0;
    Nanoseconds time = 0;  // cost and micro-batches
  };
  struct Block {
    std::size_t place = 0;  // of its size
    std::size_t first = 0;  // rank
    std::size_t end = 0;
    Contents contents = {};
    std::vector<std::size_t> items = {};  // longest first
  };

  const Run& run_of(std::size_t item, std::size_t place) const {
    return runs_[item * num_places_ + place];
  }
  bool has_run(std::size_t item, std::size_t place) const { return run_of(item, place).cost >= 0; }
  Tokens capacity_of(std::size_t place) const {
    return problem_.capacity() * problem_.sizes()[place];
  }
  // Below `count`; a bias of 2^-32 does no harm.
  std::size_t pick(std::size_t count) {
    return static_cast<std::size_t>((random_.next() >> 32) * count >> 32);
  }

  Nanoseconds excess(Nanoseconds load) const { return std::max<Nanoseconds>(0, load - target_); }

  // First fit, in the order given: calls visit(item, micro-batch of the block). How many there are.
  template <class Visit>
  std::int32_t pack(std::size_t place, std::span<const std::size_t> items, Visit visit) {
    const std::int32_t seats = problem_.options().max_sequences;
    bins_.clear();
    for (const std::size_t item : items) {
      const Run& run = run_of(item, place);
      const auto bin = std::find_if(bins_.begin(), bins_.end(), [&](const Bin& each) {
        return each.tokens + run.tokens <= capacity_of(place) &&
               (seats == 0 || each.sequences + sequences_[item] <= seats);
      });
      visit(item, static_cast<std::size_t>(bin - bins_.begin()));
      if (bin == bins_.end()) {
        bins_.push_back({.tokens = run.tokens, .sequences = sequences_[item]});
      } else {
        bin->tokens += run.tokens;
        bin->sequences += sequences_[item];
      }
    }
    return static_cast<std::int32_t>(bins_.size());
  }

  // What a block holds once an item left it and another came, either of which may be none.
  Contents contents_after(const Block& block, std::size_t out, std::size_t in) {
    Contents after = block.contents;
    const auto count = [&](std::size_t item, std::int32_t sign) {
      const Run& run = run_of(item, block.place);
      after.cost += sign * run.cost;
      after.tokens += sign * run.tokens;
      after.sequences += sign * sequences_[item];
    };
    if (out != none) count(out, -1);
    if (in != none) count(in, 1);
    const std::size_t num_items = block.items.size() - (out != none) + (in != none);
    const std::int32_t seats = problem_.options().max_sequences;
    const bool has_room =
        after.tokens <= capacity_of(block.place) && (seats == 0 || after.sequences <= seats);
    std::int32_t num_bins = num_items > 0;
    if (num_items > 1 && !has_room) {
      items_after_ = block.items;
      replace(items_after_, out, in);
      num_bins = pack(block.place, items_after_, [](std::size_t, std::size_t) {});
    }
    after.time = after.cost + num_bins * fixed_[block.place];
    return after;
  }

  // Items stay in order.
  static void replace(std::vector<std::size_t>& items, std::size_t out, std::size_t in) {
    if (out != none) items.erase(std::lower_bound(items.begin(), items.end(), out));
    if (in != none) items.insert(std::lower_bound(items.begin(), items.end(), in), in);
  }

  void set(Block& block, std::size_t out, std::size_t in, const Contents& after) {
    replace(block.items, out, in);
    const Nanoseconds later = after.time - block.contents.time;
    block.contents = after;
    for (std::size_t rank = block.first; rank < block.end; ++rank) {
      num_late_ -= load_[rank] >= limit_;
      load_[rank] += later;
      num_late_ += load_[rank] >= limit_;
    }
  }

  // How much the excess grows if these blocks take so much longer. One may hold the other.
  Nanoseconds growth(const Block& a, Nanoseconds of_a, const Block& b, Nanoseconds of_b) const {
    Nanoseconds sum = 0;
    for (std::size_t rank = a.first; rank < a.end; ++rank) {
      const bool is_in_b = rank >= b.first && rank < b.end;
      const Nanoseconds load = load_[rank] + of_a + (is_in_b ? of_b : 0);
      sum += excess(load) - excess(load_[rank]);
    }
    for (std::size_t rank = b.first; rank < b.end; ++rank) {
      if (rank >= a.first && rank < a.end) continue;
      sum += excess(load_[rank] + of_b) - excess(load_[rank]);
    }
    return sum;
  }

  // Moves an item to another block, and what it changes places with, if anything, to its own;
  // unless that is worse by more than chance allows.
  void exchange(std::size_t item, std::size_t to, std::size_t other, double even) {
    Block& mine = blocks_[block_of_[item]];
    Block& theirs = blocks_[to];
    const Contents my_contents = contents_after(mine, item, other);
    const Contents their_contents = contents_after(theirs, other, item);
    const Nanoseconds worse = growth(mine, my_contents.time - mine.contents.time, theirs,
                                     their_contents.time - theirs.contents.time);
    if (worse > 0 && random_.unit() >= halved(static_cast<double>(worse) / even)) return;
    set(mine, item, other, my_contents);
    set(theirs, other, item, their_contents);
    if (other != none) block_of_[other] = block_of_[item];
    block_of_[item] = to;
  }

  // The smallest size that runs an item within a time; if none does, the widest that holds it.
  std::size_t place_within(std::size_t item, Nanoseconds time) const {
    std::size_t widest = 0;
    for (std::size_t place = 0; place < num_places_; ++place) {
      if (!has_run(item, place)) continue;
      widest = place;
      if (run_of(item, place).cost + fixed_[place] <= time) break;
    }
    return widest;
  }

  // Widest first, each item to the block of the smallest size in time that is done first.
  void put_all(Nanoseconds time) {
    for (Block& block : blocks_) {
      block.contents = {};
      block.items.clear();
    }
    std::fill(load_.begin(), load_.end(), 0);
    std::vector<std::pair<std::size_t, std::size_t>> order;  // size and item
    for (std::size_t item = 0; item < longest_first_.size(); ++item) {
      order.emplace_back(num_places_ - place_within(item, time), item);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [narrowness, item] : order) {
      const std::size_t place = num_places_ - narrowness;
      std::size_t best = first_block_[place];
      for (std::size_t block = best + 1; block < first_block_[place + 1]; ++block) {
        if (top(blocks_[block]) < top(blocks_[best])) best = block;
      }
      set(blocks_[best], none, item, contents_after(blocks_[best], none, item));
      block_of_[item] = best;
    }
  }

  Nanoseconds top(const Block& block) const {
    return *std::max_element(load_.begin() + static_cast<std::ptrdiff_t>(block.first),
                             load_.begin() + static_cast<std::ptrdiff_t>(block.end));
  }

  // Ranks are late from `limit` on.
  void set_target(Nanoseconds bound, Nanoseconds limit) {
    constexpr Nanoseconds part = 4;
    limit_ = limit;
    target_ = limit - std::max<Nanoseconds>(1, (limit - bound) / part);
    num_late_ = 0;
    for (const Nanoseconds load : load_) {
      num_late_ += load >= limit_;
    }
  }

  // Half of them run beyond the target, if some do.
  std::size_t pick_item() {
    if (pick(2) == 0) return pick(longest_first_.size());
    std::size_t rank = pick(load_.size());
    for (int again = 0; again < 8 && load_[rank] <= target_; ++again) rank = pick(load_.size());
    const std::size_t place = pick(num_places_);
    for (std::size_t i = 0; i < num_places_; ++i) {
      const std::size_t at = (place + i) % num_places_;
      const std::size_t index =
          first_block_[at] + rank / static_cast<std::size_t>(problem_.sizes()[at]);
      if (index >= first_block_[at + 1] || blocks_[index].items.empty()) continue;
      return blocks_[index].items[pick(blocks_[index].items.size())];
    }
    return pick(longest_first_.size());
  }

  // The one of a few whose first rank is done first.
  std::size_t pick_block(std::size_t place) {
    constexpr int few = 4;
    const std::size_t count = first_block_[place + 1] - first_block_[place];
    std::size_t best = first_block_[place] + pick(count);
    for (int i = 1; i < few; ++i) {
      const std::size_t other = first_block_[place] + pick(count);
      if (load_[blocks_[other].first] < load_[blocks_[best].first]) best = other;
    }
    return best;
  }

  // Half of them are about as long as an item.
  std::size_t pick_other(std::size_t item) {
    constexpr std::size_t near = 10;
    if (pick(2) == 0) return pick(longest_first_.size());
    const std::size_t other = item + pick(2 * near + 1);
    return std::min(std::max(other, near) - near, longest_first_.size() - 1);
  }

  void change(double even) {
    const std::size_t item = pick_item();
    const std::size_t from = block_of_[item];
    std::size_t place = blocks_[from].place;
    if (pick(4) == 0) {
      const std::size_t other = pick_other(item);
      const std::size_t to = block_of_[other];
      const bool fits = has_run(item, blocks_[to].place) && has_run(other, place);
      if (fits && to != from) exchange(item, to, other, even);
      return;
    }
    // The same size, the next or the one before.
    const std::size_t choice = pick(4);
    if (choice == 0 && place > 0) --place;
    if (choice == 1 && place + 1 < num_places_) ++place;
    if (!has_run(item, place)) return;
    const std::size_t to = pick_block(place);
    if (to != from) exchange(item, to, none, even);
  }

  // Widest groups first.
  Draft draft_of(const std::vector<std::size_t>& block_of) {
    for (Block& block : blocks_) block.items.clear();
    for (std::size_t item = 0; item < block_of.size(); ++item) {
      blocks_[block_of[item]].items.push_back(item);
    }
    Draft draft;
    for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
      const std::size_t begin = draft.groups.size();
      const std::int32_t size = problem_.sizes()[block->place];
      pack(block->place, block->items, [&](std::size_t item, std::size_t bin) {
        if (begin + bin == draft.groups.size()) {
          draft.groups.push_back(
              {.ranks = {.first = static_cast<std::int64_t>(block->first), .size = size}});
        }
        draft.groups[begin + bin].items.push_back(longest_first_[item]);
      });
    }
    return draft;
  }

  struct Bin {
    Tokens tokens = 0;
    std::int32_t sequences = 0;
  };

  const Problem& problem_;
  std::size_t num_places_;
  std::vector<ItemId> longest_first_;     // items are counted in this order
  std::vector<std::size_t> first_block_;  // of each size, and the end
  std::vector<Nanoseconds> fixed_;        // of each size
  std::vector<Block> blocks_;
  std::vector<Run> runs_;                // of each item, by size
  std::vector<std::int32_t> sequences_;  // of each item
  std::vector<Nanoseconds> load_;        // of each rank
  std::vector<std::size_t> block_of_;    // each item
  Nanoseconds target_ = 0;
  Nanoseconds limit_ = 0;
  std::int32_t num_late_ = 0;             // ranks that are not done before the limit
  std::vector<Bin> bins_;                 // of the block that is packed
  std::vector<std::size_t> items_after_;  // a change, of a block
  Random random_;
};

}  // namespace

bool has_few_nested_items(const Problem& problem) {
  constexpr std::int32_t few = 4;  // for a rank
  return problem.num_items() == problem.num_bundles() &&
         problem.num_items() / few <= problem.num_ranks() && problem.sizes().size() > 1 &&
         has_nested_groups(problem);
}

std::int64_t nested_changes_worth(const Problem& problem, Nanoseconds bound, std::int64_t effort) {
  if (problem.options().effort || !is_time(bound)) return effort;
  constexpr Nanoseconds for_a_change = 100;
  constexpr std::int64_t least_of_an_item = 200;
  // The fewest are annealed once more when the step is polished.
  const Nanoseconds part = is_annealed(problem) ? 400 : 300;
  const std::int64_t worth = std::min(4 * effort, time_to_plan(bound) / part / for_a_change);
  return worth < least_of_an_item * problem.num_items() ? 0 : worth;
}

std::optional<Draft> anneal_nested(const Problem& problem, Nanoseconds bound, Nanoseconds limit,
                                   std::int64_t num_trials) {
  if (num_trials <= 0) return std::nullopt;
  return NestedAnnealing(problem).run(bound, limit, num_trials);
}

}  // namespace isochron
