#pragma once

#include "isochron/core/random.h"
#include "isochron/engine/context/context_attention.h"

namespace isochron {

struct AttentionCase {
  ContextKind exchange = ContextKind::all_gather_kv;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 8;
  std::int64_t longest = 90;  // sequence
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kDouble;
  double tolerance = 1e-12;  // absolute; inputs are around 1
  ContextOptions options = {};
};

// Draws sequences, the same on every member of the group, and expects result and gradients of this
// member's shards to be those of attention over whole sequences, which is computed in fp64 on the
// CPU. Called by all members with equal generators.
void compare_with_whole_sequences(Communicator& group, Random& random, const AttentionCase& given);

}  // namespace isochron
