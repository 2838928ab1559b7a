#pragma once

#include <cstdint>
#include <vector>

#include "isochron/core/units.h"
#include "isochron/cost/hardware.h"
#include "isochron/cost/memory.h"
#include "isochron/cost/model_shape.h"

namespace isochron {

// What of a model is on a device, and how often.
struct CapacityOptions {
  std::int64_t ranks = 1;            // share the optimizer
  std::int32_t tensor_parallel = 1;  // devices of a rank, on every stage
  std::int32_t stages = 1;
  std::int32_t virtual_ = 1;        // chunks per stage
  std::int32_t group = 1;           // slots that a chunk runs before the next, with virtual stages
  std::vector<double> shares = {};  // of each chunk in the layers; empty: equal
  Recompute recompute = Recompute::none;
  bool keeps_activations = true;  // for a backward; a forward pass has those of a layer at a time
  Tokens loss_chunk = 2048;       // tokens whose logits exist at a time
};

// Where the memory of the fullest device goes, in bytes, and the tokens that the rest is for.
struct Capacity {
  Tokens tokens = 0;                            // of a micro-batch, on each rank
  std::int64_t device_bytes = 0;                // all there is; the next four are parts of it
  std::int64_t reserve_bytes = 0;               // a tenth: the allocator, workspaces, collectives
  std::int64_t state_bytes = 0;                 // weights, gradients, optimizer
  std::int64_t logits_bytes = 0;                // of one chunk of the loss
  std::int64_t activation_bytes = 0;            // what is left
  std::int64_t activation_bytes_per_token = 0;  // of the capacity: all micro-batches in flight

  bool operator==(const Capacity&) const = default;
};

// The capacity with which a training step fits into the memory of a device, however the slots are
// filled: what device memory leaves beside states and the logits of a chunk, over the activations
// of a token. In a pipeline the stage with the embedding or the head is counted, and the first one,
// which has the most micro-batches in flight, each at the full capacity; with unequal shares as if
// that were the largest stage and all its chunks the largest one. A forward pass has the states of
// training beside it.
//
// Throws std::invalid_argument for an invalid shape, a count or a chunk below 1, more chunks than
// layers, shares that are not one for each chunk, and memory that leaves nothing for a token.
[[nodiscard]] Capacity auto_capacity(const ModelShape& shape, const Hardware& hardware,
                                     const CapacityOptions& options = {});

}  // namespace isochron
