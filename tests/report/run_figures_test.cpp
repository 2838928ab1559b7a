#include "isochron/report/run_figures.h"

#include <gtest/gtest.h>

#include <cmath>

#include "isochron/plan/baselines.h"
#include "tests/report/example_run.h"

namespace isochron {
namespace {

constexpr std::int32_t forward = 0;
constexpr std::int32_t backward = 1;
constexpr std::int32_t reduce = 2;

// Rank 0 computes from 100 to 700, rank 1 from 100 to 400; both reduce until 800.
RunRecord traced_run() {
  RunRecord run;
  run.scope_names = {"forward", "backward", "reduce"};
  run.steps.push_back({.step = 3, .plan = {}, .scopes = {}});
  run.steps[0].scopes = {
      {.rank = 0, .name = forward, .slot = 0, .begin_ns = 100, .end_ns = 300},
      {.rank = 0, .name = backward, .slot = 0, .begin_ns = 300, .end_ns = 700},
      {.rank = 0, .name = reduce, .slot = -1, .begin_ns = 700, .end_ns = 800},
      {.rank = 1, .name = forward, .slot = 0, .begin_ns = 100, .end_ns = 200},
      {.rank = 1, .name = backward, .slot = 0, .begin_ns = 200, .end_ns = 400},
      {.rank = 1, .name = reduce, .slot = -1, .begin_ns = 400, .end_ns = 800},
  };
  return run;
}

MetricCurve curve(std::string name, std::vector<std::int64_t> steps, std::vector<double> values) {
  return {.name = std::move(name), .steps = std::move(steps), .values = std::move(values)};
}

TEST(StepFigures, AreMeasuredFromTheTrace) {
  const auto figures = step_figures(traced_run());
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_EQ(figures[0].step, 3);
  EXPECT_EQ(figures[0].step_ns, 700);
  EXPECT_EQ(figures[0].compute_ns, 600);
  EXPECT_DOUBLE_EQ(figures[0].measured_imbalance, 600 / 450.0);
  EXPECT_DOUBLE_EQ(figures[0].straggler_share, 300 / 1200.0);
  EXPECT_TRUE(std::isnan(figures[0].predicted_ns));
  EXPECT_TRUE(std::isnan(figures[0].naive_imbalance));
}

TEST(StepFigures, CountARankWithoutWorkAsWaiting) {
  RunRecord run = traced_run();
  run.steps[0].scopes.push_back(
      {.rank = 2, .name = reduce, .slot = -1, .begin_ns = 100, .end_ns = 800});
  const auto figures = step_figures(run);
  EXPECT_DOUBLE_EQ(figures[0].measured_imbalance, 600 / 300.0);
  EXPECT_DOUBLE_EQ(figures[0].straggler_share, 900 / 1800.0);
}

TEST(StepFigures, CountEachRankFromItsOwnStartWhereClocksDiffer) {
  RunRecord run = traced_run();
  for (MeasuredScope& scope : run.steps[0].scopes) {
    if (scope.rank == 0) continue;
    scope.begin_ns += 1'000'000;
    scope.end_ns += 1'000'000;
  }
  EXPECT_FALSE(step_clock(run.steps[0]).is_common);
  EXPECT_TRUE(step_clock(traced_run().steps[0]).is_common);
  EXPECT_EQ(step_figures(run)[0].compute_ns, 600);
  EXPECT_DOUBLE_EQ(step_figures(run)[0].straggler_share, 300 / 1200.0);
}

TEST(StepFigures, ComeFromTheMetricsWhereNothingWasTraced) {
  RunRecord run;
  run.metrics = {curve("perf/busy_ms/rank_0", {1, 2}, {30, 10}),
                 curve("perf/busy_ms/rank_1", {1, 2}, {10, 10}),
                 curve("perf/predicted_ms/rank_0", {1}, {15}),
                 curve("perf/predicted_ms/rank_1", {1}, {5}),
                 curve("perf/tokens_per_s", {1, 2}, {2000, 1000}),
                 curve("train/global_tokens", {1, 2}, {100, 100})};
  const auto figures = step_figures(run);
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_DOUBLE_EQ(figures[0].compute_ns, 30e6);
  EXPECT_DOUBLE_EQ(figures[0].predicted_ns, 15e6);
  EXPECT_DOUBLE_EQ(figures[0].measured_imbalance, 1.5);
  EXPECT_DOUBLE_EQ(figures[0].planned_imbalance, 1.5);
  EXPECT_DOUBLE_EQ(figures[0].straggler_share, 1 - 1 / 1.5);
  EXPECT_DOUBLE_EQ(figures[0].step_ns, 50e6);
  EXPECT_DOUBLE_EQ(figures[1].measured_imbalance, 1);
  EXPECT_TRUE(std::isnan(figures[1].predicted_ns));
  const RunFigures all = run_figures(run, figures);
  EXPECT_EQ(all.ranks, 2);
  EXPECT_DOUBLE_EQ(all.mean_tokens_per_s, 200 / 0.15);  // all tokens over all time
  EXPECT_DOUBLE_EQ(all.measured_imbalance, 1.25);
  EXPECT_DOUBLE_EQ(all.scale, 2);
  EXPECT_DOUBLE_EQ(all.prediction_error, 0);
}

TEST(StepFigures, SetThePlanAgainstTheInputOrderAndVerl) {
  const StepPlan plan = example_plans({.steps = 1})[0];
  const StepPlan naive = naive_plan(plan.batch, plan.topology, plan.cost, plan.options);
  const StepPlan verl = verl_plan(plan.batch, plan.topology, plan.cost, plan.options);
  RunRecord run;
  run.steps.push_back({.step = 1, .plan = plan, .scopes = {}});
  const auto figures = step_figures(run);
  EXPECT_EQ(figures[0].predicted_ns, static_cast<double>(plan.predicted_step_ns));
  EXPECT_EQ(figures[0].planned_imbalance, plan.imbalance);
  EXPECT_EQ(figures[0].naive_ns, static_cast<double>(naive.predicted_step_ns));
  EXPECT_EQ(figures[0].naive_imbalance, naive.imbalance);
  EXPECT_EQ(figures[0].verl_imbalance, verl.imbalance);
  EXPECT_GT(run_figures(run, figures).naive_gain, 1);
}

TEST(RunFigures, MeasureTheErrorAfterTheFactorOfTheRun) {
  std::vector<StepFigures> steps(3);
  const double ratios[] = {1.8, 2, 2.4};
  for (std::size_t i = 0; i < 3; ++i) {
    steps[i].predicted_ns = 100;
    steps[i].compute_ns = 100 * ratios[i];
  }
  const RunFigures figures = run_figures({}, steps);
  EXPECT_DOUBLE_EQ(figures.scale, 2);
  EXPECT_NEAR(figures.prediction_error, (0.1 + 0 + 0.2) / 3, 1e-12);
}

TEST(RunFigures, AreUnknownForAnEmptyRun) {
  const RunFigures figures = run_figures({}, {});
  EXPECT_EQ(figures.num_steps, 0);
  EXPECT_TRUE(std::isnan(figures.mean_tokens_per_s));
  EXPECT_TRUE(std::isnan(figures.final_loss));
  EXPECT_TRUE(std::isnan(figures.prediction_error));
}

}  // namespace
}  // namespace isochron
