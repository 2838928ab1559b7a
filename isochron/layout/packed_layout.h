#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "isochron/core/units.h"

namespace isochron {

// Which part of a micro-batch a rank holds.
struct LayoutOptions {
  std::int32_t context_size = 1;  // ranks of the group
  std::int32_t context_rank = 0;  // this one among them
  std::int32_t tensor_parallel = 1;
};

// The tokens of a micro-batch that one rank of a context-parallel group holds, packed: its shards
// of the sequences one behind the other. `source` and `target` index the real tokens of all
// sequences of the group, concatenated.
//
// With c > 1 ranks a sequence is padded to a multiple of 2 * c * tensor_parallel and cut into 2c
// chunks; rank r holds chunk r and behind it chunk 2c-1-r (zigzag: even causal work). On one rank
// it is padded to a multiple of tensor_parallel and stays whole.
struct PackedLayout {
  // Starts of the padded sequences in the group, and behind them the end of the last; the rank
  // holds 1/c of each: its shard of sequence i starts at cu_seqlens[i] / c.
  std::vector<std::int32_t> cu_seqlens;
  // Of each token that the rank holds:
  std::vector<std::int32_t> positions;  // its index in its sequence; 0 for padding
  std::vector<std::int64_t> source;     // which token it is; -1 for padding
  std::vector<std::int64_t> target;     // the next token of the same sequence, also where another
                                        // rank holds it; -1 for a last token and for padding

  bool operator==(const PackedLayout&) const = default;
};

// Throws std::invalid_argument for a length below 1, sizes below 1, a rank outside its group, and
// more than 2^31-1 padded tokens.
[[nodiscard]] PackedLayout packed_layout(std::span<const Tokens> lengths,
                                         const LayoutOptions& options = {});

// Of each padded token of a group, in the order of the sequences: where it lies when the shards of
// all ranks stand one behind the other. `cu_seqlens` is that of their layouts.
[[nodiscard]] std::vector<std::int64_t> shard_order(std::span<const std::int32_t> cu_seqlens,
                                                    std::int32_t context_size);

}  // namespace isochron
