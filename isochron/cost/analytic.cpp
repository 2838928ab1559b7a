// From FLOPs and bytes to nanoseconds (SPEC K.7), with R = half of the peak:
//
//   linear_ns     b * FLOPs of the matrix products with weights / R     b = 3, full recompute 4
//   quadratic_ns  a * FLOPs of attention per token^2 / R                a = 3.5, full recompute 4.5
//
// b counts a forward as 1 and a backward as 2; a counts the backward of attention as 2.5, because
// FlashAttention does five products there for two in the forward.

#include "isochron/cost/analytic.h"

#include "isochron/core/require.h"
#include "isochron/cost/flops.h"

namespace isochron {

namespace {

constexpr std::string_view where = "analytic";
constexpr double efficiency = 0.5;      // of the peak
constexpr double microbatch_ns = 5e6;   // launches, data, a synchronisation
constexpr double share_length = 4096;   // tokens at which forward_share is taken
constexpr double node_latency_us = 40;  // a layer, forward and backward
constexpr double network_latency_us = 80;
constexpr double bytes_per_element = 2;  // bf16
constexpr std::int64_t any_ranks = 1 << 20;

std::string name_of_model(const ModelShape& shape, const Hardware& hardware,
                          const AnalyticOptions& options) {
  std::string name = shape.name + "_" + hardware.name;
  if (options.tensor_parallel > 1) name += fmt::format("_tp{}", options.tensor_parallel);
  if (options.recompute != Recompute::none) name += fmt::format("_{}", name_of(options.recompute));
  return name;
}

}  // namespace

CostModel analytic_cost(const ModelShape& shape, const Hardware& hardware,
                        const AnalyticOptions& options) {
  require_valid(shape);
  require(hardware.peak_flops > 0, where, "peak_flops is {}, must be above 0", hardware.peak_flops);
  require(hardware.node_gb_per_s > 0, where, "node_gb_per_s is {}, must be above 0",
          hardware.node_gb_per_s);
  require(hardware.network_gb_per_s > 0, where, "network_gb_per_s is {}, must be above 0",
          hardware.network_gb_per_s);
  require(hardware.devices_per_node >= 1 && hardware.devices_per_node < any_ranks, where,
          "devices_per_node is {}, must be an integer from 1 to {}", hardware.devices_per_node,
          any_ranks - 1);
  const std::int64_t tensor_parallel = options.tensor_parallel;
  require(tensor_parallel >= 1 && hardware.devices_per_node % tensor_parallel == 0, where,
          "tensor_parallel is {}, must divide the {} devices of a node", tensor_parallel,
          hardware.devices_per_node);
  require(shape.kv_heads % tensor_parallel == 0, where,
          "tensor_parallel is {}, must divide the {} KV heads", tensor_parallel, shape.kv_heads);

  const bool is_full = options.recompute == Recompute::full;
  const double linear_factor = is_full ? 4 : 3;
  const double attention_factor = is_full ? 4.5 : 3.5;
  const auto linear = static_cast<double>(linear_flops_per_token(shape));
  const auto attention = static_cast<double>(attention_flops_per_square(shape));
  const double rate = efficiency * hardware.peak_flops;
  const auto tp = static_cast<double>(tensor_parallel);
  const auto layers = static_cast<double>(shape.layers);

  CostModel model;
  model.name = name_of_model(shape, hardware, options);
  model.quadratic_ns = 1e9 * attention_factor * attention / rate / tp;
  model.linear_ns = 1e9 * linear_factor * linear / rate / tp;
  model.microbatch_ns = microbatch_ns;
  const double x = linear * share_length;
  const double y = attention * share_length * share_length;
  model.forward_share = (x + y) / (linear_factor * x + attention_factor * y);
  model.activation_bytes_per_token =
      static_cast<double>(activation_bytes_per_token(shape, options.recompute)) / tp;

  const auto q_width = static_cast<double>(shape.heads * shape.head_dim);
  const auto kv_width = static_cast<double>(shape.kv_heads * shape.head_dim);
  // The forward gathers, the backward gathers again and scatters the sums of the gradients.
  const double moves = options.keep_gathered_kv ? 2 : 3;
  ContextCost gather;
  gather.kind = ContextKind::all_gather_kv;
  gather.bytes_per_token = moves * 2 * kv_width * bytes_per_element * layers / tp;
  gather.links = {{.max_ranks = hardware.devices_per_node / tensor_parallel,
                   .gb_per_s = hardware.node_gb_per_s,
                   .latency_us = node_latency_us * layers},
                  {.max_ranks = any_ranks,
                   .gb_per_s = hardware.network_gb_per_s,
                   .latency_us = network_latency_us * layers}};
  ContextCost exchange = gather;
  exchange.kind = ContextKind::all_to_all;
  exchange.bytes_per_token = 2 * (2 * q_width + 2 * kv_width) * bytes_per_element * layers / tp;
  exchange.divides = shape.kv_heads / tensor_parallel;
  model.context = {gather, exchange};
  return model;
}

}  // namespace isochron
