#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "isochron/core/units.h"
#include "isochron/step/step_plan.h"

namespace isochron {

// A number of a run over its steps.
struct MetricCurve {
  std::string name;
  std::vector<std::int64_t> steps;  // ascending, none twice
  std::vector<double> values;       // of each step; NaN: the run wrote no number
};

// A stretch of time that a rank was measured to spend on one thing.
struct MeasuredScope {
  std::int32_t rank = 0;     // with stages: rank * stages + stage
  std::int32_t name = 0;     // in scope_names of the run
  std::int32_t slot = -1;    // of the plan; -1: outside
  Nanoseconds begin_ns = 0;  // on a clock of the machine; begin <= end
  Nanoseconds end_ns = 0;
};

// What was planned and what was measured of a step, as far as the run left it.
struct RunStep {
  std::int64_t step = 0;
  std::optional<StepPlan> plan;       // one that find_violation() of isochron/check accepts
  std::vector<MeasuredScope> scopes;  // of all ranks, in any order
};

// What a training run left behind.
struct RunRecord {
  std::string name;
  std::string config;                    // its configuration, as text
  std::vector<MetricCurve> metrics;      // ascending by name
  std::vector<std::string> scope_names;  // those of the simulator where it has one: "forward", ..
  std::vector<RunStep> steps;            // ascending by step
  std::vector<std::string> notes;        // what is missing or damaged, each a sentence
};

// One HTML file that shows runs side by side, the first as "before": figures, curves, measured
// against predicted time of every step, and for some tens of steps the planned timeline over the
// measured one. It needs no other file and no network.
//
// Metrics are known by name: train/loss, val/loss, train/lr, train/grad_norm, train/mfu,
// train/global_tokens, perf/tokens_per_s, perf/predicted_ms/rank_R, perf/busy_ms/rank_R and
// global_seqlen/..; each may be missing, and others get a curve of their own. Curves of more than
// some thousand steps keep the smallest and largest value of every stretch. The first, the last,
// the slowest and the least balanced step and an even spread of the others are embedded in full, as
// many as 12 MB hold, at most 40 and at least one.
//
// All text of runs is data: none of it can become markup or script. Equal runs give equal bytes.
// Linear in the record, save for one naive_plan() and one verl_plan() per plan.
[[nodiscard]] std::string run_report_html(std::span<const RunRecord> runs);

}  // namespace isochron
