#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "isochron/report/run_figures.h"

namespace isochron {

// A step that the page holds in full, and why it was chosen: "first", "last", "slowest of NAME",
// "least balanced of NAME"; empty if it stands for its neighbours.
struct ShownStep {
  std::int64_t step = 0;
  std::string why;
};

struct ShownLimits {
  std::size_t max_steps = 40;
  std::size_t max_bytes = 12'000'000;  // estimated, of all runs together
};

// Steps with a plan or scopes in any of the runs: the first, the last, the slowest and the least
// balanced of each run, and an even spread of the others, ascending. Within the limits, but at
// least one if there is any. `figures` are those of each run.
[[nodiscard]] std::vector<ShownStep> shown_steps(std::span<const RunRecord> runs,
                                                 std::span<const std::vector<StepFigures>> figures,
                                                 const ShownLimits& limits = {});

}  // namespace isochron
