#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "isochron/engine/model/decoder.h"
#include "isochron/engine/model/model_config.h"

// T packed tokens, R half of a head.

namespace isochron {

// Cosine and sine of the angles of each token, with the scale of attention in both (yarn). One
// table serves all layers. In fp32, as transformers has them, or that as fp64 for an fp64 model.
struct RopeTable {
  at::Tensor cos_TR;
  at::Tensor sin_TR;
};

[[nodiscard]] RopeTable rope_table(const RopeConfig& rope, std::int64_t head_dim,
                                   const PackedTokens& input, at::ScalarType dtype);

// The angle by which the position is multiplied, for each pair of a head, in fp32 on the CPU.
// `length` is the length of the sequence; `dynamic` alone uses it.
[[nodiscard]] at::Tensor rope_frequencies_R(const RopeConfig& rope, std::int64_t head_dim,
                                            std::int64_t length);

}  // namespace isochron
