#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

// T packed tokens, D inputs of a linear product.

namespace isochron {

// Dropout in front of the linear products of all layers: which masks a pass takes. Equal values
// give equal masks for a token on every device and in every micro-batch (mask_stream.h).
struct Dropout {
  double probability = 0;  // that an input becomes 0; below 1. 0: there are no masks
  std::int64_t seed = 0;
  std::int64_t step = 0;
};

// The mask of the inputs of one linear product. It is computed each time that it is applied.
class InputMask {
 public:
  InputMask() = default;  // nothing is dropped
  // `streams_T`: token_stream() of each token, int64. `index`: input_index().
  InputMask(at::Tensor streams_T, std::uint64_t index, double probability);

  // x with some inputs 0 and the others divided by (1 - probability); x itself if none is dropped.
  [[nodiscard]] at::Tensor apply(const at::Tensor& x_TD) const;
  // The same in the memory of x: what a gradient of the masked input is as one of the input.
  void apply_(const at::Tensor& x_TD) const;

 private:
  void apply_to(const at::Tensor& x_TD, at::Tensor& out_TD) const;

  at::Tensor streams_T_;
  std::uint64_t index_ = 0;
  double probability_ = 0;
};

struct LayerMasks {
  InputMask qkv, output, gate_up, down;
};

// What the masks of one pass have in common.
class TokenMasks {
 public:
  TokenMasks() = default;  // nothing is dropped
  // Row and position of each token, int64, on the device of the model.
  TokenMasks(const Dropout& dropout, const at::Tensor& rows_T, const at::Tensor& positions_T);

  [[nodiscard]] LayerMasks of_layer(std::int64_t layer) const;

 private:
  at::Tensor streams_T_;
  double probability_ = 0;
};

}  // namespace isochron
