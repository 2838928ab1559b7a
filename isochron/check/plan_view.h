#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "isochron/check/violation.h"
#include "isochron/step/step_plan.h"

namespace isochron::check {

// A plan with what its rules look up again and again. Keeps a reference.
class PlanView {
 public:
  explicit PlanView(const StepPlan& plan);

  [[nodiscard]] const StepPlan& plan() const { return plan_; }
  [[nodiscard]] const PlanOptions& options() const { return plan_.options; }
  [[nodiscard]] const ContextMode& mode() const { return mode_; }
  [[nodiscard]] bool is_dynamic() const { return mode_.kind != ContextMode::Kind::fixed; }
  [[nodiscard]] std::int64_t num_ranks() const { return plan_.topology.ranks; }
  [[nodiscard]] std::int64_t num_slots() const {
    return static_cast<std::int64_t>(plan_.microbatches.size());
  }

  // Sequences of the input, and with the padding rows behind them.
  [[nodiscard]] std::int64_t num_real() const {
    return static_cast<std::int64_t>(plan_.batch.lengths.size());
  }
  [[nodiscard]] std::int64_t num_sequences() const { return num_real() + plan_.padding_rows; }
  [[nodiscard]] Tokens length_of(SequenceId id) const;
  [[nodiscard]] Nanoseconds extra_cost_of(SequenceId id) const;

  // Whether what runs has to divide by options.pad_multiple.
  [[nodiscard]] bool must_divide() const {
    return options().pad != Pad::uneven && options().pad_multiple > 1;
  }

  // What moves as a whole: single sequences, or those of a prompt group where groups are kept. A
  // padding row belongs to no group. Numbered by first occurrence.
  [[nodiscard]] std::int64_t unit_of(SequenceId id) const;
  [[nodiscard]] std::string unit_text(std::int64_t unit) const;

  // Tokens that a sequence takes of the capacity of each of `ranks` ranks: cut into 2 chunks per
  // rank, each a multiple of tensor_parallel; on one rank it stays whole.
  [[nodiscard]] Tokens tokens_per_rank(Tokens length, std::int64_t ranks) const;
  [[nodiscard]] Tokens tokens_per_rank(std::span<const SequenceId> ids, std::int64_t ranks) const;
  [[nodiscard]] bool fits(std::span<const SequenceId> ids, std::int64_t ranks) const {
    return tokens_per_rank(ids, ranks) <= plan_.topology.capacity;
  }

  // Whether a sequence stands in `oversized`.
  [[nodiscard]] bool is_oversized(SequenceId id) const;
  [[nodiscard]] bool is_oversized(const ContextGroup& group) const {
    return !group.sequences.empty() && is_oversized(group.sequences.front());
  }

 private:
  const StepPlan& plan_;
  ContextMode mode_;
  std::vector<bool> is_oversized_;  // of the sequences up to the last that is
};

// `slot 3, rank 5`, `slot 3, ranks 4 to 7`.
[[nodiscard]] std::string group_text(std::size_t slot, RankRange ranks);

// The sum of two costs, from 0 to 2^62 each. Rejects one above 2^62.
[[nodiscard]] std::int64_t added(std::int64_t a, std::int64_t b);

// `value` rounded once. Rejects, by the name of the value, what exceeds 2^62.
[[nodiscard]] std::int64_t rounded(double value, std::string_view name);

}  // namespace isochron::check
