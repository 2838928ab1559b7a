// The best of several recipes is the start; after that a few slots at a time are pooled and built
// anew.

#include "isochron/plan/slot_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "isochron/core/random.h"
#include "isochron/plan/slot_builder.h"

namespace isochron {

namespace {

constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max();

using Idle = SlotRecipe::Idle;
using Wide = SlotRecipe::Wide;

class SlotSearch {
 public:
  SlotSearch(const Problem& problem, Nanoseconds bound)
      : problem_(problem),
        bound_(bound),
        items_(problem),
        places_(problem),
        builder_(items_, places_) {}

  SlotDraft within(Nanoseconds limit, std::int32_t base, PackCare care) {
    const auto sizes = problem_.sizes();
    const auto place =
        static_cast<std::size_t>(std::find(sizes.begin(), sizes.end(), base) - sizes.begin());
    std::int64_t work = 0;
    consider(builder_.build(
        items_.dearest(),
        {.base = place, .limit = limit, .idle = Idle::spread, .is_quick = care == PackCare::rough},
        work));
    return draft();
  }

  SlotDraft run(std::int64_t work) {
    start(work);
    improve(work);
    return draft();
  }

 private:
  Nanoseconds good_enough() const { return bound_ + (bound_ >> 13); }

  void consider(std::vector<PackedSlot> slots) {
    places_.settle(slots);
    const Nanoseconds time = total_time(slots);
    if (time < time_) {
      time_ = time;
      slots_ = std::move(slots);
    }
  }

  // Limits worth trying: what the longest items take on groups of every size, what the work takes
  // in m even slots, and multiples of what a slot full of tokens takes.
  std::vector<SlotRecipe> recipes() const {
    const auto sizes = problem_.sizes();
    const double full =
        items_.total_area() * static_cast<double>(problem_.capacity()) / items_.total_tokens();
    const double whole = items_.total_area() / problem_.num_ranks();
    std::vector<SlotRecipe> result;
    Nanoseconds longest = 0;
    for (const ItemId item : items_.dearest()) {
      const auto place = items_.smallest(item);
      longest = std::max(longest, items_.cost(place, item) + items_.fixed(place));
    }
    const auto add = [&](double limit, Idle idle) {
      const Nanoseconds clamped =
          std::clamp<Nanoseconds>(static_cast<Nanoseconds>(limit) + items_.fixed(0), 1, longest);
      const bool is_known =
          std::any_of(result.begin(), result.end(), [&](const SlotRecipe& recipe) {
            return recipe.limit == clamped && recipe.idle == idle && recipe.wide == Wide::at_once;
          });
      if (!is_known) result.push_back({.limit = clamped, .idle = idle});
    };
    const double fewest = std::max(1.0, std::ceil(whole / full));
    // Long items set the pace of their slots; with many slots that is all there is to choose.
    const bool has_many_slots = fewest > 6;
    for (const double factor : {8.0, 2.5, 1.8}) {
      const auto limit = static_cast<Nanoseconds>(full * factor) + items_.fixed(0);
      if (factor < 8.0 && (limit >= longest || has_many_slots)) continue;
      result.push_back({.limit = std::min(limit, longest), .wide = Wide::in_turn});
    }
    if (has_many_slots) {
      add(full * 8.0, Idle::filled);
      return result;
    }
    for (const double factor : {8.0, 2.2}) add(full * factor, Idle::filled);
    for (double m = fewest; m < fewest + 3; ++m) add(whole / m * 1.005, Idle::spread);
    for (std::size_t i = 0; i < std::min<std::size_t>(2, items_.dearest().size()); ++i) {
      const ItemId item = items_.dearest()[i];
      for (auto place = items_.smallest(item); place < sizes.size(); ++place) {
        const auto time =
            static_cast<double>(items_.cost(place, item) + items_.fixed(place) - items_.fixed(0));
        if (result.size() < 24 && time < 8 * full && time > whole / (fewest + 3)) {
          add(time, Idle::filled);
          add(time, Idle::spread);
        }
      }
    }
    // Larger cells pack their tokens better, which counts where micro-batches cost much.
    for (std::size_t base = 1; base < std::min<std::size_t>(4, sizes.size()); ++base) {
      if (problem_.num_ranks() % sizes[base] != 0 || !items_.holds_all(base)) continue;
      for (const Idle idle : {Idle::filled, Idle::spread}) {
        result.push_back({.base = base, .limit = longest, .idle = idle});
      }
      result.push_back({.base = base, .limit = longest, .wide = Wide::in_turn});
      for (double m = fewest; m < fewest + 2; ++m) {
        const auto limit = static_cast<Nanoseconds>(whole / m * 1.02) + items_.fixed(base);
        result.push_back({.base = base, .limit = limit, .idle = Idle::spread});
      }
    }
    for (const double factor : {2.0, 1.8, 1.5, 1.2}) add(full * factor, Idle::filled);
    for (double m = fewest; m < fewest + 5; ++m) add(whole / m * 1.05, Idle::spread);
    return result;
  }

  void start(std::int64_t& work) {
    const auto sizes = problem_.sizes();
    // Where every item fits a cell an even spread is often all it takes.
    const bool is_narrow = std::all_of(items_.dearest().begin(), items_.dearest().end(),
                                       [&](ItemId item) { return items_.smallest(item) == 0; });
    if (is_narrow) {
      consider(builder_.build(items_.dearest(),
                              {.limit = never, .idle = Idle::spread, .is_last = true}, work));
      if (time_ <= good_enough()) return;
    }
    std::vector<std::pair<Nanoseconds, SlotRecipe>> tried;
    for (SlotRecipe recipe : recipes()) {
      if (tried.size() > 3 && work <= 0) break;
      recipe.is_quick = true;
      std::vector<PackedSlot> slots = builder_.build(items_.dearest(), recipe, work);
      places_.settle(slots);
      tried.emplace_back(total_time(slots), recipe);
      consider(std::move(slots));
      if (time_ <= good_enough()) return;
    }
    std::stable_sort(tried.begin(), tried.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < std::min<std::size_t>(3, tried.size()); ++i) {
      tried[i].second.is_quick = false;
      consider(builder_.build(items_.dearest(), tried[i].second, work));
      if (time_ <= good_enough()) return;
    }
    // All in groups of one larger size, where that may be shorter: few sequences on many ranks.
    for (std::size_t base = 1; base < sizes.size(); ++base) {
      if (problem_.num_ranks() % sizes[base] != 0) continue;
      double area = 0;
      for (const ItemId item : items_.dearest()) {
        area += static_cast<double>(items_.cost(base, item)) * sizes[base];
        if (!problem_.item_fits(sizes[base], item)) area = 1e300;
      }
      if (area / problem_.num_ranks() >= static_cast<double>(time_)) continue;
      consider(builder_.build(items_.dearest(),
                              {.base = base, .limit = never, .idle = Idle::spread}, work));
    }
  }

  // Pools a few slots, builds them anew for a random limit, keeps what is not longer.
  void improve(std::int64_t& work) {
    Random random(1);
    while (work > 0 && time_ > good_enough()) {
      const std::size_t pool = std::min<std::size_t>(slots_.size(), 1 + random.below(3));
      std::vector<std::size_t> chosen;
      while (chosen.size() < pool) {
        const auto index = static_cast<std::size_t>(random.below(slots_.size()));
        if (std::find(chosen.begin(), chosen.end(), index) == chosen.end()) chosen.push_back(index);
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
      const double factor = 0.75 + 0.3 * random.unit();
      const auto limit = static_cast<Nanoseconds>(
          factor * (random.below(2) == 0 ? mean : static_cast<double>(longest)));
      const SlotRecipe recipe{.limit = std::max<Nanoseconds>(1, limit),
                              .idle = random.below(2) == 0 ? Idle::filled : Idle::spread,
                              .wide = random.below(3) == 0 ? Wide::in_turn : Wide::at_once};
      std::vector<PackedSlot> fresh = builder_.build(items, recipe, work);
      places_.settle(fresh);
      const Nanoseconds after = total_time(fresh);
      if (after > before) continue;
      std::sort(chosen.begin(), chosen.end(), std::greater<>());
      for (const std::size_t index : chosen) {
        slots_.erase(slots_.begin() + static_cast<std::ptrdiff_t>(index));
      }
      for (PackedSlot& slot : fresh) slots_.push_back(std::move(slot));
      time_ += after - before;
    }
  }

  SlotDraft draft() const {
    SlotDraft draft;
    for (const PackedSlot& slot : slots_) {
      auto [groups, time] = places_.placed(slot);
      draft.slots.push_back(std::move(groups));
      draft.time += time;
    }
    return draft;
  }

  const Problem& problem_;
  Nanoseconds bound_;
  SlotItems items_;
  SlotPlaces places_;
  SlotBuilder builder_;
  std::vector<PackedSlot> slots_;
  Nanoseconds time_ = never;
};

}  // namespace

SlotDraft pack_slots(const Problem& problem, Nanoseconds limit, std::int32_t base, PackCare care) {
  return SlotSearch(problem, 0).within(limit, base, care);
}

SlotDraft search_slots(const Problem& problem, Nanoseconds bound, std::int64_t work) {
  return SlotSearch(problem, bound).run(work);
}

}  // namespace isochron
