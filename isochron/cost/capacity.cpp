// Memory of one device, after SPEC K.3.
//
// The first of p stages starts p forwards before its first backward has ended, and holds 1/p of the
// layers of each: as much as a whole model holds of one micro-batch. With v chunks per stage it has
// visits of 2 (p - 1) + (v - 1) group + 1 chunks in flight, each 1 / (p v) of the layers: for
// group = p that is 1 + (p - 1) / (p v) micro-batches.

#include "isochron/cost/capacity.h"

#include <string_view>

#include "isochron/core/int128.h"
#include "isochron/core/require.h"
#include "isochron/cost/divided_up.h"

namespace isochron {

namespace {

constexpr std::string_view where = "capacity";
constexpr std::int64_t reserve_share = 10;  // one in ten bytes

// Of the stage that has the embedding or the head besides its layers.
std::int64_t stage_parameters(const ModelShape& shape, std::int64_t stages) {
  const std::int64_t all = num_parameters(shape);
  if (stages == 1) return all;
  const std::int64_t ends = shape.vocabulary * shape.hidden;
  return divided_up(all - ends * (shape.tied_head ? 1 : 2), stages) + ends;
}

std::int64_t chunks_in_flight(const CapacityOptions& options) {
  const std::int64_t stages = options.stages;
  if (options.virtual_ == 1) return stages;
  return 2 * (stages - 1) + std::int64_t{options.virtual_ - 1} * options.group + 1;
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
  require(hardware.hbm_bytes >= 1, where, "hbm_bytes of {} is {}, must be at least 1",
          hardware.name, hardware.hbm_bytes);

  Capacity capacity;
  capacity.device_bytes = hardware.hbm_bytes;
  capacity.reserve_bytes = divided_up(hardware.hbm_bytes, reserve_share);
  capacity.state_bytes = state_bytes(
      divided_up(stage_parameters(shape, options.stages), options.tensor_parallel), options.ranks);
  capacity.logits_bytes = logits_bytes(shape, options.loss_chunk, options.tensor_parallel);
  capacity.activation_bytes =
      capacity.device_bytes - capacity.reserve_bytes - capacity.state_bytes - capacity.logits_bytes;
  // Bytes of a token in all chunks, times the visits in flight: up to 2^36 times 2^41.
  const Int128 parts = Int128{options.stages} * options.virtual_ * options.tensor_parallel;
  const Int128 in_flight =
      Int128{activation_bytes_per_token(shape, options.recompute)} * chunks_in_flight(options);
  capacity.activation_bytes_per_token = static_cast<std::int64_t>((in_flight + parts - 1) / parts);
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
