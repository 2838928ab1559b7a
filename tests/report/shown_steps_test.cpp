#include "isochron/report/shown_steps.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace isochron {
namespace {

// A run with `count` traced steps of `num_scopes` each; step 37 is the slowest, 53 the least
// balanced.
RunRecord traced_run(std::int64_t count, std::size_t num_scopes = 1) {
  RunRecord run;
  run.name = "run";
  run.scope_names = {"forward"};
  for (std::int64_t step = 1; step <= count; ++step) {
    run.steps.push_back({.step = step, .plan = {}, .scopes = {}});
    run.steps.back().scopes.resize(num_scopes);
  }
  return run;
}

std::vector<StepFigures> figures_of(const RunRecord& run) {
  std::vector<StepFigures> figures;
  for (const RunStep& step : run.steps) {
    figures.push_back({.step = step.step});
    figures.back().step_ns = step.step == 37 ? 2e9 : 1e9;
    figures.back().measured_imbalance = step.step == 53 ? 1.5 : 1.1;
  }
  return figures;
}

std::vector<ShownStep> shown_of(const std::vector<RunRecord>& runs,
                                const ShownLimits& limits = {}) {
  std::vector<std::vector<StepFigures>> figures;
  for (const RunRecord& run : runs) figures.push_back(figures_of(run));
  return shown_steps(runs, figures, limits);
}

std::string why(const std::vector<ShownStep>& shown, std::int64_t step) {
  const auto found = std::find_if(shown.begin(), shown.end(),
                                  [&](const ShownStep& each) { return each.step == step; });
  return found == shown.end() ? "not shown" : found->why;
}

TEST(ShownSteps, AreAllOfAShortRun) {
  const auto shown = shown_of({traced_run(40)});
  EXPECT_EQ(shown.size(), 40u);
  EXPECT_EQ(why(shown, 1), "first, least balanced");  // of equals the first
  EXPECT_EQ(why(shown, 2), "");
  EXPECT_EQ(why(shown, 37), "slowest");
  EXPECT_EQ(why(shown, 40), "last");
}

TEST(ShownSteps, AreTheExtremesAndAnEvenSpreadOfALongOne) {
  const auto shown = shown_of({traced_run(1000)});
  EXPECT_LE(shown.size(), 40u);
  EXPECT_GE(shown.size(), 36u);
  EXPECT_EQ(why(shown, 1), "first");
  EXPECT_EQ(why(shown, 37), "slowest");
  EXPECT_EQ(why(shown, 53), "least balanced");
  EXPECT_EQ(why(shown, 1000), "last");
  for (std::size_t i = 1; i < shown.size(); ++i) {
    EXPECT_LT(shown[i - 1].step, shown[i].step);
    EXPECT_LE(shown[i].step - shown[i - 1].step, 2 * 1000 / 36);
  }
}

TEST(ShownSteps, AreFewerWhereStepsAreBig) {
  const std::vector<RunRecord> runs = {traced_run(100, 1000)};
  const auto shown = shown_of(runs, {.max_steps = 40, .max_bytes = 400'000});
  EXPECT_GE(shown.size(), 5u);
  EXPECT_LE(shown.size(), 400'000u / 30'000);
  EXPECT_EQ(shown_of(runs, {.max_steps = 40, .max_bytes = 1}).size(), 1u);
}

TEST(ShownSteps, AreTheSameForAllRunsAndNameTheirOwn) {
  RunRecord other = traced_run(60);
  other.name = "other";
  const auto shown = shown_of({traced_run(50), other});
  EXPECT_EQ(why(shown, 37), "slowest of run, slowest of other");
  EXPECT_EQ(why(shown, 60), "last");
}

TEST(ShownSteps, AreNoneWithoutPlansAndTraces) {
  RunRecord run;
  run.steps.push_back({.step = 1, .plan = {}, .scopes = {}});
  EXPECT_TRUE(shown_of({run}).empty());
  EXPECT_TRUE(shown_of({}).empty());
}

}  // namespace
}  // namespace isochron
