#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "isochron/cost/memory.h"
#include "isochron/engine/model/attention_block.h"
#include "isochron/engine/model/dropout.h"
#include "isochron/engine/model/mlp_block.h"

// T packed tokens, D hidden width.

namespace isochron {

// A layer: attention, then MLP. `parameters` are the leaves that get gradients, in the order of the
// blocks' gradients; they share memory with the weights of the blocks.
struct Layer {
  std::int64_t index = 0;
  AttentionBlock attention;
  MlpBlock mlp;
  std::vector<at::Tensor> parameters;
};

// What the layers of one forward have in common.
struct ForwardPass {
  RopeTable table;
  std::shared_ptr<const Attention> attention;
  TokenMasks masks;
  Recompute recompute = Recompute::none;
};

// The layer as one node of autograd, whose backward is written by hand: it keeps what `recompute`
// says and nothing else, and gives every parameter its gradient once. Gradients are equal bit by
// bit for every `recompute` on the CPU. Where gradients are off, nothing is kept.
[[nodiscard]] at::Tensor layer_TD(const at::Tensor& x_TD, const std::shared_ptr<const Layer>& layer,
                                  const std::shared_ptr<const ForwardPass>& pass);

}  // namespace isochron
