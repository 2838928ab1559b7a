// Starts with the small at both ends, rising to the large and falling again, and asks how many of
// the small and of the large belong on the rising side: a forward is cheaper than a backward, so a
// pipeline bears a steep rise better than a steep fall, but not to one that stands out: few small
// ones rise and many large. Then threshold accepting (Dueck and Scheuer, 1990): random swaps,
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

constexpr std::size_t max_enumerated = 6;      // 720 orders
constexpr std::int64_t num_shares = 16;        // of the things on the rising side
constexpr std::int64_t first_cut = 14;         // between small and large things: few are large
constexpr int max_side_rounds = 3;             // in which better sides are found
constexpr std::int64_t moves_per_thing = 300;  // of one round: longer ones find no more
constexpr std::int64_t max_idle_rounds = 4;    // without a better order
constexpr std::int64_t first_threshold = 32;   // part of the gap to the bound that a move may lose;
                                               // twice as much in every idle round

class Search {
 public:
  Search(const OrderQuestion& question, OrderRule& rule)
      : sizes_(question.sizes),
        lower_bound_ns_(question.lower_bound_ns),
        last_work_(rule.work() + question.max_work),
        start_(question.start.begin(), question.start.end()),
        rule_(rule) {}

  FoundOrder run() {
    Places identity(sizes_.size());
    std::iota(identity.begin(), identity.end(), 0);
    const std::int64_t before_all = rule_.work();
    best_ = {.order = identity, .score = rule_.score(identity)};
    work_per_order_ = std::max<std::int64_t>(1, rule_.work() - before_all);
    const auto fixed = small_ends(sizes_);
    offer(Places(fixed.begin(), fixed.end()));
    if (is_done()) return finished();

    if (sizes_.size() <= max_enumerated && num_orders() * work_per_order_ <= work_left()) {
      try_all(std::move(identity));
      best_.is_best = true;
      return best_;
    }
    if (!start_.empty() && work_left() > 0) offer(start_);
    try_sides();
    std::int64_t num_idle = 0;
    for (std::uint64_t round = 0; num_idle < max_idle_rounds && work_left() > 0; ++round) {
      const OrderScore before = best_.score;
      wander(round, num_idle);
      if (is_done()) break;
      num_idle = best_.score < before ? 0 : num_idle + 1;
    }
    return finished();
  }

 private:
  [[nodiscard]] std::int64_t work_left() const { return last_work_ - rule_.work(); }

  void offer(const Places& order) {
    const OrderScore score = rule_.score(order);
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

  // How the things are dealt to the rising and the falling side, smallest first: of those below a
  // cut one share rises, of those above another.
  struct Sides {
    std::int64_t small_share = num_shares / 2;
    std::int64_t large_share = num_shares / 2;
    std::int64_t cut = num_shares;  // part of the things
  };

  [[nodiscard]] Places order_of(const Sides& sides, const Places& ascending) const {
    Places rising;
    Places falling;
    const auto count = static_cast<std::int64_t>(ascending.size());
    std::int64_t risen = 0;  // in parts of a thing
    for (std::int64_t place = 0; place < count; ++place) {
      const bool is_small = place * num_shares < sides.cut * count;
      risen += is_small ? sides.small_share : sides.large_share;
      const bool rises = risen >= num_shares;
      if (rises) risen -= num_shares;
      (rises ? rising : falling).push_back(ascending[static_cast<std::size_t>(place)]);
    }
    rising.insert(rising.end(), falling.rbegin(), falling.rend());
    return rising;
  }

  // The best sides, one of their numbers after the other.
  void try_sides() {
    Places ascending(sizes_.size());
    std::iota(ascending.begin(), ascending.end(), 0);
    const auto size_of = [&](std::int32_t thing) {
      return sizes_[static_cast<std::size_t>(thing)];
    };
    std::stable_sort(ascending.begin(), ascending.end(),
                     [&](std::int32_t a, std::int32_t b) { return size_of(a) < size_of(b); });
    Sides best;
    OrderScore least = rule_.score(order_of(best, ascending));
    const auto try_all_of = [&](auto change) {
      const Sides start = best;
      for (std::int64_t part = 0; part <= num_shares && work_left() > 0; ++part) {
        Sides sides = start;
        change(sides, part);
        const Places order = order_of(sides, ascending);
        const OrderScore score = rule_.score(order);
        if (score < best_.score) best_ = {.order = order, .score = score};
        if (score >= least) continue;
        least = score;
        best = sides;
      }
    };
    try_all_of([](Sides& sides, std::int64_t part) { sides.small_share = part; });
    for (int round = 0; round < max_side_rounds; ++round) {
      const OrderScore before = least;
      if (round == 0) best.cut = first_cut;
      try_all_of([](Sides& sides, std::int64_t part) { sides.large_share = part; });
      try_all_of([](Sides& sides, std::int64_t part) { sides.small_share = part; });
      try_all_of([](Sides& sides, std::int64_t part) { sides.cut = part; });
      if (least == before) return;
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

  // One round, from the best order known, in which the work left allows at least as many moves.
  void wander(std::uint64_t round, std::int64_t num_idle) {
    Random random(round);
    Places order = best_.order;
    OrderScore current = best_.score;
    const std::int64_t num_moves = moves_per_thing * static_cast<std::int64_t>(sizes_.size());
    const std::int64_t first_work = rule_.work();
    const std::int64_t round_work = std::min(work_left(), num_moves * work_per_order_);
    const Nanoseconds threshold = std::max<Nanoseconds>(0, best_.score.time_ns - lower_bound_ns_) /
                                  (first_threshold >> num_idle);
    while (!is_done()) {
      const std::int64_t left = first_work + round_work - rule_.work();
      if (left <= 0) return;
      const Move move = random_move(random);
      move.apply(order);
      const OrderScore score = rule_.score(order);
      const auto slack = static_cast<Nanoseconds>(Int128{threshold} * left / round_work);
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
  std::int64_t last_work_;
  std::int64_t work_per_order_ = 1;
  Places start_;
  OrderRule& rule_;
  FoundOrder best_;
};

}  // namespace

FoundOrder find_order(const OrderQuestion& question, OrderRule& rule) {
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
