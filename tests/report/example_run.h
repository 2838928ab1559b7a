#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "isochron/step/step_plan.h"

namespace isochron {

// A made-up training run: plans of long-tailed batches, and times as if a machine had run them.
struct ExampleRun {
  std::int32_t ranks = 2;
  std::int32_t steps = 12;
  std::int32_t num_plans = 12;    // written, of the steps from the first on
  std::int32_t num_batches = 24;  // different ones; then they come again
  std::int32_t sequences = 32;    // of a step
  Tokens capacity = 16384;
  Tokens longest = 16384;  // no sequence is longer
  const char* context = "static:1";
  bool is_balanced = true;  // planned; otherwise the input order is dealt to the ranks
  double scale = 1.3;       // measured over predicted
  double noise = 0.03;      // of each measured time, up or down
  std::uint64_t seed = 1;
};

// The plans of the run, one for each of its batches.
[[nodiscard]] std::vector<StepPlan> example_plans(const ExampleRun& run);

// Writes the run folder as a trainer leaves it: config.yaml, metrics.jsonl, plans/, trace/. Every
// measured time is the prediction times scale and noise, played as a step is: a group starts when
// its last member is free, a reduction ends when the last rank has come.
void write_example_run(const std::filesystem::path& folder, const ExampleRun& run);

}  // namespace isochron
