#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "isochron/cost/cost_model.h"
#include "isochron/cost/hardware.h"
#include "isochron/cost/model_shape.h"
#include "isochron/engine/train/recipe.h"
#include "isochron/step/plan_options.h"

namespace isochron {

// What a rank runs on: the preset that engine.hardware names, or the one that fits the device of
// this machine; none for a device that no preset knows. On a cpu its memory is that of this host,
// shared by `local_ranks`.
[[nodiscard]] std::optional<Hardware> find_rank_hardware(const Recipe& recipe,
                                                         std::int32_t local_ranks);

// What the planner counts with: engine.cost, or the analytic model. Throws std::invalid_argument if
// neither engine.cost nor the hardware says anything.
[[nodiscard]] CostModel planning_cost(const Recipe& recipe, const ModelShape& model,
                                      const std::optional<Hardware>& hardware);

// Tokens that a micro-batch may hold: max_token_len_per_gpu, or without use_dynamic_bsz what
// micro_batch_size_per_gpu rows of `longest` tokens take.
[[nodiscard]] Tokens microbatch_capacity(const DataOptions& data, Tokens longest);

// How a batch is planned: balanced or not, with a number of rows per micro-batch or without, padded
// to a multiple of the ranks or not.
[[nodiscard]] PlanOptions plan_options(const Recipe& recipe, std::int32_t ranks);

// The precision that `auto` means on the device.
[[nodiscard]] Precision resolved_precision(const Recipe& recipe);

// All of a text file. Throws std::runtime_error if it is missing.
[[nodiscard]] std::string file_text(const std::string& path);

}  // namespace isochron
