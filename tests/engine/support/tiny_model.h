#pragma once

#include <cstdint>

#include "isochron/engine/model/decoder.h"

namespace isochron {

struct TinyModel {
  bool tied = false;
  std::uint64_t seed = 1;
  at::ScalarType dtype = at::kFloat;
  Recompute recompute = Recompute::none;
  std::int64_t head_dim = 6;
  at::Device device = at::kCPU;
};

inline constexpr std::int64_t tiny_vocabulary = 29;

// A decoder of two layers with random weights. Models that differ in dtype and device alone
// have the same weights, to rounding.
[[nodiscard]] Decoder make_tiny_model(const TinyModel& model);

}  // namespace isochron
