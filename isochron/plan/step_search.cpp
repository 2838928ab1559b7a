// Wide groups on a skyline, the rest on single cells.
//
// For a target T every bundle takes the smallest group that runs it within T. What needs several
// cells is placed widest first, then dearest first, where it wastes least: extra area of a wider
// group plus the hole below it. With aligned groups that leaves no holes; where it does, the
// longest cell-sized bundles that fit fill them. The rest goes longest first on top, and cells
// exchange bundles until the last one is early enough. The search repeats this for targets from the
// bound up.

#include "isochron/plan/step_search.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "isochron/core/random.h"
#include "isochron/plan/cells.h"

namespace isochron {

namespace {

constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max();

struct Gap {  // an idle time below a wide group
  std::int32_t rank = 0;
  std::int32_t group = 0;  // the one above
  Nanoseconds length = 0;
};

class StepSearch {
 public:
  StepSearch(const Problem& problem, Nanoseconds bound, std::int32_t min_slots)
      : problem_(problem),
        bound_(bound),
        min_slots_(min_slots),
        cells_(problem, problem.sizes().front()) {
    const auto count = static_cast<std::size_t>(problem.num_bundles());
    smallest_.resize(count);
    dearest_.resize(count);
    std::iota(dearest_.begin(), dearest_.end(), 0);
    const auto sizes = problem.sizes();
    for (std::size_t i = 0; i < count; ++i) {
      while (
          !problem.fits(sizes[static_cast<std::size_t>(smallest_[i])], static_cast<BundleId>(i))) {
        ++smallest_[i];
      }
    }
    is_nested_ = problem.is_aligned() && !problem.has_speeds();
    for (std::size_t i = 1; i < sizes.size(); ++i) {
      is_nested_ = is_nested_ && sizes[i] % sizes[i - 1] == 0;
    }
    for (const std::int32_t size : sizes) {  // and every place of a size costs the same
      for (std::int32_t first = 0; first + size <= problem.num_ranks(); first += size) {
        is_nested_ = is_nested_ && problem.price_of({.first = first, .size = size}) ==
                                       problem.cheapest_price(size);
      }
    }
    const PriceId price = problem.cheapest_price(sizes.front());
    std::sort(dearest_.begin(), dearest_.end(), [&](BundleId a, BundleId b) {
      return std::pair(-problem.cost(price, a), a) < std::pair(-problem.cost(price, b), b);
    });
  }

  Draft run(std::int64_t work) {
    Draft best;
    best.time = never;
    Random random(0);
    double excess = 0;
    const std::int64_t first_work = work / 2;
    const std::int64_t later_work = work / 6;
    for (std::int32_t round = 0; round == 0 || work > 0; ++round) {
      constexpr double excesses[] = {1e-5, 0.002, 0.01, 0.03, 0.08, 0.2};
      if (round < 6) {
        excess = excesses[round];
      } else {
        const double widest =
            static_cast<double>(best.time) / static_cast<double>(std::max<Nanoseconds>(1, bound_)) -
            1;
        excess = widest * (0.5 + 0.5 * random.unit());
      }
      const auto target = static_cast<Nanoseconds>(static_cast<double>(bound_) * (1 + excess));
      const std::int64_t round_work = round == 0 ? first_work : later_work;
      std::int64_t left = round_work;
      build(target, best.time, round % 2 == 1 && min_slots_ == 0, left);
      work -= round_work - left;
      const Nanoseconds time = std::max(top_, cells_.max_load());
      if (time < best.time) {
        best = draft();
        best.time = time;
      }
      if (best.time <= good_enough()) break;
    }
    for (std::size_t i = 1; i < problem_.sizes().size(); ++i) try_static(i, best);
    return best;
  }

 private:
  // All in groups of one larger size, where that may be shorter: few sequences on many ranks.
  void try_static(std::size_t place, Draft& best) const {
    const std::int32_t size = problem_.sizes()[place];
    if (problem_.num_ranks() % size != 0) return;
    double area = 0;
    for (const BundleId bundle : dearest_) {
      if (!problem_.fits(size, bundle)) return;
      area += static_cast<double>(problem_.cost(problem_.cheapest_price(size), bundle)) * size;
    }
    if (!problem_.has_speeds() && area / problem_.num_ranks() >= static_cast<double>(best.time)) {
      return;
    }
    Cells cells(problem_, size);
    const std::vector<Nanoseconds> height(static_cast<std::size_t>(problem_.num_ranks()), 0);
    const std::vector<std::int32_t> slots(min_slots_ == 0 ? 0 : height.size(), min_slots_);
    cells.reset(height, slots);
    cells.add(dearest_);
    std::int64_t work = 20 * static_cast<std::int64_t>(dearest_.size());
    cells.refine(good_enough(), work);
    if (cells.max_load() >= best.time) return;
    best = {};
    best.time = cells.max_load();
    for (const Cell& cell : cells.cells()) {
      for (auto& items : cells.pack(cell)) {
        best.groups.push_back({.ranks = cell.ranks, .items = std::move(items)});
      }
    }
  }

  Nanoseconds good_enough() const { return bound_ + (bound_ >> 14); }

  // The smallest size, from the smallest that holds the bundle, that runs it within the target.
  std::size_t size_within(BundleId bundle, Nanoseconds target) const {
    const auto sizes = problem_.sizes();
    auto i = static_cast<std::size_t>(smallest_[static_cast<std::size_t>(bundle)]);
    std::size_t best = i;
    Nanoseconds least = never;
    for (; i < sizes.size(); ++i) {
      if (!problem_.fits(sizes[i], bundle)) continue;
      const PriceId price = problem_.cheapest_price(sizes[i]);
      const Nanoseconds time = problem_.cost(price, bundle) + problem_.price(price).fixed;
      if (time <= target) return i;
      if (time < least) {
        least = time;
        best = i;
      }
    }
    return best;
  }

  void build(Nanoseconds target, Nanoseconds incumbent, bool absorbs, std::int64_t& work) {
    height_.assign(static_cast<std::size_t>(problem_.num_ranks()), 0);
    if (is_nested_) {
      blocks_.resize(problem_.sizes().size());
      for (std::size_t i = 0; i < blocks_.size(); ++i) {
        blocks_[i].assign(height_.size() / static_cast<std::size_t>(problem_.sizes()[i]), {});
      }
    }
    top_of_.assign(height_.size(), -1);
    wide_.clear();
    gaps_.clear();
    narrow_.clear();
    top_ = 0;
    // What needs more than half of the ranks stands on all that matters: place it first, so that
    // the others know what is left of the target.
    std::vector<BundleId> others;
    std::vector<Choice> choices;
    for (const BundleId bundle : dearest_) {
      const std::size_t place = size_within(bundle, target);
      if (problem_.sizes()[place] * 2 > problem_.num_ranks() && place > 0) {
        choices.push_back(choice_of(bundle, place));
      } else {
        others.push_back(bundle);
      }
    }
    place_all(choices, target, work);
    const Nanoseconds floor = *std::min_element(height_.begin(), height_.end());
    choices.clear();
    for (const BundleId bundle : others) {
      const std::size_t place = size_within(bundle, target - floor);
      if (place == 0) {
        narrow_.push_back(bundle);
      } else {
        choices.push_back(choice_of(bundle, place));
      }
    }
    place_all(choices, target, work);
    fill_gaps(work);
    if (absorbs) absorb(target, work);
    cells_.reset(height_, slots_left());
    cells_.add(narrow_);
    work -= static_cast<std::int64_t>(dearest_.size());
    const bool is_hopeless = top_ >= incumbent || cells_.mean_load() >= incumbent;
    if (!is_hopeless) cells_.refine(std::max(top_, good_enough()), work);
  }

  struct Wide {
    RankRange ranks;
    std::vector<ItemId> items = {};
    Tokens tokens = 0;
    std::int32_t num_sequences = 0;
    bool is_closed = false;
  };

  // An aligned block of ranks, where groups nest.
  struct Block {
    Nanoseconds top = 0;     // when its last rank is done
    std::int32_t open = -1;  // its last wide group
  };

  struct Choice {
    std::int32_t size;
    Nanoseconds cost;
    BundleId bundle;
  };

  Choice choice_of(BundleId bundle, std::size_t place) const {
    const std::int32_t size = problem_.sizes()[place];
    return {size, problem_.cost(problem_.cheapest_price(size), bundle), bundle};
  }

  void place_all(std::vector<Choice>& choices, Nanoseconds target, std::int64_t& work) {
    std::sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
      return std::tuple(-a.size, -a.cost, a.bundle) < std::tuple(-b.size, -b.cost, b.bundle);
    });
    for (const Choice& choice : choices) {
      if (is_nested_) {
        place_nested(choice.bundle, choice.size, target, work);
      } else {
        place(choice.bundle, choice.size, target, work);
      }
    }
  }

  // Groups that nest run widest first, whenever they are placed: no rank waits, a rank is done
  // after the sum of its groups. So a group goes to the block that is done first, and joins a
  // micro-batch there if it can; the next size is tried if it would end late.
  void place_nested(BundleId bundle, std::int32_t size, Nanoseconds target, std::int64_t& work) {
    const auto sizes = problem_.sizes();
    const auto begin = static_cast<std::size_t>(std::lower_bound(sizes.begin(), sizes.end(), size) -
                                                sizes.begin());
    struct Best {
      std::size_t place = 0;
      std::size_t block = 0;
      bool joins = false;
      Nanoseconds end = never;
    } best;
    for (std::size_t place = begin; place < std::min(sizes.size(), begin + 2); ++place) {
      if (!problem_.fits(sizes[place], bundle)) continue;
      const PriceId price = problem_.cheapest_price(sizes[place]);
      const Nanoseconds cost = problem_.cost(price, bundle);
      const Nanoseconds fixed = problem_.price(price).fixed;
      const std::vector<Block>& blocks = blocks_[place];
      work -= static_cast<std::int64_t>(blocks.size() / 8 + 1);
      for (std::size_t k = 0; k < blocks.size(); ++k) {
        const Nanoseconds soonest = blocks[k].top + cost;
        if (soonest >= best.end) continue;
        const bool joins = blocks[k].open >= 0 && can_join(blocks[k].open, bundle);
        const Nanoseconds end = joins ? soonest : soonest + fixed;
        if (end < best.end) best = {.place = place, .block = k, .joins = joins, .end = end};
      }
      if (best.end <= target) break;
    }
    put_nested(bundle, best.place, best.block, best.joins);
  }

  void put_nested(BundleId bundle, std::size_t place, std::size_t block, bool joins) {
    const std::int32_t size = problem_.sizes()[place];
    const PriceId price = problem_.cheapest_price(size);
    Nanoseconds time = problem_.cost(price, bundle);
    const RankRange ranks{.first = static_cast<std::int64_t>(block) * size, .size = size};
    if (joins) {
      Wide& group = wide_[static_cast<std::size_t>(blocks_[place][block].open)];
      add_item(problem_.items_of(bundle)[0], group);
    } else {
      const std::size_t count = wide_.size();
      open_groups(bundle, ranks);
      time += static_cast<Nanoseconds>(wide_.size() - count) * problem_.price(price).fixed;
      blocks_[place][block].open = static_cast<std::int32_t>(wide_.size()) - 1;
    }
    const auto first = static_cast<std::size_t>(ranks.first);
    for (std::size_t r = first; r < first + static_cast<std::size_t>(size); ++r) {
      height_[r] += time;
      top_ = std::max(top_, height_[r]);
    }
    for (std::size_t p = 0; p < blocks_.size(); ++p) {
      const auto width = static_cast<std::size_t>(problem_.sizes()[p]);
      if (p <= place) {
        for (std::size_t k = first / width; k < (first + static_cast<std::size_t>(size)) / width;
             ++k) {
          blocks_[p][k].top += time;
        }
      } else if (first / width < blocks_[p].size()) {
        Block& above = blocks_[p][first / width];
        above.top = std::max(above.top, blocks_[place][block].top);
      }
    }
  }

  struct Spot {
    std::int32_t first = -1;
    std::int32_t size = 0;
    PriceId price = -1;
    std::int32_t joins = -1;  // an open group
    Nanoseconds end = never;
    Nanoseconds waste = never;
    bool is_late = true;

    [[nodiscard]] bool is_better_than(const Spot& other) const {
      if (is_late != other.is_late) return !is_late;
      if (is_late) return std::pair(end, waste) < std::pair(other.end, other.waste);
      return std::tuple(waste, end, size, first) <
             std::tuple(other.waste, other.end, other.size, other.first);
    }
  };

  void place(BundleId bundle, std::int32_t size, Nanoseconds target, std::int64_t& work) {
    const auto sizes = problem_.sizes();
    auto place = static_cast<std::size_t>(std::lower_bound(sizes.begin(), sizes.end(), size) -
                                          sizes.begin());
    const std::size_t num_sizes = problem_.is_aligned() ? 2 : 4;
    const Nanoseconds least_area = problem_.cost(problem_.cheapest_price(size), bundle) * size;
    prefix_.resize(height_.size() + 1);
    prefix_[0] = 0;
    for (std::size_t r = 0; r < height_.size(); ++r) prefix_[r + 1] = prefix_[r] + height_[r];
    Spot best;
    for (std::size_t k = 0; k < num_sizes && place + k < sizes.size(); ++k) {
      const std::int32_t width = sizes[place + k];
      if (!problem_.fits(width, bundle)) continue;
      window_max(width);
      work -= static_cast<std::int64_t>(height_.size() / 4);
      const std::int32_t step = problem_.first_step(width);
      for (std::int32_t first = 0; first + width <= problem_.num_ranks(); first += step) {
        const RankRange ranks{.first = first, .size = width};
        const PriceId price = problem_.price_of(ranks);
        if (price < 0) continue;
        const double slow = problem_.slowness(ranks);
        const Nanoseconds cost = problem_.cost(price, bundle);
        const Nanoseconds time = Problem::slowed(cost, slow);
        const Nanoseconds fixed = Problem::slowed(problem_.price(price).fixed, slow);
        const auto f = static_cast<std::size_t>(first);
        const auto w = static_cast<std::size_t>(width);
        const Nanoseconds top = window_[f];
        const auto consider = [&](std::int32_t joins, Nanoseconds duration) {
          Spot spot{.first = first, .size = width, .price = price, .joins = joins};
          spot.end = top + duration;
          spot.is_late = spot.end > target;
          spot.waste =
              duration * width - least_area + (top * width - (prefix_[f + w] - prefix_[f]));
          if (spot.is_better_than(best)) best = spot;
        };
        const std::int32_t open = top_of_[f];
        if (open >= 0 && wide_[static_cast<std::size_t>(open)].ranks == ranks &&
            can_join(open, bundle)) {
          consider(open, time);
        }
        consider(-1, time + fixed);
      }
    }
    put(bundle, best);
  }

  bool can_join(std::int32_t open, BundleId bundle) const {
    const Wide& group = wide_[static_cast<std::size_t>(open)];
    if (group.is_closed || problem_.items_of(bundle).size() != 1) return false;
    return has_room(group, problem_.items_of(bundle)[0]);
  }

  bool has_room(const Wide& group, ItemId item) const {
    const auto size = static_cast<std::int32_t>(group.ranks.size);
    const std::int32_t limit = problem_.options().max_sequences;
    return group.tokens + problem_.tokens(size, item) <= problem_.capacity() * size &&
           (limit == 0 || group.num_sequences + problem_.num_sequences(item) <= limit);
  }

  void add_item(ItemId item, Wide& group) const {
    group.items.push_back(item);
    group.tokens += problem_.tokens(static_cast<std::int32_t>(group.ranks.size), item);
    group.num_sequences += problem_.num_sequences(item);
  }

  // Micro-batches for a bundle: one, or several if it has many items; first fit.
  void open_groups(BundleId bundle, RankRange ranks) {
    const std::size_t begin = wide_.size();
    for (const ItemId item : problem_.items_of(bundle)) {
      std::size_t g = begin;
      while (g < wide_.size() && !has_room(wide_[g], item)) ++g;
      if (g == wide_.size()) wide_.push_back({.ranks = ranks});
      add_item(item, wide_[g]);
    }
  }

  void put(BundleId bundle, const Spot& spot) {
    const RankRange ranks{.first = spot.first, .size = spot.size};
    const auto first = static_cast<std::size_t>(spot.first);
    const auto last = first + static_cast<std::size_t>(spot.size);
    Nanoseconds end = spot.end;
    if (spot.joins >= 0) {
      add_item(problem_.items_of(bundle)[0], wide_[static_cast<std::size_t>(spot.joins)]);
    } else {
      const Nanoseconds top =
          *std::max_element(height_.begin() + spot.first, height_.begin() + spot.first + spot.size);
      const std::size_t count = wide_.size();
      for (std::size_t r = first; r < last; ++r) {
        if (top > height_[r]) {
          gaps_.push_back(
              {static_cast<std::int32_t>(r), static_cast<std::int32_t>(count), top - height_[r]});
        }
      }
      open_groups(bundle, ranks);
      end += static_cast<Nanoseconds>(wide_.size() - count - 1) *
             Problem::slowed(problem_.price(spot.price).fixed, problem_.slowness(ranks));
      std::fill(top_of_.begin() + spot.first, top_of_.begin() + spot.first + spot.size,
                static_cast<std::int32_t>(wide_.size()) - 1);
    }
    for (std::size_t r = first; r < last; ++r) height_[r] = end;
    top_ = std::max(top_, end);
    close_covered(ranks);
  }

  // A group that something stands on, on any of its ranks, takes nothing more.
  void close_covered(RankRange ranks) {
    const auto overlaps = [&](std::int64_t rank) {
      if (rank < 0 || rank >= problem_.num_ranks()) return;
      const std::int32_t open = top_of_[static_cast<std::size_t>(rank)];
      if (open < 0) return;
      Wide& group = wide_[static_cast<std::size_t>(open)];
      const bool is_cut = group.ranks.first < ranks.first + ranks.size &&
                          ranks.first < group.ranks.first + group.ranks.size;
      if (is_cut && group.ranks != ranks) group.is_closed = true;
    };
    overlaps(ranks.first - 1);
    overlaps(ranks.first + ranks.size);
  }

  // Largest height in every window of `width` ranks, by its first rank.
  void window_max(std::int32_t width) {
    const std::size_t count = height_.size();
    const auto w = static_cast<std::size_t>(width);
    window_.assign(count, 0);
    if (problem_.is_aligned()) {
      for (std::size_t first = 0; first + w <= count; first += w) {
        window_[first] =
            *std::max_element(height_.begin() + static_cast<std::ptrdiff_t>(first),
                              height_.begin() + static_cast<std::ptrdiff_t>(first + w));
      }
      return;
    }
    // Ranks that may still be the highest of a window, highest first.
    falling_.resize(count);
    std::size_t head = 0;
    std::size_t tail = 0;
    for (std::size_t r = 0; r < count; ++r) {
      while (tail > head && height_[falling_[tail - 1]] <= height_[r]) --tail;
      falling_[tail++] = r;
      if (falling_[head] + w <= r) ++head;
      if (r + 1 >= w) window_[r + 1 - w] = height_[falling_[head]];
    }
  }

  void fill_gaps(std::int64_t& work) {
    filled_.clear();
    if (gaps_.empty() || cells_.size() != 1) return;
    std::stable_sort(gaps_.begin(), gaps_.end(),
                     [](const Gap& a, const Gap& b) { return a.length > b.length; });
    std::vector<bool> is_used(narrow_.size(), false);
    for (const Gap& gap : gaps_) {
      const RankRange ranks{.first = gap.rank, .size = 1};
      const PriceId price = problem_.price_of(ranks);
      const double slow = problem_.slowness(ranks);
      Nanoseconds room = gap.length - Problem::slowed(problem_.price(price).fixed, slow);
      if (room <= 0) break;
      DraftGroup group{.ranks = ranks, .items = {}};
      Tokens tokens = 0;
      // narrow_ is dearest first: skip to the first that fits.
      auto next = static_cast<std::size_t>(
          std::partition_point(narrow_.begin(), narrow_.end(),
                               [&](BundleId b) { return problem_.cost(price, b) > room; }) -
          narrow_.begin());
      for (; next < narrow_.size() && room > 0; ++next) {
        --work;
        if (is_used[next]) continue;
        const BundleId bundle = narrow_[next];
        if (problem_.items_of(bundle).size() != 1) continue;
        const ItemId item = problem_.items_of(bundle)[0];
        const Nanoseconds time = Problem::slowed(problem_.cost(price, bundle), slow);
        if (time > room || tokens + problem_.tokens(1, item) > problem_.capacity()) continue;
        if (problem_.options().max_sequences > 0 &&
            static_cast<std::int32_t>(group.items.size()) >= problem_.options().max_sequences) {
          break;
        }
        is_used[next] = true;
        room -= time;
        tokens += problem_.tokens(1, item);
        group.items.push_back(item);
      }
      if (!group.items.empty()) filled_.emplace_back(gap.group, std::move(group));
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < narrow_.size(); ++i) {
      if (!is_used[i]) narrow_[kept++] = narrow_[i];
    }
    narrow_.resize(kept);
  }

  // Micro-batches that each rank still has to pay for.
  std::vector<std::int32_t> slots_left() const {
    std::vector<std::int32_t> left;
    if (min_slots_ == 0) return left;
    left.assign(height_.size(), min_slots_);
    const auto take = [&](RankRange ranks) {
      const auto first = left.begin() + ranks.first;
      std::for_each(first, first + ranks.size, [](std::int32_t& n) { n = std::max(0, n - 1); });
    };
    for (const Wide& group : wide_) take(group.ranks);
    for (const auto& [before, group] : filled_) take(group.ranks);
    return left;
  }

  // Whether no narrower group shares its ranks, and it is the last of its own.
  bool is_last_of_block(std::size_t w) const {
    const RankRange ranks = wide_[w].ranks;
    return std::all_of(wide_.begin(), wide_.end(), [&](const Wide& other) {
      if (&other == &wide_[w]) return true;
      const bool is_inside = other.ranks.first >= ranks.first &&
                             other.ranks.first + other.ranks.size <= ranks.first + ranks.size;
      return !is_inside || (other.ranks == ranks && &other < &wide_[w]);
    });
  }

  // Bundles that would run alone join the wide groups on top, where their traffic costs less than
  // another micro-batch on each of the ranks.
  void absorb(Nanoseconds target, std::int64_t& work) {
    std::vector<bool> is_used(narrow_.size(), false);
    std::vector<std::size_t> taken;
    for (std::size_t w = 0; w < wide_.size(); ++w) {
      Wide& group = wide_[w];
      const auto first = static_cast<std::size_t>(group.ranks.first);
      const auto last = first + static_cast<std::size_t>(group.ranks.size);
      const bool is_open =
          is_nested_
              ? is_last_of_block(w)
              : std::all_of(top_of_.begin() + group.ranks.first,
                            top_of_.begin() + group.ranks.first + group.ranks.size,
                            [&](std::int32_t top) { return top == static_cast<std::int32_t>(w); });
      if (!is_open) continue;
      const auto size = static_cast<std::int32_t>(group.ranks.size);
      const PriceId price = problem_.price_of(group.ranks);
      const double slow = problem_.slowness(group.ranks);
      const PriceId alone = problem_.cheapest_price(cells_.size());
      Nanoseconds room =
          target - *std::max_element(height_.begin() + group.ranks.first,
                                     height_.begin() + group.ranks.first + group.ranks.size);
      const Nanoseconds all_room = room;
      Tokens tokens = problem_.capacity() * size - group.tokens;
      std::int32_t seats = problem_.options().max_sequences == 0
                               ? std::numeric_limits<std::int32_t>::max()
                               : problem_.options().max_sequences - group.num_sequences;
      const std::int32_t num_cells = size / cells_.size();
      const Nanoseconds saved = num_cells * problem_.price(alone).fixed * cells_.size();
      Nanoseconds lost = 0;
      taken.clear();
      for (std::size_t i = 0; i < narrow_.size() && room > 0 && seats > 0 && lost < saved; ++i) {
        if (is_used[i] || problem_.items_of(narrow_[i]).size() != 1) continue;
        const ItemId item = problem_.items_of(narrow_[i])[0];
        --work;
        const Nanoseconds time = Problem::slowed(problem_.cost(price, narrow_[i]), slow);
        const Tokens needs = problem_.tokens(size, item);
        const std::int32_t sequences = problem_.num_sequences(item);
        if (time > room || needs > tokens || sequences > seats) continue;
        room -= time;
        tokens -= needs;
        seats -= sequences;
        lost += time * size - problem_.cost(alone, narrow_[i]) * cells_.size();
        taken.push_back(i);
      }
      lost += room * size;
      if (lost >= saved) continue;
      for (const std::size_t i : taken) {
        is_used[i] = true;
        const ItemId item = problem_.items_of(narrow_[i])[0];
        group.items.push_back(item);
        group.tokens += problem_.tokens(size, item);
        group.num_sequences += problem_.num_sequences(item);
      }
      for (std::size_t r = first; r < last; ++r) {
        height_[r] += all_room - room;
        top_ = std::max(top_, height_[r]);
      }
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < narrow_.size(); ++i) {
      if (!is_used[i]) narrow_[kept++] = narrow_[i];
    }
    narrow_.resize(kept);
  }

  Draft draft() const {
    Draft draft;
    std::vector<std::vector<const DraftGroup*>> before(wide_.size());
    for (const auto& [group, fill] : filled_)
      before[static_cast<std::size_t>(group)].push_back(&fill);
    for (std::size_t i = 0; i < wide_.size(); ++i) {
      for (const DraftGroup* fill : before[i]) draft.groups.push_back(*fill);
      draft.groups.push_back({.ranks = wide_[i].ranks, .items = wide_[i].items});
    }
    if (is_nested_) {
      std::stable_sort(
          draft.groups.begin(), draft.groups.end(),
          [](const DraftGroup& a, const DraftGroup& b) { return a.ranks.size > b.ranks.size; });
    }
    for (const Cell& cell : cells_.cells()) {
      for (auto& items : cells_.pack(cell)) {
        draft.groups.push_back({.ranks = cell.ranks, .items = std::move(items)});
      }
    }
    return draft;
  }

  const Problem& problem_;
  Nanoseconds bound_;
  std::int32_t min_slots_;
  Cells cells_;
  std::vector<std::int32_t> smallest_;  // place in sizes() of the smallest that holds a bundle
  std::vector<BundleId> dearest_;
  std::vector<Nanoseconds> height_;
  std::vector<Nanoseconds> prefix_;
  std::vector<Nanoseconds> window_;
  std::vector<std::size_t> falling_;
  std::vector<std::int32_t> top_of_;  // the wide group on top of each rank
  bool is_nested_ = false;
  std::vector<std::vector<Block>> blocks_;  // of each size, if groups nest
  std::vector<Wide> wide_;
  std::vector<Gap> gaps_;
  std::vector<std::pair<std::int32_t, DraftGroup>> filled_;  // before the wide group
  std::vector<BundleId> narrow_;
  Nanoseconds top_ = 0;
};

}  // namespace

Draft search_step(const Problem& problem, Nanoseconds bound, std::int64_t work,
                  std::int32_t min_slots) {
  return StepSearch(problem, bound, min_slots).run(work);
}

}  // namespace isochron
