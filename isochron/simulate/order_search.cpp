// Starts with the small at both ends, rising to the large and falling again, and asks how many
// belong on the rising side: a forward is cheaper than a backward, so a pipeline bears a steep rise
// better than a steep fall. Then threshold accepting (Dueck and Scheuer, 1990): random swaps,
// insertions and reversals of blocks are kept unless they make the order worse by more than a
// threshold, which shrinks to nothing. The time of a pipeline is the longest of many paths, so most
// moves change nothing, and a small threshold is enough to leave a plateau. Integers alone decide.

#include "isochron/simulate/order_search.h"

#include <algorithm>
#include <numeric>

#include "isochron/core/int128.h"
#include "isochron/core/order.h"
#include "isochron/core/random.h"

namespace isochron {

namespace {

using Places = std::vector<std::int32_t>;

constexpr std::size_t max_enumerated = 6;            // 720 orders
constexpr std::int64_t num_shares = 16;              // of the things on the rising side
constexpr std::int64_t evaluations_per_thing = 300;  // of one round: longer ones find no more
constexpr std::int64_t max_idle_rounds = 4;          // without a better order
constexpr std::int64_t first_threshold = 64;  // part of the gap to the bound that a move may lose

class Search {
 public:
  Search(const OrderQuestion& question, const OrderRule& rule)
      : sizes_(question.sizes),
        lower_bound_ns_(question.lower_bound_ns),
        evaluations_left_(question.max_evaluations),
        start_(question.start.begin(), question.start.end()),
        rule_(rule) {}

  FoundOrder run() {
    Places identity(sizes_.size());
    std::iota(identity.begin(), identity.end(), 0);
    best_ = {.order = identity, .score = evaluate(identity)};
    const auto fixed = small_ends(sizes_);
    offer(Places(fixed.begin(), fixed.end()));
    if (is_done()) return finished();

    if (sizes_.size() <= max_enumerated && evaluations_left_ >= num_orders()) {
      try_all(std::move(identity));
      best_.is_best = true;
      return best_;
    }
    if (!start_.empty() && evaluations_left_ > 0) offer(start_);
    try_shares();
    std::int64_t num_idle = 0;
    for (std::uint64_t round = 0; num_idle < max_idle_rounds && evaluations_left_ > 0; ++round) {
      const OrderScore before = best_.score;
      wander(round);
      if (is_done()) break;
      num_idle = best_.score < before ? 0 : num_idle + 1;
    }
    return finished();
  }

 private:
  OrderScore evaluate(const Places& order) {
    --evaluations_left_;
    return rule_(order);
  }

  void offer(const Places& order) {
    const OrderScore score = evaluate(order);
    if (score < best_.score) best_ = {.order = order, .score = score};
  }

  [[nodiscard]] bool is_done() const {
    return best_.score.excess_bytes == 0 && best_.score.time_ns <= lower_bound_ns_;
  }

  FoundOrder finished() {
    best_.is_best = is_done();
    return best_;
  }

  [[nodiscard]] std::int64_t num_orders() const {
    std::int64_t count = 1;
    for (std::size_t i = 2; i <= sizes_.size(); ++i) count *= static_cast<std::int64_t>(i);
    return count;
  }

  void try_all(Places order) {
    do {
      offer(order);
    } while (std::next_permutation(order.begin(), order.end()));
  }

  // Every share of the things, spread evenly over their sizes, on the rising side.
  void try_shares() {
    Places ascending(sizes_.size());
    std::iota(ascending.begin(), ascending.end(), 0);
    const auto size_of = [&](std::int32_t thing) {
      return sizes_[static_cast<std::size_t>(thing)];
    };
    std::stable_sort(ascending.begin(), ascending.end(),
                     [&](std::int32_t a, std::int32_t b) { return size_of(a) < size_of(b); });
    for (std::int64_t share = 0; share <= num_shares; ++share) {
      if (evaluations_left_ <= 0) return;
      Places rising;
      Places falling;
      for (std::size_t i = 0; i < ascending.size(); ++i) {
        const auto place = static_cast<std::int64_t>(i);
        const bool rises = (place + 1) * share / num_shares > place * share / num_shares;
        (rises ? rising : falling).push_back(ascending[i]);
      }
      rising.insert(rising.end(), falling.rbegin(), falling.rend());
      offer(rising);
    }
  }

  struct Move {
    enum class Kind { swap, insert, reverse };
    Kind kind = Kind::swap;
    std::size_t from = 0;
    std::size_t to = 0;

    void apply(Places& order) const {
      const auto at = [&](std::size_t i) { return order.begin() + static_cast<std::ptrdiff_t>(i); };
      switch (kind) {
        case Kind::swap:
          std::swap(order[from], order[to]);
          return;
        case Kind::insert:
          if (from < to) {
            std::rotate(at(from), at(from + 1), at(to + 1));
          } else {
            std::rotate(at(to), at(from), at(from + 1));
          }
          return;
        case Kind::reverse:
          std::reverse(at(std::min(from, to)), at(std::max(from, to) + 1));
          return;
      }
    }

    [[nodiscard]] Move undone() const { return {.kind = kind, .from = to, .to = from}; }
  };

  Move random_move(Random& random) const {
    const std::size_t count = sizes_.size();
    const auto kind = static_cast<Move::Kind>(random.below(3));
    const auto from = static_cast<std::size_t>(random.below(count));
    const auto step = static_cast<std::size_t>(random.below(count - 1)) + 1;
    return {.kind = kind, .from = from, .to = (from + step) % count};
  }

  // One round, from the best order known.
  void wander(std::uint64_t round) {
    Random random(round);
    Places order = best_.order;
    OrderScore current = best_.score;
    const std::int64_t num_moves = std::min(
        evaluations_left_, evaluations_per_thing * static_cast<std::int64_t>(sizes_.size()));
    const Nanoseconds threshold =
        std::max<Nanoseconds>(0, best_.score.time_ns - lower_bound_ns_) / first_threshold;
    for (std::int64_t i = 0; i < num_moves && !is_done(); ++i) {
      const Move move = random_move(random);
      move.apply(order);
      const OrderScore score = evaluate(order);
      const auto slack = static_cast<Nanoseconds>(Int128{threshold} * (num_moves - i) / num_moves);
      const bool is_accepted =
          score.excess_bytes < current.excess_bytes ||
          (score.excess_bytes == current.excess_bytes && score.time_ns <= current.time_ns + slack);
      if (!is_accepted) {
        move.undone().apply(order);
        continue;
      }
      current = score;
      if (score < best_.score) best_ = {.order = order, .score = score};
    }
  }

  std::span<const Nanoseconds> sizes_;
  Nanoseconds lower_bound_ns_;
  std::int64_t evaluations_left_;
  Places start_;
  const OrderRule& rule_;
  FoundOrder best_;
};

}  // namespace

FoundOrder find_order(const OrderQuestion& question, const OrderRule& rule) {
  return Search(question, rule).run();
}

std::vector<std::int32_t> spread_order(std::span<const double> sizes, std::size_t width) {
  Places descending(sizes.size());
  std::iota(descending.begin(), descending.end(), 0);
  std::stable_sort(descending.begin(), descending.end(), [&](std::int32_t a, std::int32_t b) {
    return sizes[static_cast<std::size_t>(a)] > sizes[static_cast<std::size_t>(b)];
  });
  Places order(sizes.size());
  auto next = descending.begin();
  for (std::size_t first = 0; first < width; ++first) {
    std::vector<std::size_t> places;
    for (std::size_t place = first; place < order.size(); place += width) places.push_back(place);
    if (first % 2 == 1) std::reverse(places.begin(), places.end());
    for (const std::size_t place : places) order[place] = *next++;
  }
  return order;
}

}  // namespace isochron
