#pragma once

#include <cstdint>
#include <vector>

#include "isochron/plan/problem.h"

namespace isochron {

// Sequences of these lengths, none of which stays with another.
inline Work singles(const std::vector<Tokens>& lengths) {
  Work work;
  work.lengths = lengths;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    work.items.push_back({SequenceId(static_cast<std::int32_t>(i))});
    work.bundles.push_back({static_cast<ItemId>(i)});
  }
  return work;
}

// Whether every one of them fits groups of some size.
inline bool are_all_held(const Problem& problem) {
  for (ItemId item = 0; item < problem.num_items(); ++item) {
    if (problem.smallest_place(item) == problem.sizes().size()) return false;
  }
  return true;
}

// A nanosecond a token, `microbatch_ns` for a micro-batch, no traffic.
inline CostModel plain_cost(double microbatch_ns = 1) {
  CostModel cost;
  cost.linear_ns = 1;
  cost.microbatch_ns = microbatch_ns;
  cost.context = {{.kind = ContextKind::none, .links = {}}};
  return cost;
}

// About a 7B model on nodes of eight H100.
inline CostModel cost_7b_h100() {
  return {.name = "7b_h100",
          .quadratic_ns = 1.5903579373104146,
          .linear_ns = 91057.53405864509,
          .microbatch_ns = 5e6,
          .context = {{.kind = ContextKind::all_gather_kv,
                       .bytes_per_token = 393216,
                       .links = {{8, 350, 1280}, {1 << 20, 45, 2560}}}}};
}

}  // namespace isochron
