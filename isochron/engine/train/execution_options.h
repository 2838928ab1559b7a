#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "isochron/core/enum_names.h"
#include "isochron/core/fields.h"
#include "isochron/core/units.h"
#include "isochron/cost/memory.h"

namespace isochron {

// Of weights and computation.
enum class Precision {
  automatic,  // bfloat16 on cuda, float32 on cpu
  float32,
  bfloat16,
};

template <>
struct EnumNames<Precision> {
  static constexpr std::array<std::pair<Precision, std::string_view>, 5> values = {
      {{Precision::automatic, "auto"},
       {Precision::float32, "float32"},
       {Precision::float32, "fp32"},
       {Precision::bfloat16, "bfloat16"},
       {Precision::bfloat16, "bf16"}}};
};

// How a step is executed.
struct ExecutionOptions {
  std::int64_t seed = 42;
  Precision dtype = Precision::automatic;
  bool full_determinism = false;
  Recompute recompute = Recompute::none;
  Tokens loss_chunk = 2048;
  std::int32_t threads = 0;
  double collective_timeout_s = 600;
  std::optional<std::string> cost = {};
  std::optional<std::string> hardware = {};
  std::int32_t context_parallel_size = 1;
  bool dynamic_context_parallel = false;
  std::optional<Tokens> max_seqlen_per_dp_cp_rank = {};
  std::string context_parallel_sizes = "dynamic";
  std::int32_t max_context_groups = 64;
  std::int32_t pipeline_model_parallel_size = 1;
  std::optional<std::int32_t> virtual_pipeline_model_parallel_size = {};
  std::optional<std::int32_t> microbatch_group_size_per_vp_stage = {};

  template <class Row>
  static void describe(Row row) {
    using Self = ExecutionOptions;
    row(Field{"engine.seed", &Self::seed, "of initial weights and dropout"});
    row(Field{"engine.dtype", &Self::dtype,
              "of weights and computation; auto: bfloat16 on cuda, float32 on cpu"});
    row(Field{"engine.full_determinism", &Self::full_determinism,
              "deterministic kernels alone: bit-equal runs on cuda too"});
    row(Field{"engine.recompute", &Self::recompute,
              "what the backward computes again instead of keeping it"});
    row(Field{"engine.loss_chunk", &Self::loss_chunk, "tokens whose logits exist at a time"});
    row(Field{"engine.threads", &Self::threads,
              "of a rank on the cpu; 0: the cores of the host shared by its ranks"});
    row(Field{"engine.collective_timeout_s", &Self::collective_timeout_s,
              "seconds after which a rank that is late ends the run"});
    row(Field{"engine.cost", &Self::cost,
              "what the planner counts with: a preset or a JSON file; null: the analytic model of "
              "model and hardware"});
    row(Field{"engine.hardware", &Self::hardware,
              "the device of a rank, for costs, MFU and memory: a preset; null: found"});
    row(Field{"engine.context_parallel_size", &Self::context_parallel_size,
              "ranks that share every sequence; divides the ranks"});
    row(Field{"engine.dynamic_context_parallel", &Self::dynamic_context_parallel,
              "as many ranks per sequence as its length takes"});
    row(Field{"engine.max_seqlen_per_dp_cp_rank", &Self::max_seqlen_per_dp_cp_rank,
              "dynamic: tokens of a micro-batch on each rank; null: data.max_token_len_per_gpu"});
    row(Field{"engine.context_parallel_sizes", &Self::context_parallel_sizes,
              "dynamic: aligned groups, or any consecutive ranks", "dynamic|any"});
    row(Field{"engine.max_context_groups", &Self::max_context_groups,
              "groups of several ranks that a rank keeps open"});
    row(Field{"engine.pipeline_model_parallel_size", &Self::pipeline_model_parallel_size,
              "stages of the pipeline"});
    row(Field{"engine.virtual_pipeline_model_parallel_size",
              &Self::virtual_pipeline_model_parallel_size, "chunks of layers per stage"});
    row(Field{"engine.microbatch_group_size_per_vp_stage",
              &Self::microbatch_group_size_per_vp_stage,
              "slots that a chunk runs before the next; null: the number of stages"});
  }
};

}  // namespace isochron
