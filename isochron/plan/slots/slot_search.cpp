// The best of several recipes is the start; after that a few slots at a time are pooled and built
// anew, and what few items there are is annealed.

#include "isochron/plan/slots/slot_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "isochron/core/random.h"
#include "isochron/plan/default_effort.h"
#include "isochron/plan/slots/fewer_slots.h"
#include "isochron/plan/slots/slot_anneal.h"
#include "isochron/plan/slots/slot_builder.h"
#include "isochron/plan/slots/slot_limits.h"
#include "isochron/plan/slots/slot_packer.h"
#include "isochron/plan/slots/slot_recipes.h"
#include "isochron/plan/slots/tight_slots.h"

namespace isochron {

namespace {

constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max();

using Idle = SlotRecipe::Idle;

// Long items set the pace of their slots; with many slots that is all there is to choose.
bool are_many(double num_slots) { return num_slots > 6; }

// The block whose ranks groups share without a rest, where there are many of them to fill, in many
// slots; 0: none.
std::int32_t block_to_fill(const Problem& problem) {
  const std::int32_t block = SlotPlaces(problem).block();
  if (block == 0 || problem.num_ranks() < 4 * block) return 0;
  double tokens = 0;
  for (ItemId item = 0; item < problem.num_items(); ++item) {
    tokens += static_cast<double>(problem.tokens(problem.sizes().front(), item));
  }
  const double room = problem.num_ranks() * static_cast<double>(problem.capacity());
  return are_many(std::ceil(tokens / room)) ? block : 0;
}

class SlotSearch {
 public:
  SlotSearch(const Problem& problem, Nanoseconds bound, Nanoseconds known = never,
             std::int32_t block = 0)
      : problem_(problem),
        bound_(bound),
        known_(known),
        items_(problem, block),
        places_(problem),
        builder_(items_, places_),
        tight_(items_, places_, builder_) {}

  SlotDraft run(std::int64_t work) {
    is_thorough_ = work >= thorough_work(problem_);
    const std::int64_t half = work / 2;
    start(work);
    if (slots_.empty() || (time_ > most() && !is_thorough_)) return draft();
    if (is_thorough_) work = std::max(work, half);
    try_fewer_slots(half / 8);
    const std::int64_t later = work / 4 * 3;
    work -= later;
    improve(work);
    if (later > 0 && places_.fits_beside(problem_.sizes().front())) {
      const std::int64_t num_moves = is_thorough_ ? 2 : 1;  // for a unit of work
      consider(anneal_slots(items_, slots_, good_enough(), num_moves * later));
    }
    try_fewer_slots(half / 8);
    return draft();
  }

 private:
  Nanoseconds good_enough() const { return bound_ + (bound_ >> 13); }

  void consider(std::vector<PackedSlot> slots) {
    if (slots.empty()) return;  // given up
    places_.settle(slots);
    const Nanoseconds time = total_time(slots);
    if (time < time_) {
      time_ = time;
      slots_ = std::move(slots);
    }
  }

  void try_fewer_slots(std::int64_t work) {
    constexpr std::int64_t least = 4000;  // of a few nanoseconds each
    work = std::max(work, least);
    if (is_thorough_) consider(fewer_slots(items_, places_, slots_, work));
  }

  bool has_many_slots() const { return are_many(fewest_slots(items_)); }

  std::vector<SlotRecipe> recipes() const {
    if (has_many_slots()) return loose_recipe(items_);
    // The others belong to what is known.
    if (known_ != never && !is_thorough_) return limited_recipes(items_);
    return all_recipes(items_);
  }

  void start(std::int64_t& work) {
    // Where every item fits a cell an even spread is often all it takes.
    const bool is_narrow = std::all_of(items_.dearest().begin(), items_.dearest().end(),
                                       [&](ItemId item) { return items_.smallest(item) == 0; });
    if (is_narrow) {
      consider(builder_.build(items_.dearest(),
                              {.limit = never, .idle = Idle::spread, .is_last = true}, work));
      if (time_ <= good_enough()) return;
    }
    // Few sequences on many ranks are often best in groups of one size.
    constexpr Nanoseconds part_lost = 8;
    const bool is_sparse = problem_.num_items() <= 2 * problem_.num_ranks() && !is_thorough_;
    if (is_sparse) try_static_sizes(bound_ + bound_ / part_lost, work);
    if (is_sparse && time_ - bound_ < bound_ / part_lost) return;
    if (has_many_slots()) start_tight(work);
    // With little work recipes get further beside what is known.
    const bool has_little_work = known_ != never && work < std::int64_t{16} * problem_.num_items();
    // Groups of any size have an aligned plan beside theirs, which began with these.
    if (!has_many_slots() || (problem_.is_aligned() && work > 0)) start_by_recipes(work);
    if (!has_many_slots() && !has_little_work) start_tight(work);
    rebuild_beside_widest(work);
    if (time_ <= good_enough()) return;
    try_static_sizes(time_, work);
  }

  // All in groups of one larger size, where that may be done by then; aligned groups that are known
  // have tried them.
  void try_static_sizes(Nanoseconds end, std::int64_t& work) {
    if (!problem_.is_aligned() && known_ != never) return;
    const auto sizes = problem_.sizes();
    for (std::size_t base = 1; base < sizes.size(); ++base) {
      if (problem_.num_ranks() % sizes[base] != 0) continue;
      if (least_time(base) >= std::min(end, time_)) continue;
      SlotRecipe recipe{.base = base, .limit = never, .idle = Idle::spread, .is_quick = true};
      std::vector<PackedSlot> rough = builder_.build(items_.dearest(), recipe, work);
      places_.settle(rough);
      recipe.is_quick = false;
      if (total_time(rough) <= most()) consider(builder_.build(items_.dearest(), recipe, work));
    }
  }

  // What all items in groups of one size take at least.
  Nanoseconds least_time(std::size_t base) const {
    double area = 0;
    Nanoseconds longest = 0;
    for (const ItemId item : items_.dearest()) {
      if (!problem_.item_fits(problem_.sizes()[base], item)) return never;
      const Nanoseconds cost = items_.cost(base, item);
      area += static_cast<double>(cost) * problem_.sizes()[base];
      longest = std::max(longest, cost);
    }
    const auto even = static_cast<Nanoseconds>(area / problem_.num_ranks());
    return std::max(even, longest) + items_.fixed(base);
  }

  void start_by_recipes(std::int64_t& work) {
    std::vector<std::pair<Nanoseconds, SlotRecipe>> tried;
    const auto attempt = [&](SlotRecipe recipe) {
      recipe.is_quick = true;
      recipe.most = most();
      std::vector<PackedSlot> slots = builder_.build(items_.dearest(), recipe, work);
      if (slots.empty()) return;
      places_.settle(slots);
      tried.emplace_back(total_time(slots), recipe);
      consider(std::move(slots));
    };
    // What is near by then is seldom better in groups of several sizes.
    const std::size_t least_tried = time_ - bound_ < bound_ / 5 ? 2 : 4;
    for (const SlotRecipe& recipe : recipes()) {
      if (tried.size() >= least_tried && work <= 0) break;
      attempt(recipe);
      if (time_ <= good_enough()) return;
    }
    std::stable_sort(tried.begin(), tried.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    tried.resize(std::min<std::size_t>(3, tried.size()));
    const int most_done = known_ == never && is_thorough_ ? 2 : 1;  // before work has a say
    int num_done = 0;
    for (auto& [time, recipe] : tried) {
      if (time > most() || (num_done >= most_done && work <= 0)) break;
      ++num_done;
      recipe.is_quick = false;
      consider(builder_.build(items_.dearest(), recipe, work));
      if (time_ <= good_enough()) return;
    }
  }

  // An item on all ranks has its slot for itself: what is left is a question of its own.
  void rebuild_beside_widest(std::int64_t& work) {
    const auto rest =
        std::stable_partition(slots_.begin(), slots_.end(), [&](const PackedSlot& slot) {
          return slot.groups.size() == 1 && slot.groups.front().size == problem_.num_ranks();
        });
    if (rest == slots_.begin() || rest == slots_.end()) return;
    const std::vector<ItemId> items = items_of({rest, slots_.end()});
    double area = 0;
    for (const ItemId item : items) area += items_.least_area(item);
    std::vector<SlotRecipe> recipes;
    for (const Nanoseconds limit : promising_limits(items_, items, 6)) {
      recipes.push_back({.limit = limit});
    }
    for (const double m : {1.0, 2.0, 3.0}) {
      const auto limit = static_cast<Nanoseconds>(1.005 * area / problem_.num_ranks() / m);
      recipes.push_back({.limit = limit + items_.fixed(0), .idle = Idle::spread});
    }
    std::vector<PackedSlot> best(rest, slots_.end());
    for (SlotRecipe& recipe : recipes) {
      recipe.most = total_time(best);
      std::vector<PackedSlot> fresh = builder_.build(items, recipe, work);
      places_.settle(fresh);
      if (!fresh.empty() && total_time(fresh) < total_time(best)) best = std::move(fresh);
    }
    slots_.erase(rest, slots_.end());
    for (PackedSlot& slot : best) slots_.push_back(std::move(slot));
    time_ = total_time(slots_);
  }

  // Slots built one by one: the best of several ways, with its shortest slots in larger cells.
  void start_tight(std::int64_t& work) {
    struct Tried {
      Nanoseconds time = 0;
      TightStart start = {};
    };
    std::vector<Tried> tried;
    struct Way {
      std::int32_t num_lengths = 2;
      std::int32_t grain = 9;
      bool looks_ahead = true;
    };
    std::vector<Way> ways{{2, 9, true}, {1, 9, false}, {2, 6, true}, {2, 12, true}};
    if (!problem_.is_aligned()) {  // sizes of any number are closer
      ways = {{4, 9, true}, {6, 9, false}, {6, 6, false}};
    }
    if (problem_.sizes().size() == 1) {
      ways = {{1, 4, false}, {1, 9, false}, {1, 6, false}, {1, 3, false}, {1, 5, false}};
    }
    if (!has_many_slots() && !is_thorough_) ways.resize(2);  // the recipes do more there
    TightRecipe recipe{.is_quick = true};
    for (const Way& way : ways) {
      if (!tried.empty() && work <= 0) break;
      recipe.num_lengths = way.num_lengths;
      recipe.grain = way.grain;
      recipe.looks_ahead = way.looks_ahead;
      recipe.most = most();
      auto start = tight_.start(items_.dearest(), recipe, work);
      if (!start) continue;
      std::vector<PackedSlot> slots = tight_.finished(*start, recipe, work);
      places_.settle(slots);
      tried.push_back({.time = total_time(slots), .start = *std::move(start)});
      consider(std::move(slots));
    }
    std::stable_sort(tried.begin(), tried.end(),
                     [](const Tried& a, const Tried& b) { return a.time < b.time; });
    tried.resize(std::min<std::size_t>(2, tried.size()));
    recipe.is_quick = false;
    for (const Tried& each : tried) {
      if (each.time > most() || (&each != &tried.front() && work <= 0)) break;
      std::vector<PackedSlot> slots = tight_.finished(each.start, recipe, work);
      places_.settle(slots);
      regroup_shortest(slots, work);
      consider(std::move(slots));
      if (time_ <= good_enough()) return;
    }
  }

  // What is rough so far may become the best up to here.
  Nanoseconds most() const {
    const Nanoseconds least = std::min(time_, known_);
    return least == never ? never : least + (least >> 7);
  }

  std::vector<ItemId> items_of(std::span<const PackedSlot> slots) const {
    std::vector<ItemId> items;  // dearest first
    for (const PackedSlot& slot : slots) {
      for (const PackedGroup& group : slot.groups) {
        items.insert(items.end(), group.items.begin(), group.items.end());
      }
    }
    std::sort(items.begin(), items.end(),
              [&](ItemId a, ItemId b) { return items_.position(a) < items_.position(b); });
    return items;
  }

  bool holds(std::size_t base, const std::vector<ItemId>& items) const {
    return problem_.num_ranks() % problem_.sizes()[base] == 0 &&
           std::all_of(items.begin(), items.end(), [&](ItemId item) {
             return items_.smallest_from(base, item) < items_.num_places();
           });
  }

  // The last slots got what was left, of much the same size: larger cells hold more of it, and
  // balance it better.
  void regroup_shortest(std::vector<PackedSlot>& slots, std::int64_t& work) const {
    constexpr std::size_t most_slots = 5;
    constexpr std::size_t most_sizes = 4;
    for (std::size_t count = 2; count <= std::min(most_slots, slots.size()); ++count) {
      std::stable_sort(slots.begin(), slots.end(),
                       [](const PackedSlot& a, const PackedSlot& b) { return a.time > b.time; });
      const auto first = slots.end() - static_cast<std::ptrdiff_t>(count);
      const std::vector<ItemId> items = items_of({first, slots.end()});
      std::vector<PackedSlot> best(first, slots.end());
      for (std::size_t base = 0; base < std::min(most_sizes, items_.num_places()); ++base) {
        if (!holds(base, items)) continue;
        std::vector<PackedSlot> fresh = tight_.build(
            items, {.base = base, .num_lengths = 1, .is_quick = true, .most = total_time(best)},
            work);
        if (fresh.empty()) continue;
        places_.settle(fresh);
        if (total_time(fresh) < total_time(best)) best = std::move(fresh);
      }
      slots.erase(first, slots.end());
      for (PackedSlot& slot : best) slots.push_back(std::move(slot));
    }
  }

  // Time of all ranks that does no work, as if every item had the smallest group that holds it.
  double waste_of(const PackedSlot& slot) const {
    double useful = 0;
    for (const PackedGroup& group : slot.groups) {
      for (const ItemId item : group.items) useful += items_.least_area(item);
    }
    return static_cast<double>(slot.time) * problem_.num_ranks() - useful;
  }

  // Pools a few slots, the wasteful ones more often, builds them anew by a random recipe, keeps
  // what is not longer.
  void improve(std::int64_t& work) {
    Random random(1);
    std::vector<double> wastes;
    for (const PackedSlot& slot : slots_) wastes.push_back(waste_of(slot));
    while (work > 0 && time_ > good_enough()) {
      const std::size_t pool = std::min<std::size_t>(slots_.size(), 1 + random.below(4));
      std::vector<std::size_t> chosen;
      while (chosen.size() < pool) {
        const auto index = static_cast<std::size_t>(random.below(slots_.size()));
        const auto other = static_cast<std::size_t>(random.below(slots_.size()));
        const std::size_t pick = wastes[index] >= wastes[other] ? index : other;
        const auto is_chosen = [&](std::size_t i) {
          return std::find(chosen.begin(), chosen.end(), i) != chosen.end();
        };
        if (!is_chosen(pick)) {
          chosen.push_back(pick);
        } else if (!is_chosen(index)) {
          chosen.push_back(index);
        }
      }
      std::vector<ItemId> items;
      Nanoseconds before = 0;
      Nanoseconds longest = 0;
      for (const std::size_t index : chosen) {
        before += slots_[index].time;
        longest = std::max(longest, slots_[index].time);
        for (const PackedGroup& group : slots_[index].groups) {
          items.insert(items.end(), group.items.begin(), group.items.end());
        }
      }
      std::sort(items.begin(), items.end(),
                [&](ItemId a, ItemId b) { return items_.position(a) < items_.position(b); });
      const double mean = static_cast<double>(before) / static_cast<double>(pool);
      const bool is_tight = random.below(2) == 0;
      std::vector<PackedSlot> fresh;
      if (is_tight) {
        const TightRecipe recipe{.num_lengths = static_cast<std::int32_t>(1 + random.below(3)),
                                 .grain = static_cast<std::int32_t>(6 + random.below(8)),
                                 .most = before};
        fresh = tight_.build(items, recipe, work);
      } else {
        const double factor = 0.75 + 0.3 * random.unit();
        const auto limit = static_cast<Nanoseconds>(
            factor * (random.below(2) == 0 ? mean : static_cast<double>(longest)));
        const SlotRecipe recipe{.limit = std::max<Nanoseconds>(1, limit),
                                .idle = random.below(2) == 0 ? Idle::filled : Idle::spread,
                                .most = before};
        fresh = builder_.build(items, recipe, work);
      }
      if (fresh.empty()) continue;
      places_.settle(fresh);
      const Nanoseconds after = total_time(fresh);
      if (after > before) continue;
      std::sort(chosen.begin(), chosen.end(), std::greater<>());
      for (const std::size_t index : chosen) {
        slots_.erase(slots_.begin() + static_cast<std::ptrdiff_t>(index));
        wastes.erase(wastes.begin() + static_cast<std::ptrdiff_t>(index));
      }
      for (PackedSlot& slot : fresh) {
        wastes.push_back(waste_of(slot));
        slots_.push_back(std::move(slot));
      }
      time_ += after - before;
    }
  }

  SlotDraft draft() const { return draft_of(slots_, places_); }

  const Problem& problem_;
  Nanoseconds bound_;
  Nanoseconds known_;  // a step that is known already
  bool is_thorough_ = false;
  SlotItems items_;
  SlotPlaces places_;
  SlotBuilder builder_;
  TightSlots tight_;
  std::vector<PackedSlot> slots_;
  Nanoseconds time_ = never;
};

}  // namespace

std::int64_t thorough_work(const Problem& problem) {
  constexpr std::int64_t for_an_item = 120;
  if (!has_few_items(problem)) return std::numeric_limits<std::int64_t>::max();
  return for_an_item * problem.num_items();
}

SlotDraft search_slots(const Problem& problem, Nanoseconds bound, std::int64_t work,
                       Nanoseconds known) {
  return SlotSearch(problem, bound, known, block_to_fill(problem)).run(work);
}

}  // namespace isochron
