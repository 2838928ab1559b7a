#pragma once

#include <vector>

#include "isochron/step/topology.h"

namespace isochron {

// What paths gain and miss in a pipeline of equal stages that trains, in parts of the passes of one
// slot on one stage. Slots that run together are a block; without virtual stages each is its own.
struct BlockTurn {
  std::int32_t slots_per_block = 1;
  // Of a slot, where its block takes a path along in the mean over the slots of the block.
  double gain = 0;
  // Of a slot in the first, second, .. block before one that takes a path down, or behind one that
  // takes it up: no slot of the block is missed more.
  std::vector<double> missed;
};

[[nodiscard]] BlockTurn block_turn(const PipelineShape& shape);

}  // namespace isochron
