#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "isochron/core/units.h"
#include "isochron/step/step_plan.h"

// Megatron's own micro-batches for dynamic context parallelism, in its order of candidates and with
// its failures, for those who depend on them and as a rival. plan_step() has the better ones.

namespace isochron {

enum class MegatronFailure {
  none,
  assertion,  // AssertionError
  index,      // IndexError: groups pushed beyond the last rank
  endless,    // it would not end
};

struct MegatronOptions {
  std::int32_t ranks = 1;  // DPxCP ranks
  Tokens capacity = 1;     // max_seqlen_per_dp_cp_rank
  std::int32_t min_context_size = 1;
  std::int32_t slot_multiple = 1;  // microbatch_group_size_per_vp_stage
  // The scheduler takes lengths as they are and so ignores that a group of c ranks pads to 2c. If
  // above 0, lengths count as padded for groups of these many devices a rank, as our capacity does.
  std::int32_t pad_for_tensor_parallel = 0;
};

struct MegatronSchedule {
  MegatronFailure failure = MegatronFailure::none;
  std::string error;               // how it fails, in words; empty if it does not
  std::vector<Slot> microbatches;  // sequences of a group in the order in which they joined
};

// DefaultDynamicCPScheduler of the development branch, for lengths of 1 and more; no micro-batches
// for none. A failure is an outcome: a sequence that needs more ranks than there are, groups pushed
// beyond the last rank (some numbers of ranks that are no power of two), and an alignment to
// slot_multiple that finds nothing to split or would not end.
[[nodiscard]] MegatronSchedule megatron_schedule(std::span<const Tokens> lengths,
                                                 const MegatronOptions& options);

}  // namespace isochron
