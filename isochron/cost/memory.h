#pragma once

#include <cstdint>

#include "isochron/core/enum_names.h"
#include "isochron/core/units.h"
#include "isochron/cost/model_shape.h"

namespace isochron {

// What the backward computes again instead of keeping it from the forward.
enum class Recompute {
  none,
  selective,  // norms, rotary embedding and the SwiGLU product; no matrix product
  full,       // the layer from its input
};

template <>
struct EnumNames<Recompute> {
  static constexpr std::array<std::pair<Recompute, std::string_view>, 3> values = {
      {{Recompute::none, "none"}, {Recompute::selective, "selective"}, {Recompute::full, "full"}}};
};

// Bytes that the layers keep for the backward of one token, on one device: 34 h, 30 h - 2 f or 2 h
// a layer (bf16, attention that stores no scores). A layer with experts counts those of a token.
[[nodiscard]] std::int64_t activation_bytes_per_token(const ModelShape& shape, Recompute recompute);

// Bytes of weights, gradients and optimizer on one device: 6 a parameter (bf16 weight, fp32
// gradient) and 12 (fp32 weight and two moments) shared by `optimizer_shards` ranks; 18 for one.
// Throws std::invalid_argument for parameters outside 0 to 2^56 and fewer than 1 shard.
[[nodiscard]] std::int64_t state_bytes(std::int64_t parameters, std::int64_t optimizer_shards = 1);

// Bytes of the output head for `tokens` tokens at a time: fp32 logits and their input, split over
// `tensor_parallel` devices. Throws std::invalid_argument for fewer than 1 device, or tokens
// outside 0 to 2^31-1.
[[nodiscard]] std::int64_t logits_bytes(const ModelShape& shape, Tokens tokens,
                                        std::int64_t tensor_parallel = 1);

}  // namespace isochron
