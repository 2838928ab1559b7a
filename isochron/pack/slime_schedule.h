#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "isochron/core/fields.h"
#include "isochron/core/ids.h"
#include "isochron/core/units.h"
#include "isochron/pack/peer_error.h"

// slime's own micro-batches, answer for answer and error for error, for those who depend on them.
// pack() has the better ones.

namespace isochron {

// What slime's estimate of FLOPs knows of a dense model.
struct SlimeShape {
  std::int64_t hidden_size = 0;
  std::int64_t num_attention_heads = 0;
  std::int64_t kv_channels = 0;       // dimension of a head
  std::int64_t num_query_groups = 0;  // KV heads
  std::int64_t ffn_hidden_size = 0;
  std::int64_t vocab_size = 0;
  std::int64_t num_layers = 0;

  bool operator==(const SlimeShape&) const = default;

  template <class Row>
  static void describe(Row row) {
    using Self = SlimeShape;
    row(Field{"hidden_size", &Self::hidden_size, "width of the model"});
    row(Field{"num_attention_heads", &Self::num_attention_heads, "query heads"});
    row(Field{"kv_channels", &Self::kv_channels, "dimension of a head"});
    row(Field{"num_query_groups", &Self::num_query_groups, "KV heads"});
    row(Field{"ffn_hidden_size", &Self::ffn_hidden_size, "width of the MLP"});
    row(Field{"vocab_size", &Self::vocab_size, "tokens of the vocabulary"});
    row(Field{"num_layers", &Self::num_layers, "layers"});
  }
};

struct SlimeScheduleOptions {
  std::int32_t global_batch_size = 0;  // rollouts of a step; required
  std::int32_t dp_size = 1;
  std::int32_t cp_size = 1;
  std::int32_t vpp_size = 1;
  std::int32_t microbatch_group_size_per_vp_stage = 1;  // counts only if vpp_size > 1
  bool use_dynamic_batch_size = false;
  std::optional<Tokens> max_tokens_per_gpu = {};      // required if dynamic
  std::optional<std::int32_t> micro_batch_size = {};  // required if not
  bool balance_data = false;      // micro-batches onto ranks by FLOPs; else in turn
  bool balance_by_flops = false;  // dynamic: samples into micro-batches by FLOPs, over the cap

  template <class Row>
  static void describe(Row row) {
    using Self = SlimeScheduleOptions;
    row(Field{"global_batch_size", &Self::global_batch_size, "rollouts of a step; required"});
    row(Field{"dp_size", &Self::dp_size, "data-parallel ranks"});
    row(Field{"cp_size", &Self::cp_size, "context-parallel ranks"});
    row(Field{"vpp_size", &Self::vpp_size, "virtual pipeline stages"});
    row(Field{"microbatch_group_size_per_vp_stage", &Self::microbatch_group_size_per_vp_stage,
              "a rank's micro-batches are a multiple of this if vpp_size > 1"});
    row(Field{"use_dynamic_batch_size", &Self::use_dynamic_batch_size,
              "micro-batches by tokens; otherwise of micro_batch_size samples"});
    row(Field{"max_tokens_per_gpu", &Self::max_tokens_per_gpu, "tokens of a micro-batch per rank"});
    row(Field{"micro_batch_size", &Self::micro_batch_size, "samples of a micro-batch"});
    row(Field{"balance_data", &Self::balance_data, "micro-batches onto ranks by FLOPs"});
    row(Field{"balance_by_flops", &Self::balance_by_flops,
              "samples into micro-batches by FLOPs; may exceed max_tokens_per_gpu"});
  }
};

struct SlimeSchedule {
  std::vector<std::vector<SequenceId>> partitions;  // samples of each rank, in the order of running
  // Of each rank, each micro-batch of all steps: positions in the rank's samples, consecutive.
  std::vector<std::vector<std::vector<std::int32_t>>> micro_batch_indices;
  std::vector<std::int32_t> num_microbatches;    // of a rank in each step
  std::vector<std::int32_t> global_batch_sizes;  // rollouts of each step

  bool operator==(const SlimeSchedule&) const = default;
};

// slime's build_dp_schedule. `rollouts[i]` is the rollout of sample i; samples of a rollout stay in
// one step, and rollouts that fill no step are left out. `shape` is needed to balance by FLOPs.
//
// Throws PeerAssertionError with slime's texts where slime raises AssertionError: fewer rollouts
// than a step needs, fewer samples than ranks, micro-batches that cannot be aligned. Throws
// std::invalid_argument if the spans differ in size, a length is out of range, or an option or the
// shape is missing or below 1.
[[nodiscard]] SlimeSchedule slime_schedule(std::span<const Tokens> lengths,
                                           std::span<const std::int64_t> rollouts,
                                           const SlimeShape& shape,
                                           const SlimeScheduleOptions& options);

// slime's first_fit_pack: in input order, each sample to the first bin with room. A sample above
// the cap has a bin of its own. Lengths are from 0 to 2^31 - 1. O(n log n).
[[nodiscard]] std::vector<std::vector<SequenceId>> slime_first_fit_pack(
    std::span<const Tokens> lengths, Tokens max_tokens);

// slime's expand_bins_by_splitting: cuts the bin with the most tokens (of equal ones the last) in
// two until there are `target` bins or each holds one sample. A bin is dealt longest first to the
// half with fewer tokens; the left half takes its place, the right half comes last.
[[nodiscard]] std::vector<std::vector<SequenceId>> slime_expand_bins(
    std::vector<std::vector<SequenceId>> bins, std::int64_t target,
    std::span<const Tokens> lengths);

// slime's calculate_fwd_flops of one sample of a dense model, in double as there. Throws
// std::invalid_argument if the length or a number of the shape is out of range.
[[nodiscard]] double slime_forward_flops(Tokens length, const SlimeShape& shape);

// slime's get_minimum_num_micro_batch_size (pull request 1823): the number of first-fit bins.
[[nodiscard]] std::int32_t slime_min_microbatches(std::span<const Tokens> lengths,
                                                  Tokens max_tokens);

// slime's _get_capped_partitions (pull request 1823): first fit into exactly `count` bins, some
// perhaps empty. Throws PeerAssertionError if a sample fits in none.
[[nodiscard]] std::vector<std::vector<SequenceId>> slime_capped_partitions(
    std::span<const Tokens> lengths, std::int32_t count, Tokens max_tokens);

}  // namespace isochron
