#include "isochron/cost/flops.h"

#include <cmath>

#include "isochron/core/int128.h"
#include "isochron/core/require.h"

namespace isochron {

namespace {

constexpr std::string_view where = "flops";

struct Sums {
  Int128 tokens = 0;
  Int128 squares = 0;  // of the lengths; below 2^93 for 2^31 sequences
};

Sums sums_of(std::span<const Tokens> lengths) {
  Sums sums;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    require(lengths[i] >= 1 && lengths[i] <= max_length, where,
            "lengths[{}] is {}, must be an integer from 1 to {}", i, lengths[i], max_length);
    sums.tokens += lengths[i];
    sums.squares += Int128{lengths[i]} * lengths[i];
  }
  return sums;
}

Int128 forward_count(const ModelShape& shape, std::span<const Tokens> lengths, Triangle triangle) {
  const Sums sums = sums_of(lengths);
  const Int128 pairs = sums.squares + (triangle == Triangle::exact ? sums.tokens : 0);  // x 2
  return linear_flops_per_token(shape) * sums.tokens + attention_flops_per_square(shape) * pairs;
}

}  // namespace

double forward_flops(const ModelShape& shape, std::span<const Tokens> lengths, Triangle triangle) {
  return static_cast<double>(forward_count(shape, lengths, triangle));
}

double backward_flops(const ModelShape& shape, std::span<const Tokens> lengths, Triangle triangle) {
  // Each product has two gradients, of its input and of its weight or other input.
  return static_cast<double>(2 * forward_count(shape, lengths, triangle));
}

double model_flops(const ModelShape& shape, std::span<const Tokens> lengths) {
  return static_cast<double>(3 * forward_count(shape, lengths, Triangle::half_square));
}

std::int64_t linear_flops_per_token(const ModelShape& shape) {
  require_valid(shape);
  const std::int64_t h = shape.hidden;
  const std::int64_t projections = 4 * h * shape.head_dim * (shape.heads + shape.kv_heads);
  const std::int64_t dense = 6 * h * shape.ffn;
  const std::int64_t sparse = 6 * h * (shape.experts_per_token * shape.moe_ffn + shape.shared_ffn);
  return shape.layers * projections + (shape.layers - shape.sparse_layers) * dense +
         shape.sparse_layers * sparse + 2 * h * shape.vocabulary;
}

std::int64_t attention_flops_per_square(const ModelShape& shape) {
  require_valid(shape);
  // Two products of 2 * head_dim FLOPs for each head and each of L^2 / 2 pairs.
  return 2 * shape.heads * shape.head_dim * shape.layers;
}

double verl_flops(const ModelShape& shape, std::span<const Tokens> lengths) {
  require_valid(shape);
  require(shape.sparse_layers == 0, where, "sparse_layers is {}, must be 0 for verl's count",
          shape.sparse_layers);
  const Sums sums = sums_of(lengths);
  const Int128 h = shape.hidden;
  const Int128 projections = 2 * h * shape.head_dim * (shape.heads + shape.kv_heads);
  const Int128 weights =
      shape.layers * (3 * h * shape.ffn + projections) + 2 * h * shape.vocabulary;
  return static_cast<double>(6 * weights * sums.tokens +
                             3 * sums.squares * attention_flops_per_square(shape));
}

std::optional<double> mfu(double flops, double seconds, const std::optional<Hardware>& hardware,
                          std::int64_t devices) {
  require(std::isfinite(flops) && flops >= 0, "mfu", "flops is {}, must be at least 0", flops);
  require(std::isfinite(seconds) && seconds > 0, "mfu", "seconds is {}, must be above 0", seconds);
  require(devices >= 1, "mfu", "devices is {}, must be at least 1", devices);
  if (!hardware || hardware->peak_flops <= 0) return std::nullopt;
  return flops / seconds / hardware->peak_flops / static_cast<double>(devices);
}

}  // namespace isochron
