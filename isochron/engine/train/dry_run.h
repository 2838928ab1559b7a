#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "isochron/core/units.h"
#include "isochron/cost/hardware.h"
#include "isochron/cost/model_shape.h"
#include "isochron/engine/train/context_reach.h"
#include "isochron/engine/train/horizon.h"
#include "isochron/engine/train/recipe.h"

namespace isochron {

// Where the memory of one device goes, in bytes.
struct ExpectedMemory {
  std::int64_t weights = 0;
  std::int64_t gradients = 0;    // fp32
  std::int64_t optimizer = 0;    // this rank's share of fp32 weights and moments
  std::int64_t activations = 0;  // of a full micro-batch
  std::int64_t logits = 0;       // of a chunk of the loss
  std::int64_t context = 0;      // keys and values of a group of ranks, under way
  std::int64_t reserve = 0;      // a tenth of the device: allocator, workspaces, collectives

  [[nodiscard]] std::int64_t total() const {
    return weights + gradients + optimizer + activations + logits + context + reserve;
  }
};

// A step as it would be.
struct PlannedStep {
  Nanoseconds predicted_ns = 0;
  double imbalance = 1;
  std::map<std::int64_t, std::int64_t> groups_of_size;  // of ranks; placeholders left out
};

// A run as it would be: all files are opened, the first steps are planned, nothing is loaded.
struct DryRun {
  ModelShape model;
  std::int64_t num_rows = 0;
  std::int64_t num_tokens = 0;
  std::optional<std::int64_t> num_validation_rows;
  Tokens longest = 0;
  Horizon horizon;
  std::int32_t ranks = 1;
  std::string cost_name;
  std::string context;  // of the plans: static:1, dynamic, ..
  Tokens capacity = 0;  // of a micro-batch on each rank
  ContextReach reach;
  std::vector<PlannedStep> first_steps;
  std::optional<Hardware> hardware;
  ExpectedMemory memory;

  // Unknown hardware holds anything.
  [[nodiscard]] bool fits() const { return !hardware || memory.total() <= hardware->hbm_bytes; }
};

// Throws what run_training() would throw over recipe, model folder and data.
[[nodiscard]] DryRun dry_run(const Recipe& recipe, std::int32_t ranks, std::int32_t local_ranks);

// The memory of a rank of `ranks` whose micro-batches have `tokens` tokens on each rank, in groups
// of up to `largest_group` ranks.
[[nodiscard]] ExpectedMemory expected_memory(const Recipe& recipe, const ModelShape& model,
                                             std::int32_t ranks, std::int32_t largest_group,
                                             Tokens tokens,
                                             const std::optional<Hardware>& hardware);

// For people.
[[nodiscard]] std::string to_text(const DryRun& run);

}  // namespace isochron
