#include "isochron/step/topology.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "isochron/core/require.h"

namespace isochron {

void require_valid(const Topology& topology) {
  constexpr std::string_view where = "plan";
  constexpr std::int32_t max_depth = 4096;     // deeper than any model has layers
  constexpr std::int32_t max_block = 1 << 18;  // chunks times slots: seconds of planning
  const PipelineShape& shape = topology.pipeline;
  require(topology.ranks >= 1 && topology.ranks <= max_ranks, where, "ranks is {}, must be 1 to {}",
          topology.ranks, max_ranks);
  require(topology.capacity >= 1 && topology.capacity <= max_total_cost, where,
          "capacity is {}, must be at least 1", topology.capacity);
  const auto require_depth = [&](std::string_view name, std::int32_t value) {
    require(value >= 1 && value <= max_depth, where, "{} is {}, must be 1 to {}", name, value,
            max_depth);
  };
  require_depth("pipeline.stages", shape.stages);
  require_depth("pipeline.virtual", shape.virtual_);
  require_depth("pipeline.group", shape.group);
  if (shape.virtual_ > 1) {
    require(shape.stages > 1, where, "pipeline.virtual is {}, must be 1 without several stages",
            shape.virtual_);
    // No more than leave room for a group of as many slots as stages.
    const std::int32_t max_virtual =
        std::max(1, std::min(max_depth / shape.stages, max_block / (shape.stages * shape.stages)));
    require(shape.virtual_ <= max_virtual, where,
            "pipeline.virtual is {}, must be at most {} with {} stages", shape.virtual_,
            max_virtual, shape.stages);
    require(shape.group >= shape.stages, where,
            "pipeline.group is {}, must be at least the {} stages", shape.group, shape.stages);
    require(shape.group <= max_block / shape.num_chunks(), where,
            "pipeline.group is {}, must be at most {} with {} chunks", shape.group,
            max_block / shape.num_chunks(), shape.num_chunks());
  } else {
    require(shape.group == 1, where, "pipeline.group is {}, must be 1 without virtual stages",
            shape.group);
  }
  require(shape.transfer_ns >= 0 && shape.transfer_ns <= max_total_cost, where,
          "pipeline.transfer_ns is {}, must be from 0 to {}", shape.transfer_ns, max_total_cost);
  if (!shape.shares.empty()) {
    require(shape.shares.size() == static_cast<std::size_t>(shape.num_chunks()), where,
            "pipeline.shares has {} numbers, must be one for each of the {} chunks",
            shape.shares.size(), shape.num_chunks());
    for (const double share : shape.shares) {
      require(std::isfinite(share) && share > 0, where, "a share is {}, must be above 0", share);
    }
    const double sum = std::accumulate(shape.shares.begin(), shape.shares.end(), 0.0);
    require(std::abs(sum - 1) < 1e-6, where, "the shares add up to {}, must be 1", sum);
  }
  if (!topology.rank_speed.empty()) {
    require(topology.rank_speed.size() == static_cast<std::size_t>(topology.ranks), where,
            "rank_speed has {} numbers, must be one for each of the {} ranks",
            topology.rank_speed.size(), topology.ranks);
    for (const double speed : topology.rank_speed) {
      require(speed >= 0.001 && speed <= 1000, where, "a speed is {}, must be 0.001 to 1000",
              speed);
    }
  }
}

}  // namespace isochron
