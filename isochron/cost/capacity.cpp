// Memory of one device, after SPEC K.3.
//
// The first of p stages starts p forwards before its first backward has ended, and holds 1/p of the
// layers of each: as much as a whole model holds of one micro-batch. With v chunks per stage it has
// visits of 2 (p - 1) + (v - 1) group + 1 chunks in flight, each 1 / (p v) of the layers: for
// group = p that is 1 + (p - 1) / (p v) micro-batches.

#include "isochron/cost/capacity.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "isochron/core/int128.h"
#include "isochron/core/require.h"
#include "isochron/cost/divided_up.h"

namespace isochron {

namespace {

constexpr std::string_view where = "capacity";
constexpr std::int64_t reserve_share = 10;  // one in ten bytes

// Of the stage that has the embedding or the head besides its layers.
std::int64_t stage_parameters(const ModelShape& shape, const CapacityOptions& options) {
  const std::int64_t all = num_parameters(shape);
  if (options.stages == 1) return all;
  const std::int64_t ends = shape.vocabulary * shape.hidden;
  const std::int64_t layers = all - ends * (shape.tied_head ? 1 : 2);
  if (options.shares.empty()) return divided_up(layers, options.stages) + ends;
  double largest = 0;
  const auto stages = static_cast<std::size_t>(options.stages);
  for (std::size_t stage = 0; stage < stages; ++stage) {
    double share = 0;
    for (std::size_t chunk = stage; chunk < options.shares.size(); chunk += stages) {
      share += options.shares[chunk];
    }
    largest = std::max(largest, share);
  }
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(layers) * largest)) + ends;
}

std::int64_t chunks_in_flight(const CapacityOptions& options) {
  const std::int64_t stages = options.stages;
  if (options.virtual_ == 1) return stages;
  return 2 * (stages - 1) + std::int64_t{options.virtual_ - 1} * options.group + 1;
}

// On one device, of all micro-batches in flight.
std::int64_t bytes_in_flight(const ModelShape& shape, const CapacityOptions& options) {
  if (!options.keeps_activations) {
    return divided_up(activation_bytes_per_token(shape, Recompute::none),
                      shape.layers * options.tensor_parallel);
  }
  // Bytes of a token in all chunks, times the visits in flight: up to 2^36 times 2^41.
  const Int128 visits =
      Int128{activation_bytes_per_token(shape, options.recompute)} * chunks_in_flight(options);
  if (!options.shares.empty()) {
    const double largest = *std::max_element(options.shares.begin(), options.shares.end());
    return static_cast<std::int64_t>(
        std::ceil(static_cast<double>(visits) * largest / options.tensor_parallel));
  }
  const Int128 parts = Int128{options.stages} * options.virtual_ * options.tensor_parallel;
  return static_cast<std::int64_t>((visits + parts - 1) / parts);
}

std::string gb_text(std::int64_t bytes) {
  return fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9);
}

}  // namespace

Capacity auto_capacity(const ModelShape& shape, const Hardware& hardware,
                       const CapacityOptions& options) {
  const auto require_count = [](std::string_view name, std::int64_t value) {
    require(value >= 1 && value <= max_ranks, where, "{} is {}, must be 1 to {}", name, value,
            max_ranks);
  };
  require_count("ranks", options.ranks);
  require_count("tensor_parallel", options.tensor_parallel);
  require_count("stages", options.stages);
  require_count("virtual", options.virtual_);
  require_count("group", options.group);
  require_count("loss_chunk", options.loss_chunk);
  require_layers(shape, options.stages, options.virtual_, where);
  const auto num_chunks =
      static_cast<std::size_t>(options.stages) * static_cast<std::size_t>(options.virtual_);
  require(options.shares.empty() || options.shares.size() == num_chunks, where,
          "shares has {} numbers, must be one for each of the {} chunks", options.shares.size(),
          num_chunks);
  require(hardware.hbm_bytes >= 1, where, "hbm_bytes of {} is {}, must be at least 1",
          hardware.name, hardware.hbm_bytes);

  Capacity capacity;
  capacity.device_bytes = hardware.hbm_bytes;
  capacity.reserve_bytes = divided_up(hardware.hbm_bytes, reserve_share);
  capacity.state_bytes = state_bytes(
      divided_up(stage_parameters(shape, options), options.tensor_parallel), options.ranks);
  capacity.logits_bytes = logits_bytes(shape, options.loss_chunk, options.tensor_parallel);
  capacity.activation_bytes =
      capacity.device_bytes - capacity.reserve_bytes - capacity.state_bytes - capacity.logits_bytes;
  capacity.activation_bytes_per_token = bytes_in_flight(shape, options);
  require(
      capacity.activation_bytes >= capacity.activation_bytes_per_token, where,
      "{} has {}: a reserve of {}, states of {} and logits of {} leave nothing for activations, "
      "must be more ranks, tensor_parallel or stages",
      hardware.name, gb_text(capacity.device_bytes), gb_text(capacity.reserve_bytes),
      gb_text(capacity.state_bytes), gb_text(capacity.logits_bytes));
  capacity.tokens = capacity.activation_bytes / capacity.activation_bytes_per_token;
  return capacity;
}

}  // namespace isochron
