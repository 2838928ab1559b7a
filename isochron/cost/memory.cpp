#include "isochron/cost/memory.h"

#include <algorithm>

#include "isochron/core/require.h"
#include "isochron/cost/divided_up.h"

namespace isochron {

namespace {

constexpr std::string_view where = "memory";

}  // namespace

std::int64_t activation_bytes_per_token(const ModelShape& shape, Recompute recompute) {
  require_valid(shape);
  const std::int64_t input = 2 * shape.hidden;
  const auto layer = [&](std::int64_t ffn) {
    switch (recompute) {
      case Recompute::none:
        return 34 * shape.hidden;
      case Recompute::selective:
        // The count stands for MLPs of about 4 h; of an extreme one the input remains.
        return std::max(30 * shape.hidden - 2 * ffn, input);
      case Recompute::full:
        break;
    }
    return input;
  };
  const std::int64_t active_ffn = shape.experts_per_token * shape.moe_ffn + shape.shared_ffn;
  return (shape.layers - shape.sparse_layers) * layer(shape.ffn) +
         shape.sparse_layers * layer(active_ffn);
}

std::int64_t state_bytes(std::int64_t parameters, std::int64_t optimizer_shards) {
  require(parameters >= 0 && parameters <= std::int64_t{1} << 56, where,
          "parameters is {}, must be an integer from 0 to 2^56", parameters);
  require(optimizer_shards >= 1, where, "optimizer_shards is {}, must be at least 1",
          optimizer_shards);
  return 6 * parameters + divided_up(12 * parameters, optimizer_shards);
}

std::int64_t logits_bytes(const ModelShape& shape, Tokens tokens, std::int64_t tensor_parallel) {
  require_valid(shape);
  require(tokens >= 0 && tokens <= max_length, where,
          "tokens is {}, must be an integer from 0 to {}", tokens, max_length);
  require(tensor_parallel >= 1, where, "tensor_parallel is {}, must be at least 1",
          tensor_parallel);
  return divided_up(4 * tokens * (shape.hidden + shape.vocabulary), tensor_parallel);
}

}  // namespace isochron
