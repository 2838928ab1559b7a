// A block of ranks R runs what it runs as a whole first, then falls into two blocks, again and
// again:
//   f(S, R) = min over U of own(U, R) + min over A and R = L + M of max(f(A, L), f(S - U - A, M)),
// where own(U, R) runs U on the whole block in the best micro-batches. No rank ever waits. Blocks
// that stand alike to the borders of the machine cost the same. What reaches the limit is left out,
// so that small blocks know few sets.

#include "isochron/plan/steps/nested_step.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <vector>

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/set_costs.h"

namespace isochron {

namespace {

// Groups cost the same when they stand as many ranks further.
std::int64_t period_of(const Problem& problem) {
  std::int64_t period = 1;
  for (const ContextCost& context : problem.model().context) {
    for (const ContextLink& link : context.links) {
      if (link.max_ranks < problem.num_ranks()) period = std::lcm(period, link.max_ranks);
    }
  }
  return std::min<std::int64_t>(period, problem.num_ranks());
}

class NestedStep {
 public:
  NestedStep(const Problem& problem, Nanoseconds limit)
      : problem_(problem),
        limit_(limit),
        period_(period_of(problem)),
        all_((ItemSet{1} << problem.num_items()) - 1),
        blocks_(static_cast<std::size_t>(problem.num_ranks()) + 1) {
    for (std::int64_t size = 1; size <= problem.num_ranks(); ++size) {
      const std::int64_t count = std::min(period_, problem.num_ranks() - size + 1);
      blocks_[static_cast<std::size_t>(size)].resize(static_cast<std::size_t>(count));
      for (std::int64_t first = 0; first < count; ++first) {
        solve({.first = first, .size = size});
      }
    }
  }

  std::optional<Draft> draft() const {
    const RankRange ranks{.first = 0, .size = problem_.num_ranks()};
    if (block_of(ranks).best[all_] >= limit_) return std::nullopt;
    Draft draft;
    collect(ranks, all_, draft);
    draft.time = step_time(problem_, draft);
    return draft;
  }

 private:
  struct Block {
    SetCosts costs;
    std::vector<Nanoseconds> split;  // without what the whole block runs
    std::vector<ItemSet> left;       // of the best split
    std::vector<std::int64_t> left_size;
    std::vector<Nanoseconds> best;  // f
    std::vector<ItemSet> own;       // the best U
    std::vector<ItemSet> sets;      // that end before the limit
  };

  const Block& block_of(RankRange ranks) const {
    return blocks_[static_cast<std::size_t>(ranks.size)]
                  [static_cast<std::size_t>(ranks.first % period_)];
  }

  void solve(RankRange ranks) {
    Block& block =
        blocks_[static_cast<std::size_t>(ranks.size)][static_cast<std::size_t>(ranks.first)];
    const std::size_t count = std::size_t{all_} + 1;
    block.split.assign(count, cannot_run);
    block.left.assign(count, 0);
    block.left_size.assign(count, 0);
    block.split[0] = 0;
    // Without borders a split is as good as its mirror image.
    const std::int64_t last = period_ == 1 ? ranks.size / 2 : ranks.size - 1;
    for (std::int64_t k = 1; k <= last; ++k) split(ranks, k, block);
    block.best = block.split;
    block.own.assign(count, 0);
    const auto sizes = problem_.sizes();
    const bool is_size = std::find(sizes.begin(), sizes.end(), ranks.size) != sizes.end();
    if (is_size && problem_.price_of(ranks) >= 0) {
      block.costs = set_costs(problem_, ranks);
      run_whole(ranks.size, block);
    }
    for (ItemSet set = 0; set <= all_; ++set) {
      if (block.best[set] < limit_) block.sets.push_back(set);
    }
  }

  void run_whole(std::int64_t size, Block& block) const {
    for (ItemSet own = 1; own <= all_; ++own) {
      const Nanoseconds time = block.costs.all[own];
      if (time >= limit_) continue;
      const ItemSet others = all_ ^ own;
      for (ItemSet rest = others;; rest = (rest - 1) & others) {
        if (time + block.split[rest] < block.best[own | rest]) {
          block.best[own | rest] = time + block.split[rest];
          block.own[own | rest] = own;
        }
        if (rest == 0 || size == problem_.num_ranks()) break;  // of all ranks, all items are asked
      }
    }
  }

  void split(RankRange ranks, std::int64_t left_size, Block& block) const {
    const Block& left = block_of({.first = ranks.first, .size = left_size});
    const Block& right =
        block_of({.first = ranks.first + left_size, .size = ranks.size - left_size});
    const bool is_left_small = 2 * left_size <= ranks.size;
    const Block& small = is_left_small ? left : right;
    const Block& large = is_left_small ? right : left;
    for (const ItemSet set : small.sets) {
      const Nanoseconds time = small.best[set];
      // Of equal halves the first has the last item.
      const ItemSet mirrored = &small == &large ? std::bit_floor(set) - 1 : all_;
      const ItemSet others = (all_ ^ set) & mirrored;
      for (ItemSet rest = others;; rest = (rest - 1) & others) {
        const Nanoseconds both = std::max(time, large.best[rest]);
        if (both < block.split[set | rest]) {
          block.split[set | rest] = both;
          block.left[set | rest] = is_left_small ? set : rest;
          block.left_size[set | rest] = left_size;
        }
        if (rest == 0) break;
      }
    }
  }

  void collect(RankRange ranks, ItemSet set, Draft& draft) const {
    if (set == 0) return;
    const Block& block = block_of(ranks);
    const ItemSet own = block.own[set];
    for (ItemSet rest = own; rest != 0; rest ^= block.costs.first_bin[rest]) {
      draft.groups.push_back({.ranks = ranks, .items = items_of(block.costs.first_bin[rest])});
    }
    const ItemSet others = set ^ own;
    if (others == 0) return;
    const ItemSet left = block.left[others];
    const std::int64_t left_size = block.left_size[others];
    collect({.first = ranks.first, .size = left_size}, left, draft);
    collect({.first = ranks.first + left_size, .size = ranks.size - left_size}, others ^ left,
            draft);
  }

  const Problem& problem_;
  Nanoseconds limit_;
  std::int64_t period_;
  ItemSet all_;
  std::vector<std::vector<Block>> blocks_;  // by size, and by the first rank up to the period
};

}  // namespace

bool has_nested_step(const Problem& problem) {
  constexpr std::int32_t max_items = 10;
  constexpr std::int32_t max_ranks_here = 8;
  return !problem.is_aligned() && !problem.has_speeds() &&
         problem.num_items() == problem.num_bundles() && problem.num_items() <= max_items &&
         problem.num_ranks() <= max_ranks_here;
}

std::optional<Draft> find_nested_step(const Problem& problem, Nanoseconds limit) {
  return NestedStep(problem, limit).draft();
}

}  // namespace isochron
