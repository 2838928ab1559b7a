#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

// T packed tokens, D hidden width, V vocabulary.

namespace isochron {

// All that a task sees of a model: numbers per token, never logits. Position t speaks of the token
// that follows it.
struct TokenOutputs {
  at::Tensor log_prob_T;  // of the label; 0 where there is none
  at::Tensor entropy_T;   // of the distribution; undefined if it was not asked for
};

struct HeadOptions {
  std::int64_t chunk = 2048;  // tokens whose logits exist at a time, in forward and backward
  double temperature = 1;     // logits are divided by this
  bool entropy = false;
};

// Log-probability and entropy of softmax(hidden * weight^T / temperature), computed in chunks of
// tokens with a backward of its own, so that no tensor of T x V exists. `labels_T` is int64; -1
// where a position has no label: its outputs are 0 and send back nothing. Outputs are fp32 (fp64
// for fp64 input); gradients flow to `hidden_TD` and `weight_VD`.
[[nodiscard]] TokenOutputs token_outputs(const at::Tensor& hidden_TD, const at::Tensor& weight_VD,
                                         const at::Tensor& labels_T,
                                         const HeadOptions& options = {});

}  // namespace isochron
