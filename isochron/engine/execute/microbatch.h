#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "isochron/engine/data/rows.h"
#include "isochron/engine/model/decoder.h"
#include "isochron/step/step_plan.h"

// T packed tokens.

namespace isochron {

// Which positions the head answers for.
enum class Labels {
  weighted,  // those whose target has a weight: all that a loss needs
  all,       // every position that has a next token
};

// What one rank puts through the model in one slot.
struct Microbatch {
  PackedTokens input;
  at::Tensor labels_T;   // int64, on the device: the next token; -1: none
  at::Tensor weights_T;  // fp64, on the device: w of the label; 0 where there is none
};

// Reads the rows of the group and no others. A sequence id behind the last row is a padding row:
// tokens 0 without a weight.
[[nodiscard]] Microbatch make_microbatch(const Rows& rows, const ContextGroup& group, Labels labels,
                                         at::Device device);

}  // namespace isochron
