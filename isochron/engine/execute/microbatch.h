#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "isochron/engine/data/rows.h"
#include "isochron/engine/model/decoder.h"
#include "isochron/layout/packed_layout.h"
#include "isochron/step/step_plan.h"

// T packed tokens.

namespace isochron {

// Which positions the head answers for.
enum class Labels {
  weighted,  // those whose target has a weight: all that a loss needs
  all,       // every position that has a next token
};

// What one rank puts through the model in one slot: its shard of each sequence of its group.
struct Microbatch {
  PackedLayout layout;
  PackedTokens input;
  at::Tensor labels_T;   // int64, on the device: the next token; -1: none
  at::Tensor weights_T;  // fp64, on the device: w of the label; 0 where there is none
};

// Of a member of the group. Reads the tokens that the rank holds and those behind them, of the rows
// of the group alone. A sequence id behind the last row is a padding row: tokens 0 without a
// weight.
[[nodiscard]] Microbatch make_microbatch(const Rows& rows, const ContextGroup& group,
                                         std::int32_t rank, Labels labels, at::Device device);

}  // namespace isochron
