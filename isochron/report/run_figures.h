#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "isochron/report/run_report.h"

namespace isochron {

inline constexpr double unknown_figure = std::numeric_limits<double>::quiet_NaN();

// What is known of a step; NaN: nothing. Imbalance is busiest rank over mean. A baseline that
// breaks an option of the plan is not known.
struct StepFigures {
  std::int64_t step = 0;
  double step_ns = unknown_figure;       // the whole step, as measured
  double compute_ns = unknown_figure;    // measured: first forward to last backward of all ranks
  double predicted_ns = unknown_figure;  // of the same, by the plan
  double naive_ns = unknown_figure;      // predicted for the input order dealt to the ranks
  double verl_ns = unknown_figure;       // predicted for verl's balancing
  double planned_imbalance = unknown_figure;
  double measured_imbalance = unknown_figure;
  double naive_imbalance = unknown_figure;
  double verl_imbalance = unknown_figure;
  double straggler_share = unknown_figure;  // of the ranks' time, spent waiting for the last one
};

// One entry for each step with a metric, a plan or a scope, ascending.
[[nodiscard]] std::vector<StepFigures> step_figures(const RunRecord& run);

// Means over the steps where a figure is known; NaN where it never is.
struct RunFigures {
  std::int64_t num_steps = 0;
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  std::int64_t num_plans = 0;
  std::int64_t num_traced = 0;
  std::int32_t ranks = 0;
  double mean_tokens_per_s = unknown_figure;    // all tokens over all time
  double median_tokens_per_s = unknown_figure;  // of the steps
  double mean_step_ns = unknown_figure;
  double final_loss = unknown_figure;
  double first_loss = unknown_figure;
  double final_val_loss = unknown_figure;
  double planned_imbalance = unknown_figure;
  double measured_imbalance = unknown_figure;
  double naive_imbalance = unknown_figure;
  double verl_imbalance = unknown_figure;
  double naive_gain = unknown_figure;  // predicted time of all steps, naive over planned
  double verl_gain = unknown_figure;
  double straggler_share = unknown_figure;
  double scale = unknown_figure;             // median of measured over predicted compute time
  double prediction_error = unknown_figure;  // mean of |measured / (scale * predicted) - 1|
};

[[nodiscard]] RunFigures run_figures(const RunRecord& run, std::span<const StepFigures> steps);

// The curve of that name; null if the run has none.
[[nodiscard]] const MetricCurve* find_curve(const RunRecord& run, std::string_view name);

// When the ranks of a step worked. Ranks of several machines have several clocks: if no common
// moment lies in all of their spans, each rank is counted from its own first scope.
struct StepClock {
  std::vector<Nanoseconds> origin_of;  // of each rank: what its times are counted from
  bool is_common = true;               // then all origins are equal
};

[[nodiscard]] StepClock step_clock(const RunStep& step);

// Whether scopes of this name are what a plan predicts.
[[nodiscard]] bool is_compute(std::string_view scope_name);

}  // namespace isochron
