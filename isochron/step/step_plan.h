#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "isochron/core/batch.h"
#include "isochron/core/ids.h"
#include "isochron/core/status.h"
#include "isochron/cost/cost_model.h"
#include "isochron/step/plan_options.h"
#include "isochron/step/topology.h"

namespace isochron {

// Ranks that run some sequences together, in one slot.
struct ContextGroup {
  RankRange ranks;
  std::vector<SequenceId> sequences;         // ascending; none: a placeholder of one rank
  std::optional<ContextKind> exchange = {};  // given if the cost model offers several

  bool operator==(const ContextGroup&) const = default;
};

using Slot = std::vector<ContextGroup>;  // ascending by rank, disjoint

// Who runs what, with whom, in which order: a step as data, with all that was asked, so that it can
// be checked, simulated, executed and drawn alone. docs/plan.md describes the document.
struct StepPlan {
  Status status = Status::unknown;
  std::string reason;  // why there is no plan, in words; empty otherwise
  Topology topology;
  PlanOptions options;  // resolved
  CostModel cost;
  Batch batch;
  std::int64_t first_sequence = 0;  // of the batch, in the data set it was cut from
  std::int32_t padding_rows = 0;    // synthetic sequences of 2 tokens, with the ids after the last
  Nanoseconds predicted_step_ns = 0;
  Nanoseconds lower_bound_ns = 0;
  double imbalance = 1;                             // busiest rank over mean
  std::vector<std::int64_t> peak_activation_bytes;  // of each rank, on its fullest stage
  std::vector<Slot> microbatches;
  std::vector<SequenceId> oversized;  // over the capacity, each alone (a kept group as a whole)
  std::vector<SequenceId> dropped;    // in no group (Short::drop)

  bool operator==(const StepPlan&) const = default;
};

inline constexpr Tokens padding_row_length = 2;

// Lengths with those of the padding rows behind them; what `sequences` of a group index.
[[nodiscard]] std::vector<Tokens> all_lengths(const StepPlan& plan);

// Tokens that a sequence takes of the capacity of a group of `ranks`: its length rounded up to a
// multiple of 2 * ranks * tensor_parallel, or of tensor_parallel on one rank.
[[nodiscard]] Tokens padded_length(Tokens length, std::int64_t ranks, std::int32_t tensor_parallel);

// The plan as a document of the schema isochron.plan.v1, on one line. Reading it back gives an
// equal plan.
//
// Reading checks the form: all keys, their types and ranges, ids and ranks that exist, groups of
// consecutive ranks, valid options and cost model, the hash. What a plan means is checked by
// find_violation() of isochron/check, which also speaks of a wrong hash; after it the hash needs no
// second look. Throws std::invalid_argument.
enum class PlanHash { required, ignored };
[[nodiscard]] std::string to_json(const StepPlan& plan);
[[nodiscard]] StepPlan step_plan_from_json(std::string_view json_text,
                                           PlanHash hash = PlanHash::required);

// FNV-1a, 64 bits, over the bytes of the document without its `hash` and without the line end.
// Equal plans have equal hashes on every machine.
[[nodiscard]] std::uint64_t plan_hash(const StepPlan& plan);

}  // namespace isochron
