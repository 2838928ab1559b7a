// Prices by a smooth version of the linear program of covers.
//
// A set of bundles that fills a group is used exp((worth - 1) / heat) times, where its worth is the
// sum of prices. Prices at which every bundle is used once, or costs as much as on a wide group,
// are optimal but for about the heat; each in turn is set so that this holds for it, which is one
// division (Sinkhorn, 1967). A high heat moves all prices quickly to where they belong; it is then
// halved until single pairs of bundles matter. Pairs that are nearly full are known from the start,
// larger sets are looked up when they are worth too much.

#include "isochron/plan/bundles/soft_prices.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

namespace isochron {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

// Those of the mathematical library differ between machines in the last bit.
double exponential(double x) {
  constexpr double ln_two = 0.6931471805599453;
  constexpr std::int64_t most = 1000;  // that two is raised to, either way
  x = std::clamp(x, -most * ln_two, most * ln_two);
  const auto power = static_cast<std::int64_t>(x * (1 / ln_two) + (most + 0.5)) - most;
  const double part = x - static_cast<double>(power) * ln_two;
  constexpr std::array<double, 8> inverse = {1.0 / 8, 1.0 / 7, 1.0 / 6, 1.0 / 5,
                                             1.0 / 4, 1.0 / 3, 1.0 / 2, 1.0};
  double sum = 1;
  for (const double factor : inverse) sum = 1 + sum * part * factor;
  constexpr std::int64_t bias = 1023;
  return sum * std::bit_cast<double>((power + bias) << 52);
}

double logarithm(double x) {
  constexpr double ln_two = 0.6931471805599453;
  int whole = 0;
  const double part = std::frexp(x, &whole);
  const double ratio = (part - 1) / (part + 1);  // ln(part) = 2 atanh(ratio), above -1/3
  double sum = 0;
  for (int k = 25; k > 0; k -= 2) sum = sum * ratio * ratio + 1.0 / k;
  return whole * ln_two + 2 * ratio * sum;
}

class PriceSearch {
 public:
  PriceSearch(const BundleTable& table, std::int32_t num_ranks)
      : table_(table), num_groups_(static_cast<double>(num_ranks) / table.size(0)) {
    for (BundleId bundle = 0; bundle < table.num_bundles(); ++bundle) {
      if (table.fits(0, bundle)) {
        items_.push_back(
            {.cost = static_cast<double>(table.use(0, bundle).cost), .bundle = bundle});
      }
    }
    std::sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) {
      return std::pair(a.cost, a.bundle) < std::pair(b.cost, b.bundle);
    });
  }

  SoftPrices run(Nanoseconds low) {
    constexpr double first_rise = 0.002;
    constexpr int num_rounds = 6;
    constexpr int num_halvings = 4;
    heat_ = 0.004;
    aim(low + static_cast<Nanoseconds>(first_rise * static_cast<double>(low)));
    for (Item& item : items_) item.excess = first_excess(item);
    list_pairs(1);
    sweep();
    for (int round = 1; round < num_rounds; ++round) {
      // Within a longer step prices are as much lower; with less heat they rise.
      if (round >= num_halvings) {
        const double before = room_;
        const double rise = heat_ * (round == num_halvings ? 1 : 0.3);
        aim(std::max(low, static_cast<Nanoseconds>(static_cast<double>(time_) * (mean() + rise))));
        if (room_ > before) list_pairs(before / room_);
      }
      if (round <= num_halvings) heat_ /= 2;
      forget_cheap();
      find_dear();
      sweep();
    }
    if (mean() < 1) {
      aim(std::max(low, static_cast<Nanoseconds>(static_cast<double>(time_) * mean())));
    }
    SoftPrices found{.prices = {}, .time = time_};
    for (BundleId bundle = 0; bundle < table_.num_bundles(); ++bundle) {
      found.prices.push_back(most(bundle) * table_.size(0));
    }
    for (std::size_t i = 0; i < num_narrow_; ++i) {
      found.prices[static_cast<std::size_t>(items_[i].bundle)] =
          std::max(0.0, price(i)) * table_.size(0);
    }
    return found;
  }

 private:
  struct Item {
    double cost = 0;  // on a group of the smallest size
    BundleId bundle = 0;
    double area = 0;    // cost in parts of such a group
    double most = 0;    // price, on wide groups
    double excess = 0;  // of the price over the area
  };
  static constexpr std::size_t max_members = 4;
  using Members = std::array<std::uint16_t, max_members>;
  struct Set {
    Members items = {};
    std::uint16_t count = 0;
    double cost = 0;

    [[nodiscard]] std::span<const std::uint16_t> members() const { return {items.data(), count}; }
  };

  [[nodiscard]] double price(std::size_t i) const { return items_[i].area + items_[i].excess; }

  // What a bundle takes of wide groups that are full, in groups of the smallest size.
  [[nodiscard]] double most(BundleId bundle) const {
    double least = infinite;
    for (std::int32_t level = 1; level < table_.num_levels(); ++level) {
      if (!table_.fits(level, bundle) || table_.time(level, bundle) > time_) continue;
      const auto room = static_cast<double>(time_ - table_.fixed(level));
      least = std::min(least, static_cast<double>(table_.use(level, bundle).cost) *
                                  table_.size(level) / (table_.size(0) * room));
    }
    // A little less, lest all that is full of wide groups alone has to be looked at.
    constexpr double part = 0.9993;
    return least == infinite ? 0 : part * least;
  }

  void aim(Nanoseconds time) {
    time_ = time;
    room_ = static_cast<double>(time - table_.fixed(0));
    num_narrow_ = 0;
    for (Item& item : items_) {
      item.area = item.cost / room_;
      item.most = most(item.bundle);
      if (item.most <= 0) item.most = 1;
      if (item.area <= 1) ++num_narrow_;
    }
    wide_sum_ = 0;
    for (BundleId bundle = 0; bundle < table_.num_bundles(); ++bundle) wide_sum_ += most(bundle);
    for (std::size_t i = 0; i < num_narrow_; ++i) {
      wide_sum_ -= most(items_[i].bundle);
      items_[i].excess = std::min(items_[i].excess, items_[i].most - items_[i].area);
    }
  }

  // Small bundles fill what others leave, large ones leave it.
  static double first_excess(const Item& item) {
    constexpr double rise = 0.005;
    return std::min(item.most - item.area, rise * std::clamp(4 * item.area - 2, -1.0, 1.0));
  }

  [[nodiscard]] double mean() const {
    double sum = wide_sum_;
    for (std::size_t i = 0; i < num_narrow_; ++i) sum += price(i);
    return sum / num_groups_;
  }

  void add(std::initializer_list<std::size_t> members) {
    Set set;
    BlockUse all;
    for (const std::size_t i : members) {
      set.items[set.count++] = static_cast<std::uint16_t>(i);
      set.cost += items_[i].cost;
      const BlockUse& use = table_.use(0, items_[i].bundle);
      all.cost += use.cost;
      all.tokens += use.tokens;
      all.sequences += use.sequences;
    }
    if (table_.time(0, all) <= time_) sets_.push_back(set);
  }

  // Those that fill a group, and more than a part of it that was too little before.
  void list_pairs(double part) {
    const double hole = part < 1 ? 1 - part : 0.014;
    std::size_t end = num_narrow_;
    std::size_t first = num_narrow_;
    for (std::size_t i = 0; i < num_narrow_; ++i) {
      if (items_[i].area >= 1 - hole) add({i});
      while (end > 0 && items_[end - 1].area > 1 - items_[i].area) --end;
      while (first > 0 && items_[first - 1].area >= 1 - hole - items_[i].area) --first;
      for (std::size_t j = std::max(first, i + 1); j < end; ++j) add({j, i});
    }
  }

  // Sets of three and four that are worth more than a group.
  void find_dear() {
    constexpr int most_of_each = 8;
    const std::size_t count = num_narrow_;
    std::vector<double> areas;
    std::vector<double> prices;
    std::vector<double> dearest = {-1};  // of the cheapest so many
    for (std::size_t i = 0; i < count; ++i) {
      areas.push_back(items_[i].area);
      prices.push_back(price(i));
      dearest.push_back(std::max(dearest.back(), prices.back()));
    }
    const std::vector<Pair> pairs = dearest_pairs(areas, prices);
    const std::vector<float> most = most_worth(areas, prices, pairs);
    std::size_t last = 0;  // of those that leave room for a third one
    for (std::size_t i = count; i-- > 0;) {
      const double beside = 1 - areas[i];
      while (last < count && areas[last] + areas[0] <= beside) ++last;
      const double missing = 1 - prices[i];
      int num_found = 0;
      for (std::size_t j = std::min(i, last); j-- > 1 && num_found < most_of_each;) {
        const double left = beside - areas[j];
        const double wanted = missing - prices[j];
        if (static_cast<double>(most[static_cast<std::size_t>(left * num_fine_cells)]) <= wanted)
          continue;
        const auto end = std::upper_bound(areas.begin(), areas.end(), left) - areas.begin();
        const std::size_t num_third = std::min(static_cast<std::size_t>(end), j);
        if (dearest[num_third] > wanted) {
          const auto third = std::find(prices.begin(), prices.end(), dearest[num_third]);
          add({i, j, static_cast<std::size_t>(third - prices.begin())});
          ++num_found;
        }
        const Pair& two = pairs[static_cast<std::size_t>(left * num_cells)];
        if (two.price > wanted && two.a != j && two.b != j && two.a != i && two.b != i) {
          add({i, j, two.a, two.b});
          ++num_found;
        }
      }
    }
  }

  static constexpr std::size_t num_cells = 1024;
  struct Pair {
    double price = -1;
    std::size_t a = 0;
    std::size_t b = 0;
  };

  // The dearest pairs of small items that fit into so many cells of a group.
  static std::vector<Pair> dearest_pairs(std::span<const double> areas,
                                         std::span<const double> prices) {
    constexpr double most = 0.6;  // of the smaller two of four
    std::vector<Pair> pairs(num_cells + 1);
    for (std::size_t a = 0; a < areas.size() && areas[a] < most; ++a) {
      for (std::size_t b = 0; b < a && areas[a] + areas[b] < most; ++b) {
        const auto cell = static_cast<std::size_t>((areas[a] + areas[b]) * num_cells) + 1;
        const double price = prices[a] + prices[b];
        if (price > pairs[cell].price) pairs[cell] = {.price = price, .a = a, .b = b};
      }
    }
    for (std::size_t k = 1; k <= num_cells; ++k) {
      if (pairs[k].price < pairs[k - 1].price) pairs[k] = pairs[k - 1];
    }
    return pairs;
  }

  static constexpr std::size_t num_fine_cells = 4 * num_cells;

  // No less than what one item or a dearest pair is worth that fits into what begins in each of
  // the fine cells.
  static std::vector<float> most_worth(std::span<const double> areas,
                                       std::span<const double> prices,
                                       std::span<const Pair> pairs) {
    std::vector<float> most(num_fine_cells + 1, 0);
    for (std::size_t i = 0; i < areas.size(); ++i) {
      float& there = most[static_cast<std::size_t>(areas[i] * num_fine_cells)];
      there = std::max(there, rounded_up(prices[i]));
    }
    float before = 0;
    for (std::size_t cell = 0; cell < most.size(); ++cell) {
      before = std::max(before, most[cell]);
      most[cell] = std::max(before, rounded_up(pairs[cell / 4].price));
    }
    return most;
  }

  static float rounded_up(double price) {
    return static_cast<float>(price * (1 + 2 * std::numeric_limits<float>::epsilon()));
  }

  // A set with an item: how often it is used but for changes of prices, and its other items.
  template <std::size_t num_others>
  struct Beside {
    float use = 0;
    std::array<std::uint16_t, num_others> others = {};
  };

  // By item.
  template <std::size_t num_others>
  struct Besides {
    std::vector<std::uint32_t> begin;
    std::vector<Beside<num_others>> sets;

    // How often all with an item are used, but for the change of its own price.
    [[nodiscard]] double use(std::size_t item, std::span<const double> factors) const {
      const auto use_of = [&](const Beside<num_others>& set) {
        double use = static_cast<double>(set.use);
        for (const std::uint16_t other : set.others) use *= factors[other];
        return use;
      };
      // Sums that need not wait for each other.
      double even = 0;
      double odd = 0;
      const auto* set = sets.data() + begin[item];
      const auto* end = sets.data() + begin[item + 1];
      for (; end - set > 1; set += 2) {
        even += use_of(set[0]);
        odd += use_of(set[1]);
      }
      return even + odd + (set != end ? use_of(*set) : 0);
    }
  };

  // Of the known sets of at most `num_others + 1` items, and more than `fewest`.
  template <std::size_t num_others>
  [[nodiscard]] Besides<num_others> besides(std::size_t fewest) const {
    const auto is_asked = [&](const Set& set) {
      return set.count > fewest && set.count <= num_others + 1;
    };
    Besides<num_others> found{.begin = std::vector<std::uint32_t>(num_narrow_ + 2, 0), .sets = {}};
    for (const Set& set : sets_) {
      if (!is_asked(set)) continue;
      for (const std::uint16_t i : set.members()) ++found.begin[i + std::size_t{2}];
    }
    std::partial_sum(found.begin.begin(), found.begin.end(), found.begin.begin());
    found.sets.resize(found.begin.back());
    // What begins where the one before ends is one place too late until all are in.
    const auto none = static_cast<std::uint16_t>(num_narrow_);
    for (const Set& set : sets_) {
      if (!is_asked(set)) continue;
      double worth = 0;
      for (const std::uint16_t i : set.members()) worth += price(i);
      Beside<num_others> beside{
          .use = static_cast<float>(std::min(1e30, exponential((worth - 1) / heat_)))};
      for (const std::uint16_t i : set.members()) {
        beside.others.fill(none);
        auto other = beside.others.begin();
        for (const std::uint16_t j : set.members()) {
          if (j != i) *other++ = j;
        }
        found.sets[found.begin[i + std::size_t{1}]++] = beside;
      }
    }
    found.begin.pop_back();
    return found;
  }

  void sweep() {
    // Prices are rough at first, and hardly change in the end.
    const int num_sweeps = heat_ > 0.003 ? 6 : heat_ > 0.0015 || heat_ < 0.0004 ? 10 : 20;
    const Besides<1> pairs = besides<1>(0);
    const Besides<max_members - 1> larger = besides<max_members - 1>(2);
    std::vector<double> factors(num_narrow_ + 1, 1);  // of uses, by the changes of prices; no item
    std::vector<double> most_factors;
    for (std::size_t i = 0; i < num_narrow_; ++i) {
      most_factors.push_back(exponential((items_[i].most - price(i)) / heat_));
    }
    for (int k = 0; k < num_sweeps; ++k) {
      for (std::size_t n = 0; n < num_narrow_; ++n) {
        const std::size_t i = k % 2 == 0 ? num_narrow_ - 1 - n : n;
        const double use = pairs.use(i, factors) + larger.use(i, factors);
        factors[i] = use * most_factors[i] > 1 ? 1 / use : most_factors[i];
      }
    }
    for (std::size_t i = 0; i < num_narrow_; ++i) {
      items_[i].excess += heat_ * logarithm(factors[i]);
    }
  }

  void forget_cheap() {
    const double least = 1 - 24 * heat_;
    std::erase_if(sets_, [&](const Set& set) {
      double worth = 0;
      for (const std::uint16_t i : set.members()) {
        if (i >= num_narrow_) return true;
        worth += price(i);
      }
      return worth < least || set.cost > room_;
    });
  }

  const BundleTable& table_;
  double num_groups_;
  std::vector<Item> items_;  // by cost
  std::vector<Set> sets_;
  double heat_ = 0;
  Nanoseconds time_ = 0;
  double room_ = 0;             // of a group within the time
  std::size_t num_narrow_ = 0;  // items that fit it
  double wide_sum_ = 0;         // of the prices of all others
};

}  // namespace

SoftPrices find_soft_prices(const BundleTable& table, std::int32_t num_ranks, Nanoseconds low) {
  return PriceSearch(table, num_ranks).run(low);
}

}  // namespace isochron
