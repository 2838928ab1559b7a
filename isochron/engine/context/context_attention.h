#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "isochron/cost/cost_model.h"
#include "isochron/engine/model/attention.h"
#include "isochron/engine/parallel/communicator.h"

namespace isochron {

struct ContextOptions {
  // Keys and values are gathered for as many heads at a time as fit into this many bytes, one head
  // at least. The next heads travel while these are computed.
  std::int64_t gather_bytes = std::int64_t{32} << 20;
};

// Attention of a rank that holds zigzag shards (isochron/layout) of the sequences of its group, by
// what the ranks send each other:
//
//   all_gather_kv  every rank gets all keys and values and computes its own queries. The backward
//                  gathers them again and sums the gradients of each key where it lives;
//   all_to_all     every rank gets all tokens of its share of the heads, and sends the results
//                  back. The size of the group divides the number of key and value heads.
//
// `cu_seqlens` is that of the layout, of padded sequences in the group; forward and backward take
// the tokens that this rank holds. All members of the group make the same calls in the same order;
// nobody else takes part. The group outlives the attention.
//
// Throws std::invalid_argument, at the first forward, if all_to_all cannot split the heads.
[[nodiscard]] std::shared_ptr<const Attention> context_attention(
    ContextKind exchange, std::span<const std::int32_t> cu_seqlens, Communicator& group,
    at::Device device, const ContextOptions& options = {});

}  // namespace isochron
