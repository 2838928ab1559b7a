#pragma once

#include <vector>

#include "isochron/plan/slots/slot_builder.h"
#include "isochron/plan/slots/slot_items.h"

namespace isochron {

// How many slots the tokens of all items fill.
[[nodiscard]] double fewest_slots(const SlotItems& items);

// Slots in which groups may take several times as long as one full of average tokens does.
[[nodiscard]] std::vector<SlotRecipe> loose_recipe(const SlotItems& items);

// Slots as long as some of the longest items take on groups of some size, the most promising first.
[[nodiscard]] std::vector<SlotRecipe> limited_recipes(const SlotItems& items);

// The same, what the work takes in m even slots, and multiples of what a slot full of tokens takes.
[[nodiscard]] std::vector<SlotRecipe> all_recipes(const SlotItems& items);

}  // namespace isochron
