#pragma once

#include <cstdint>
#include <memory>

#include "isochron/plan/problem.h"

// Questions beside the one that is asked: what answers them answers that one too, or nearly.

namespace isochron {

// A question about the same work. What stands alone there does here.
[[nodiscard]] std::unique_ptr<Problem> with_same_work(const Problem& problem,
                                                      const Topology& topology,
                                                      const CostModel& model,
                                                      const PlanOptions& options);

// The same question with a purse of its own, so that it gets what it would get if it were all that
// is asked.
[[nodiscard]] std::unique_ptr<Problem> asked_alone(const Problem& problem);

// The same question under other options.
[[nodiscard]] std::unique_ptr<Problem> with_options(const Problem& problem,
                                                    const PlanOptions& options);

// With aligned groups, where any size is asked for, as if they were asked alone; none if they do
// not hold every bundle.
[[nodiscard]] std::unique_ptr<Problem> find_aligned(const Problem& problem);

// Without the smallest groups, where micro-batches cost so much that larger ones, which pack their
// tokens better, may be worth the traffic; none elsewhere.
[[nodiscard]] std::unique_ptr<Problem> find_coarser(const Problem& problem);

// On ranks that are equally fast.
[[nodiscard]] std::unique_ptr<Problem> without_speeds(const Problem& problem);

// With one sequence in every micro-batch.
[[nodiscard]] std::unique_ptr<Problem> with_single_sequences(const Problem& problem);

// Whether groups of one size hold everything.
[[nodiscard]] bool holds_all(const Problem& problem, std::int32_t size);

// Whether every bundle fits some size.
[[nodiscard]] bool holds_every_bundle(const Problem& problem);

// Powers of two alone: they nest, whatever else divides the ranks. None where they are all there
// is, or do not hold everything.
[[nodiscard]] std::unique_ptr<Problem> find_powers(const Problem& problem);

// On groups of one size, which hold everything; none if the costs do not admit them.
[[nodiscard]] std::unique_ptr<Problem> with_static_size(const Problem& problem, std::int32_t size);

}  // namespace isochron
