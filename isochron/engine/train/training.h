#pragma once

#include <functional>
#include <string_view>

#include "isochron/engine/parallel/place.h"
#include "isochron/engine/train/recipe.h"

namespace isochron {

// Who started this rank.
struct Surroundings {
  std::function<void(std::string_view)> say;  // lines for people; rank 0 alone speaks
  bool is_terminal = false;                   // they stand on a terminal
  std::function<bool()> is_stop_wanted;       // asked before every step
};

// Runs a recipe as one rank, to its end or until any rank wants to stop; then everything is saved.
// Throws std::invalid_argument for what is wrong with recipe, data or model, std::runtime_error for
// a missing file or device, a lost rank, and checkpoints that are all damaged.
void run_training(const Recipe& recipe, const Place& place, const Surroundings& surroundings);

}  // namespace isochron
