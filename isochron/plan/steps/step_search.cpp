// Wide groups on a skyline, the rest on single cells.
//
// For a target T every bundle takes the smallest group that runs it within T. What needs several
// cells is placed widest first, then dearest first. Groups that nest leave no holes; others do, and
// the longest cell-sized bundles that fit fill them. The rest goes longest first on top, and cells
// exchange bundles until the last one is early enough. The search repeats this for targets from the
// bound up.

#include "isochron/plan/steps/step_search.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

#include "isochron/core/random.h"
#include "isochron/plan/least_areas.h"
#include "isochron/plan/steps/cells.h"
#include "isochron/plan/steps/gap_fill.h"
#include "isochron/plan/steps/nested_blocks.h"
#include "isochron/plan/steps/skyline.h"
#include "isochron/plan/steps/wide_groups.h"

namespace isochron {

namespace {

// Beyond that bundles are so short that their number matters little.
constexpr std::int64_t max_spread_rounds = 4;

constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max();

class StepSearch {
 public:
  StepSearch(const Problem& problem, Nanoseconds bound, std::int32_t min_slots)
      : problem_(problem),
        bound_(bound),
        min_slots_(min_slots),
        is_nested_(has_nested_groups(problem)),
        blocks_(problem, wide_),
        skyline_(problem, wide_),
        cells_(problem, problem.sizes().front()) {
    const PriceId price = problem.cheapest_price(problem.sizes().front());
    std::vector<std::pair<Nanoseconds, BundleId>> by_cost;
    for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
      const std::size_t place = problem.smallest_place(bundle);
      const PriceId smallest_price = problem.cheapest_price(problem.sizes()[place]);
      smallest_.push_back(place);
      smallest_time_.push_back(problem.cost(smallest_price, bundle) +
                               problem.price(smallest_price).fixed);
      by_cost.emplace_back(-problem.cost(price, bundle), bundle);
    }
    std::sort(by_cost.begin(), by_cost.end());
    for (const auto& [cost, bundle] : by_cost) dearest_.push_back(bundle);
  }

  // `best`: the shortest step that is known.
  Draft run(std::int64_t work, Draft best) {
    Random random(0);
    const std::int64_t first_work = work / 2;
    const std::int64_t later_work = work / 6;
    // Of rounds in a row that bring nothing to refine: the search has seen it all.
    const std::int64_t max_idle_work = work / 16;
    std::int64_t idle_work = 0;
    std::optional<State> state;  // of the best
    for (std::int32_t round = 0; round == 0 || (work > 0 && idle_work < max_idle_work); ++round) {
      const std::int64_t limit = round == 0 ? first_work : later_work;
      const std::int64_t build_work = build(next_trial(round, best.time, random));
      work -= build_work;
      if (!is_new() || !stack(best.time)) {
        idle_work += build_work;
        continue;
      }
      idle_work = 0;
      std::int64_t left = limit;
      cells_.refine(std::max(wide_.top, good_enough()), left);
      work -= limit - left;
      const Nanoseconds time = std::max(wide_.top, cells_.max_load());
      if (time < best.time) {
        best.time = time;
        state = State{.wide = wide_, .filled = filled_, .cells = cells_.saved()};
      }
      if (best.time <= bound_ + (bound_ >> 13)) break;
    }
    if (state) {
      wide_ = std::move(state->wide);
      filled_ = std::move(state->filled);
      cells_.restore(state->cells);
      const Nanoseconds target = std::max(wide_.top, good_enough());
      cells_.refine(target, work);
      cells_.shake(target, random, work);
      best = draft();
      best.time = std::max(wide_.top, cells_.max_load());
    }
    const LeastAreas areas(problem_);
    for (std::size_t i = 1; i < problem_.sizes().size(); ++i) try_static(i, areas, best);
    return best;
  }

 private:
  // A step as it was built.
  struct State {
    WideGroups wide;
    std::vector<WideGroup> filled;
    std::vector<Cell> cells;
  };

  // All in groups of one larger size, where that may be shorter: few sequences on many ranks.
  void try_static(std::size_t place, const LeastAreas& areas, Draft& best) const {
    const std::int32_t size = problem_.sizes()[place];
    if (problem_.num_ranks() % size != 0) return;
    const bool holds_all = std::all_of(dearest_.begin(), dearest_.end(), [&](BundleId bundle) {
      return problem_.fits(size, bundle);
    });
    if (!holds_all || areas.exceed(size, best.time)) return;
    Cells cells(problem_, size);
    const std::vector<Nanoseconds> height(static_cast<std::size_t>(problem_.num_ranks()), 0);
    const std::vector<std::int32_t> slots(min_slots_ == 0 ? 0 : height.size(), min_slots_);
    cells.reset(height, slots);
    cells.add(dearest_);
    if (cells.mean_load() >= best.time) return;
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
    std::size_t i = smallest_[static_cast<std::size_t>(bundle)];
    if (smallest_time_[static_cast<std::size_t>(bundle)] <= target) return i;
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

  struct Trial {
    Nanoseconds target = 0;
    bool absorbs = false;
    std::int64_t hole_weight = 1;
    Reach reach = Reach::near;
  };

  // Targets from the bound up, then random ones that would be progress.
  Trial next_trial(std::int32_t round, Nanoseconds incumbent, Random& random) const {
    constexpr double excesses[] = {1e-5, 0.002, 0.01, 0.03, 0.08, 0.2};
    const auto bound = static_cast<double>(std::max<Nanoseconds>(1, bound_));
    const double most = static_cast<double>(incumbent) / bound - 1;
    // Of what a first step far above the bound may still gain.
    constexpr double far = 0.25;
    constexpr double parts[] = {0.5, 0.25, 0.75, 0.1, 0.35};
    double excess = 0;
    // Groups that nest do not end later for a later target.
    if (round > 0 && round < 6 && most > far) {
      excess = most * parts[round - 1];
    } else if (round < 6 && (is_nested_ || excesses[round] < most)) {
      excess = excesses[round];
    } else {
      excess = most * (is_nested_ ? 0.5 + 0.5 * random.unit() : random.unit());
    }
    return {.target = static_cast<Nanoseconds>(static_cast<double>(bound_) * (1 + excess)),
            .absorbs = round % 2 == 1,
            .hole_weight = round / 2 % 2 == 0 ? 1 : 3,
            .reach = round % 2 == 1 ? Reach::far : Reach::near};
  }

  // Places what is wide, and what fills its holes. Returns the work.
  std::int64_t build(const Trial& trial) {
    const Nanoseconds target = trial.target;
    std::int64_t work = 0;
    wide_.reset(problem_.num_ranks());
    if (is_nested_) {
      blocks_.reset();
    } else {
      const PriceId price = problem_.cheapest_price(cells_.size());
      const Nanoseconds shortest =
          problem_.price(price).fixed + problem_.cost(price, dearest_.back());
      skyline_.reset(shortest, trial.hole_weight);
    }
    narrow_.clear();
    filled_.clear();
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
    place_all(choices, target, trial.reach, work);
    const Nanoseconds floor = *std::min_element(wide_.height.begin(), wide_.height.end());
    choices.clear();
    for (const BundleId bundle : others) {
      const std::size_t place = size_within(bundle, target - floor);
      if (place == 0) {
        narrow_.push_back(bundle);
      } else {
        choices.push_back(choice_of(bundle, place));
      }
    }
    place_all(choices, target, trial.reach, work);
    spread(trial, floor, work);
    if (!is_nested_ && cells_.size() == 1) {
      filled_ = fill_gaps(problem_, skyline_.gaps(), narrow_, work);
    }
    if (trial.absorbs) absorb(target, work);
    return static_cast<std::int64_t>(dearest_.size()) - work;
  }

  // More bundles of a length than cells can run one after another within the target: the dearest
  // of them are shared by as many ranks as leave these the time for what they run alone.
  void spread(const Trial& trial, Nanoseconds floor, std::int64_t& work) {
    const PriceId alone = problem_.cheapest_price(cells_.size());
    const Nanoseconds room = trial.target - floor - problem_.price(alone).fixed;
    const auto num_cells = static_cast<std::int64_t>(cells_.cells().size());
    for (std::int64_t rounds = 1; rounds <= max_spread_rounds; ++rounds) {
      // Bundles of which no cell runs more than `rounds`.
      const auto end = std::partition_point(narrow_.begin(), narrow_.end(), [&](BundleId bundle) {
        return problem_.cost(alone, bundle) > room / (rounds + 1);
      });
      const std::int64_t excess = end - narrow_.begin() - rounds * num_cells;
      if (excess <= 0) continue;
      const Nanoseconds dearest = problem_.cost(alone, narrow_[static_cast<std::size_t>(excess)]);
      if (dearest > room / rounds) return;
      const Nanoseconds left = room - rounds * dearest;
      std::vector<Choice> choices;
      for (std::int64_t i = 0; i < excess; ++i) {
        const BundleId bundle = narrow_[static_cast<std::size_t>(i)];
        const std::size_t place = size_within(bundle, left);
        if (place > 0) choices.push_back(choice_of(bundle, place));
      }
      if (static_cast<std::int64_t>(choices.size()) < excess) return;
      narrow_.erase(narrow_.begin(), narrow_.begin() + excess);
      place_all(choices, floor + left, trial.reach, work);
      return;
    }
  }

  // Whether no round before had the same to stack.
  bool is_new() {
    std::uint64_t key = 0;
    const auto mix = [&](std::int64_t value) {
      key = (key ^ static_cast<std::uint64_t>(value)) * 0x9E3779B97F4A7C15ULL;
      key ^= key >> 29;
    };
    for (const Nanoseconds height : wide_.height) mix(height);
    for (const BundleId bundle : narrow_) mix(bundle);
    if (std::find(seen_.begin(), seen_.end(), key) != seen_.end()) return false;
    seen_.push_back(key);
    return true;
  }

  // Puts the rest on cells. Whether that could become shorter than the incumbent by more than what
  // is good enough.
  bool stack(Nanoseconds incumbent) {
    cells_.reset(wide_.height, slots_left());
    cells_.add(narrow_);
    const Nanoseconds gain = bound_ >> 15;
    return std::max(wide_.top, cells_.mean_load()) + gain < incumbent;
  }

  struct Choice {
    std::int32_t size;
    Nanoseconds cost;
    BundleId bundle;
  };

  Choice choice_of(BundleId bundle, std::size_t place) const {
    const std::int32_t size = problem_.sizes()[place];
    return {size, problem_.cost(problem_.cheapest_price(size), bundle), bundle};
  }

  void place_all(std::vector<Choice>& choices, Nanoseconds target, Reach reach,
                 std::int64_t& work) {
    std::sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
      return std::tuple(-a.size, -a.cost, a.bundle) < std::tuple(-b.size, -b.cost, b.bundle);
    });
    for (const Choice& choice : choices) {
      if (is_nested_) {
        blocks_.place(choice.bundle, choice.size, target, reach, work);
      } else {
        skyline_.place(choice.bundle, choice.size, target, reach, work);
      }
    }
  }

  // Micro-batches that each rank still has to pay for.
  std::vector<std::int32_t> slots_left() const {
    std::vector<std::int32_t> left;
    if (min_slots_ == 0) return left;
    left.assign(wide_.height.size(), min_slots_);
    const auto take = [&](RankRange ranks) {
      const auto first = left.begin() + ranks.first;
      std::for_each(first, first + ranks.size, [](std::int32_t& n) { n = std::max(0, n - 1); });
    };
    for (const WideGroup& group : wide_.groups) take(group.ranks);
    for (const WideGroup& group : filled_) take(group.ranks);
    return left;
  }

  // The first narrow bundle, by place, that may run within `time` on a group of `size`: none shares
  // more than all of its work.
  std::size_t first_within(Nanoseconds time, std::int32_t size) const {
    if (cells_.size() > 1 || problem_.has_speeds()) return 0;
    const PriceId alone = problem_.cheapest_price(1);
    const auto found = std::partition_point(narrow_.begin(), narrow_.end(), [&](BundleId bundle) {
      return problem_.cost(alone, bundle) > (time + 1) * size;
    });
    return static_cast<std::size_t>(found - narrow_.begin());
  }

  // Bundles that would run alone join the wide groups on top, where their traffic costs less than
  // another micro-batch on each of the ranks.
  void absorb(Nanoseconds target, std::int64_t& work) {
    std::vector<bool> is_used(narrow_.size(), false);
    std::vector<std::size_t> taken;
    const std::vector<std::int32_t> unpaid = slots_left();
    const std::vector<std::int32_t> last =
        is_nested_ ? blocks_.last_groups() : skyline_.last_groups();
    for (std::size_t w = 0; w < wide_.groups.size(); ++w) {
      WideGroup& group = wide_.groups[w];
      const auto tops = last.begin() + group.ranks.first;
      const bool is_last = std::all_of(tops, tops + group.ranks.size, [&](std::int32_t top) {
        return top == static_cast<std::int32_t>(w);
      });
      // Ranks that have to pay for another one anyway save nothing.
      const bool is_saved =
          unpaid.empty() || std::none_of(unpaid.begin() + group.ranks.first,
                                         unpaid.begin() + group.ranks.first + group.ranks.size,
                                         [](std::int32_t slots) { return slots > 0; });
      if (!is_last || !is_saved) continue;
      const auto size = static_cast<std::int32_t>(group.ranks.size);
      const PriceId price = problem_.price_of(group.ranks);
      const double slow = problem_.slowness(group.ranks);
      const PriceId alone = problem_.cheapest_price(cells_.size());
      const auto heights = wide_.height.begin() + group.ranks.first;
      const Nanoseconds top = *std::max_element(heights, heights + group.ranks.size);
      Nanoseconds room = target - top;
      const Nanoseconds all_room = room;
      Tokens tokens = problem_.capacity() * size - group.tokens;
      std::int32_t seats = problem_.options().max_sequences == 0
                               ? std::numeric_limits<std::int32_t>::max()
                               : problem_.options().max_sequences - group.num_sequences;
      const std::int32_t num_cells = size / cells_.size();
      const Nanoseconds saved = num_cells * problem_.price(alone).fixed * cells_.size();
      Nanoseconds lost = 0;
      taken.clear();
      for (std::size_t i = first_within(room, size); i < narrow_.size(); ++i) {
        if (room <= 0 || seats <= 0 || tokens <= 0 || lost >= saved) break;
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
        add_item(problem_, problem_.items_of(narrow_[i])[0], group);
      }
      wide_.raise(group.ranks, top + all_room - room);
      group.end += all_room - room;
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < narrow_.size(); ++i) {
      if (!is_used[i]) narrow_[kept++] = narrow_[i];
    }
    narrow_.resize(kept);
  }

  Draft draft() const {
    Draft draft;
    std::vector<const WideGroup*> order;
    for (const WideGroup& group : wide_.groups) order.push_back(&group);
    for (const WideGroup& group : filled_) order.push_back(&group);
    std::stable_sort(order.begin(), order.end(), [&](const WideGroup* a, const WideGroup* b) {
      if (is_nested_) return a->ranks.size > b->ranks.size;
      return std::pair(a->start, a->end) < std::pair(b->start, b->end);
    });
    for (const WideGroup* group : order) {
      draft.groups.push_back({.ranks = group->ranks, .items = group->items});
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
  bool is_nested_;
  WideGroups wide_;
  NestedBlocks blocks_;  // places wide groups that nest
  Skyline skyline_;      // and others
  Cells cells_;
  std::vector<std::size_t> smallest_;       // place in sizes() of the smallest that holds a bundle
  std::vector<Nanoseconds> smallest_time_;  // that a bundle takes there
  std::vector<BundleId> dearest_;
  std::vector<WideGroup> filled_;  // what runs in the holes of the skyline
  std::vector<BundleId> narrow_;
  std::vector<std::uint64_t> seen_;  // what was stacked, hashed
};

}  // namespace

Draft search_step(const Problem& problem, Nanoseconds bound, std::int64_t work,
                  std::int32_t min_slots) {
  return StepSearch(problem, bound, min_slots).run(work, {.groups = {}, .time = never});
}

Draft improve_step(const Problem& problem, Nanoseconds bound, std::int64_t work, Draft known) {
  return StepSearch(problem, bound, 0).run(work, std::move(known));
}

}  // namespace isochron
