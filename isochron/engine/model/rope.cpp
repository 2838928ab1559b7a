// Rotary frequencies with the arithmetic of transformers, in fp32 and in its order: at position
// 100000 an angle has an error of 0.006 in fp32, and a model was trained with that error.

#include "isochron/engine/model/rope.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace isochron {

namespace {

// theta^(2i/H), of pair i.
at::Tensor wavelengths_R(double theta, std::int64_t head_dim) {
  const at::Tensor exponents =
      at::arange(0, head_dim, 2, at::kFloat).div_(static_cast<double>(head_dim));
  return at::pow(at::Scalar(theta), exponents);
}

// Long waves are divided by the factor, short ones kept, those between are blended.
at::Tensor llama3_R(const RopeConfig& rope, const at::Tensor& inverse) {
  const double longest = rope.original_max_position / rope.low_freq_factor;
  const double shortest = rope.original_max_position / rope.high_freq_factor;
  const at::Tensor wave = 2 * std::numbers::pi / inverse;
  const at::Tensor scaled = at::where(wave > longest, inverse / rope.factor, inverse);
  const at::Tensor smooth = (rope.original_max_position / wave - rope.low_freq_factor) /
                            (rope.high_freq_factor - rope.low_freq_factor);
  const at::Tensor blended = (1 - smooth) * scaled / rope.factor + smooth * scaled;
  return at::where((wave < shortest).logical_not() * (wave > longest).logical_not(), blended,
                   scaled);
}

// The pair that turns `rotations` times over the original context.
double yarn_pair(const RopeConfig& rope, std::int64_t head_dim, double rotations) {
  return static_cast<double>(head_dim) *
         std::log(rope.original_max_position / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(rope.theta));
}

at::Tensor yarn_R(const RopeConfig& rope, std::int64_t head_dim) {
  double low = yarn_pair(rope, head_dim, rope.beta_fast);
  double high = yarn_pair(rope, head_dim, rope.beta_slow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(head_dim - 1));
  if (low == high) high += 0.001;
  const at::Tensor ramp =
      ((at::arange(head_dim / 2, at::kFloat) - low) / (high - low)).clamp_(0, 1);
  const at::Tensor kept = 1 - ramp;
  const at::Tensor wave = wavelengths_R(rope.theta, head_dim);
  return (1.0 / (rope.factor * wave)) * (1 - kept) + (1.0 / wave) * kept;
}

double attention_scale(const RopeConfig& rope) {
  if (rope.type != RopeConfig::Type::yarn) return 1;
  if (rope.attention_factor) return *rope.attention_factor;
  const auto scale = [&](double mscale) {
    return rope.factor <= 1 ? 1.0 : 0.1 * mscale * std::log(rope.factor) + 1.0;
  };
  if (rope.mscale && rope.mscale_all_dim) return scale(*rope.mscale) / scale(*rope.mscale_all_dim);
  return scale(1);
}

// positions x frequencies. Sequences of `dynamic` that are longer than the model's context have
// frequencies of their own.
at::Tensor angles_TR(const RopeConfig& rope, std::int64_t head_dim, const PackedTokens& input) {
  const at::Tensor position_T1 = input.positions_T.to(at::kFloat).unsqueeze(1);
  const auto device = position_T1.device();
  if (rope.type != RopeConfig::Type::dynamic) {
    return position_T1 * rope_frequencies_R(rope, head_dim, 0).to(device);
  }
  std::vector<at::Tensor> parts;
  for (std::size_t i = 0; i + 1 < input.cu_seqlens.size(); ++i) {
    const std::int64_t begin = input.cu_seqlens[i];
    const std::int64_t num_held = input.cu_seqlens[i + 1] - begin;
    const std::int64_t length = input.lengths.empty() ? num_held : input.lengths[i];
    parts.push_back(position_T1.narrow(0, begin, num_held) *
                    rope_frequencies_R(rope, head_dim, length).to(device));
  }
  return parts.empty() ? position_T1 * rope_frequencies_R(rope, head_dim, 0).to(device)
                       : at::cat(parts);
}

}  // namespace

at::Tensor rope_frequencies_R(const RopeConfig& rope, std::int64_t head_dim, std::int64_t length) {
  using enum RopeConfig::Type;
  switch (rope.type) {
    case default_:
      return 1.0 / wavelengths_R(rope.theta, head_dim);
    case linear:
      return (1.0 / wavelengths_R(rope.theta, head_dim)) / rope.factor;
    case llama3:
      return llama3_R(rope, 1.0 / wavelengths_R(rope.theta, head_dim));
    case yarn:
      return yarn_R(rope, head_dim);
    case dynamic: {
      const double longest = std::max(static_cast<double>(length), rope.original_max_position);
      const double stretch = rope.factor * longest / rope.original_max_position - (rope.factor - 1);
      const auto dim = static_cast<double>(head_dim);
      return 1.0 / wavelengths_R(rope.theta * std::pow(stretch, dim / (dim - 2)), head_dim);
    }
  }
  return {};
}

RopeTable rope_table(const RopeConfig& rope, std::int64_t head_dim, const PackedTokens& input,
                     at::ScalarType dtype) {
  const at::Tensor angles = angles_TR(rope, head_dim, input);
  const double scale = attention_scale(rope);
  const auto table_dtype = dtype == at::kDouble ? at::kDouble : at::kFloat;
  return {.cos_TR = at::cos(angles).mul_(scale).to(table_dtype),
          .sin_TR = at::sin(angles).mul_(scale).to(table_dtype)};
}

}  // namespace isochron
