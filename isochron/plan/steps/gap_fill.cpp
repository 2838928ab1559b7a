// The longest gap first, and in it the dearest bundle that fits, again and again; a full
// micro-batch is followed by another.

#include "isochron/plan/steps/gap_fill.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>

namespace isochron {

namespace {

class GapFill {
 public:
  GapFill(const Problem& problem, const std::vector<BundleId>& narrow, std::int64_t& work)
      : problem_(problem), narrow_(narrow), work_(work), next_(narrow.size() + 1) {
    std::iota(next_.begin(), next_.end(), 0);
    const PriceId price = problem.cheapest_price(1);
    for (const BundleId bundle : narrow) {
      costs_.push_back(problem.cost(price, bundle));
      tokens_.push_back(problem.tokens(1, problem.items_of(bundle).front()));
    }
    has_falling_tokens_ = problem.num_items() == problem.num_bundles() &&
                          std::is_sorted(tokens_.begin(), tokens_.end(), std::greater<>());
  }

  void fill(const Gap& gap, std::vector<WideGroup>& filled) {
    const RankRange ranks{.first = gap.rank, .size = 1};
    const double slow = problem_.slowness(ranks);
    const Nanoseconds fixed = Problem::slowed(problem_.price(problem_.price_of(ranks)).fixed, slow);
    Nanoseconds start = gap.start;
    while (true) {
      WideGroup group{.ranks = ranks, .start = start, .end = start + fixed};
      add_all(gap.end, slow, group);
      if (group.items.empty()) return;
      start = group.end;
      filled.push_back(std::move(group));
    }
  }

  // Those that fill no gap, in their order.
  std::vector<BundleId> left() {
    std::vector<BundleId> left;
    for (std::size_t i = unused(0); i < narrow_.size(); i = unused(i + 1)) {
      left.push_back(narrow_[i]);
    }
    return left;
  }

 private:
  // The first place from `i` on that is not used.
  std::size_t unused(std::size_t i) {
    while (next_[i] != i) i = next_[i] = next_[next_[i]];
    return i;
  }

  // The first place from `i` on that is not used and may fit. Costs fall, and tokens mostly do.
  std::size_t next_within(std::size_t i, Nanoseconds time, Tokens tokens, double slow) {
    i = unused(i);
    if (i < narrow_.size() && Problem::slowed(costs_[i], slow) > time) {
      const auto first = std::partition_point(
          costs_.begin() + static_cast<std::ptrdiff_t>(i), costs_.end(),
          [&](Nanoseconds cost) { return Problem::slowed(cost, slow) > time; });
      i = unused(static_cast<std::size_t>(first - costs_.begin()));
    }
    if (i < narrow_.size() && has_falling_tokens_ && tokens_[i] > tokens) {
      const auto first =
          std::partition_point(tokens_.begin() + static_cast<std::ptrdiff_t>(i), tokens_.end(),
                               [&](Tokens needs) { return needs > tokens; });
      i = unused(static_cast<std::size_t>(first - tokens_.begin()));
    }
    return i;
  }

  void add_all(Nanoseconds end, double slow, WideGroup& group) {
    const auto next = [&](std::size_t from) {
      --work_;
      return next_within(from, end - group.end, problem_.capacity() - group.tokens, slow);
    };
    for (std::size_t i = next(0); i < narrow_.size(); i = next(i + 1)) {
      if (!can_join(problem_, group, narrow_[i])) continue;
      add_item(problem_, problem_.items_of(narrow_[i])[0], group);
      group.end += Problem::slowed(costs_[i], slow);
      next_[i] = i + 1;
    }
  }

  const Problem& problem_;
  const std::vector<BundleId>& narrow_;
  std::int64_t& work_;
  std::vector<Nanoseconds> costs_;
  std::vector<Tokens> tokens_;       // of the first item
  bool has_falling_tokens_ = false;  // bundles are items, and the longer one is never cheaper
  std::vector<std::size_t> next_;    // a later place, if one is used
};

}  // namespace

std::vector<WideGroup> fill_gaps(const Problem& problem, std::vector<Gap> gaps,
                                 std::vector<BundleId>& narrow, std::int64_t& work) {
  std::vector<WideGroup> filled;
  if (gaps.empty()) return filled;
  std::sort(gaps.begin(), gaps.end(), [](const Gap& a, const Gap& b) {
    return std::tuple(a.start - a.end, a.rank, a.start) <
           std::tuple(b.start - b.end, b.rank, b.start);
  });
  GapFill fill(problem, narrow, work);
  for (const Gap& gap : gaps) fill.fill(gap, filled);
  narrow = fill.left();
  return filled;
}

}  // namespace isochron
