// Without virtual stages a path on the first stage up to the forward of a slot, down with it and on
// along the last stage misses the backwards of the d slots before, d stages below the first.
//
// With them it goes down through one chunk of the slot, at its first visit, and misses 2d visits:
// so many more forwards does the first stage warm up with than the last. They end `group` visits
// after the block before has begun its backwards. Up is the same in reverse.

#include "isochron/plan/pipelines/block_turn.h"

#include <algorithm>
#include <cstdint>

namespace isochron {

BlockTurn block_turn(const PipelineShape& shape) {
  const auto depth = static_cast<std::size_t>(shape.stages - 1);
  if (shape.virtual_ == 1) {
    return {.gain = static_cast<double>(depth), .missed = std::vector<double>(depth, 1)};
  }
  const auto width = static_cast<std::size_t>(shape.group);
  const std::size_t per_block = width * static_cast<std::size_t>(shape.virtual_);
  std::vector<std::vector<std::int64_t>> counts(2, std::vector<std::int64_t>(width, 0));
  for (std::size_t slot = 0; slot < width; ++slot) {
    for (std::size_t back = 1; back <= 2 * depth; ++back) {
      const std::size_t visit = per_block + width + slot - back;  // counted from two blocks before
      ++counts[visit >= per_block ? 0 : 1][visit % width];
    }
  }
  const auto visits = static_cast<double>(per_block);
  BlockTurn turn{
      .slots_per_block = shape.group, .gain = static_cast<double>(depth) / visits, .missed = {}};
  for (const auto& count : counts) {
    turn.missed.push_back(static_cast<double>(*std::max_element(count.begin(), count.end())) /
                          visits);
  }
  return turn;
}

}  // namespace isochron
