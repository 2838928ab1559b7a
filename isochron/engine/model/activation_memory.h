#pragma once

#include <cstdint>

#include "isochron/core/units.h"
#include "isochron/cost/memory.h"
#include "isochron/cost/model_shape.h"

namespace isochron {

// Bytes of activations at the peak of a training step, for each token that a rank holds.
struct ActivationBytes {
  std::int64_t kept = 0;     // by the layers of a decoder, for the backward
  std::int64_t working = 0;  // the largest working set of a backward beside that

  // What a plan counts with: both, and a sixteenth for what does not grow with the tokens
  // (gradients of the weights of a layer, buffers of kernels).
  [[nodiscard]] std::int64_t peak() const { return (kept + working) * 17 / 16; }
};

struct ActivationOptions {
  Recompute recompute = Recompute::none;
  std::int64_t element_bytes = 2;  // of the weights; 2 counts as torch's operations, more as those
                                   // for the CPU
  bool in_groups = false;          // of several ranks, which exchange heads
};

// The head is counted apart.
[[nodiscard]] ActivationBytes activation_bytes(const ModelShape& shape,
                                               const ActivationOptions& options);

// Bytes that head and loss work with, in chunks of `chunk` tokens, before the layers do: logits,
// and the gradient of the weight of the head.
[[nodiscard]] std::int64_t head_bytes(const ModelShape& shape, Tokens chunk,
                                      std::int64_t element_bytes);

}  // namespace isochron
