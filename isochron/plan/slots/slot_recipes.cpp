#include "isochron/plan/slots/slot_recipes.h"

#include <algorithm>
#include <cmath>

#include "isochron/plan/slots/slot_limits.h"

namespace isochron {

namespace {

using Idle = SlotRecipe::Idle;

// What all ranks take for everything.
double whole_time(const SlotItems& items) {
  return items.total_area() / items.problem().num_ranks();
}

// What a micro-batch full of average tokens takes.
double full_time(const SlotItems& items) {
  return items.total_area() * static_cast<double>(items.problem().capacity()) /
         items.total_tokens();
}

bool is_base(const SlotItems& items, std::size_t base) {
  const Problem& problem = items.problem();
  return base == 0 || (problem.num_ranks() % problem.sizes()[base] == 0 && items.holds_all(base));
}

Nanoseconds longest_time(const SlotItems& items) {
  Nanoseconds longest = 0;
  for (const ItemId item : items.dearest()) {
    const auto place = items.smallest(item);
    longest = std::max(longest, items.cost(place, item) + items.fixed(place));
  }
  return longest;
}

}  // namespace

double fewest_slots(const SlotItems& items) {
  return std::max(1.0, std::ceil(whole_time(items) / full_time(items)));
}

std::vector<SlotRecipe> loose_recipe(const SlotItems& items) {
  const auto limit = static_cast<Nanoseconds>(full_time(items) * 8.0) + items.fixed(0);
  return {{.limit = std::clamp<Nanoseconds>(limit, 1, longest_time(items))}};
}

std::vector<SlotRecipe> limited_recipes(const SlotItems& items) {
  std::vector<SlotRecipe> result;
  // Larger cells pack their tokens better, which counts where micro-batches cost much.
  const std::size_t most_bases = static_cast<double>(items.fixed(0)) * 16 > full_time(items)
                                     ? std::min<std::size_t>(4, items.num_places())
                                     : 1;
  for (const Nanoseconds limit : promising_limits(items, items.dearest(), 6)) {
    for (std::size_t base = 0; base < most_bases; ++base) {
      if (!is_base(items, base)) continue;
      result.push_back({.base = base, .limit = limit, .idle = Idle::filled});
      if (fewest_slots(items) == 1) {
        result.push_back({.base = base, .limit = limit, .idle = Idle::spread});
      }
    }
  }
  return result;
}

std::vector<SlotRecipe> all_recipes(const SlotItems& items) {
  const double full = full_time(items);
  const double whole = whole_time(items);
  const double fewest = fewest_slots(items);
  const Nanoseconds longest = longest_time(items);
  std::vector<SlotRecipe> result = limited_recipes(items);
  const auto add = [&](double limit, Idle idle) {
    const Nanoseconds clamped =
        std::clamp<Nanoseconds>(static_cast<Nanoseconds>(limit) + items.fixed(0), 1, longest);
    const bool is_known = std::any_of(result.begin(), result.end(), [&](const SlotRecipe& recipe) {
      return recipe.limit == clamped && recipe.idle == idle;
    });
    if (!is_known) result.push_back({.limit = clamped, .idle = idle});
  };
  for (const double factor : {8.0, 2.2}) add(full * factor, Idle::filled);
  for (double m = fewest; m < fewest + 3; ++m) add(whole / m * 1.005, Idle::spread);
  for (std::size_t base = 1; base < std::min<std::size_t>(4, items.num_places()); ++base) {
    if (!is_base(items, base)) continue;
    for (const Idle idle : {Idle::filled, Idle::spread}) {
      result.push_back({.base = base, .limit = longest, .idle = idle});
    }
    for (double m = fewest; m < fewest + 2; ++m) {
      const auto limit = static_cast<Nanoseconds>(whole / m * 1.02) + items.fixed(base);
      result.push_back({.base = base, .limit = limit, .idle = Idle::spread});
    }
  }
  for (const double factor : {2.0, 1.8, 1.5, 1.2}) add(full * factor, Idle::filled);
  for (double m = fewest; m < fewest + 5; ++m) add(whole / m * 1.05, Idle::spread);
  return result;
}

}  // namespace isochron
