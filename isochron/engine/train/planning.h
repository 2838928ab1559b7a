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
// this machine; none for a device that no preset knows. Its node is this host with its
// `local_ranks` ranks, which on a cpu share its cores and its memory.
[[nodiscard]] std::optional<Hardware> find_rank_hardware(const Recipe& recipe,
                                                         std::int32_t local_ranks);

// The costs that engine.cost names: a preset, or a JSON file.
[[nodiscard]] CostModel named_cost(const std::string& name);

// What the planner counts with: engine.cost, or the analytic model with both exchanges of keys and
// values, in the precision of the recipe; on a cpu that is not named over the links that Gloo has
// between processes. Activation bytes are always those of the engine. Throws std::invalid_argument
// if neither engine.cost nor the hardware says anything.
[[nodiscard]] CostModel planning_cost(const Recipe& recipe, const ModelShape& model,
                                      const std::optional<Hardware>& hardware);

// Tokens that a rank may hold of a micro-batch: max_token_len_per_gpu, or without use_dynamic_bsz
// what micro_batch_size_per_gpu rows of `longest` tokens take of each of the ranks that share them.
// With dynamic context parallelism max_seqlen_per_dp_cp_rank, if it is given.
[[nodiscard]] Tokens microbatch_capacity(const Recipe& recipe, Tokens longest);

// How a batch is planned: balanced or not, with a number of rows per micro-batch or without, on
// groups of ranks of one size or of many, padded to a multiple of the `ranks` or not.
[[nodiscard]] PlanOptions plan_options(const Recipe& recipe, std::int32_t ranks);

// Threads of a rank on a cpu: engine.threads, or its share of the cores.
[[nodiscard]] std::int32_t threads_of_rank(const ExecutionOptions& engine,
                                           std::int32_t local_ranks);

// The precision that `auto` means on the device.
[[nodiscard]] Precision resolved_precision(const Recipe& recipe);
[[nodiscard]] std::int64_t element_bytes(const Recipe& recipe);

// All of a text file. Throws std::runtime_error if it is missing.
[[nodiscard]] std::string file_text(const std::string& path);

}  // namespace isochron
