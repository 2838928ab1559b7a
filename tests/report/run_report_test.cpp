#include "isochron/report/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "isochron/core/json.h"
#include "isochron/report/run_json.h"
#include "tests/report/example_run.h"

namespace isochron {
namespace {

using testing::HasSubstr;
using testing::Not;

Json document_of(const std::vector<RunRecord>& runs) { return parse_json(run_json(runs), "test"); }

RunRecord planned_run() {
  RunRecord run;
  run.name = "run";
  run.scope_names = {"forward", "reduce"};
  const StepPlan plan = example_plans({.steps = 1})[0];
  run.steps.push_back({.step = 7, .plan = plan, .scopes = {}});
  run.steps[0].scopes = {{.rank = 1, .name = 0, .slot = 0, .begin_ns = 1200, .end_ns = 1500},
                         {.rank = 1, .name = 1, .slot = -1, .begin_ns = 1000, .end_ns = 1600},
                         {.rank = 1, .name = 0, .slot = 2, .begin_ns = 1000, .end_ns = 1100}};
  return run;
}

TEST(RunReportHtml, IsOneFileWithoutLinks) {
  const std::string html = run_report_html(std::vector{planned_run()});
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  for (const char* reference : {"http://", "https://", "src=", "href=", "@import", "url("}) {
    EXPECT_THAT(html, Not(HasSubstr(reference)));
  }
  for (const char* mark :
       {"@style@", "@script@", "@data@", "@main@", "@timeline@", "@style_hash@", "@script_hash@"}) {
    EXPECT_THAT(html, Not(HasSubstr(mark)));
  }
}

TEST(RunReportHtml, ShowsHostileTextAsTextAlone) {
  const std::string hostile = "</script><script>alert(1)</script>\xff";
  RunRecord run = planned_run();
  EXPECT_THAT(run_report_html(std::vector{run}), Not(HasSubstr("alert(1)")));
  run.name = run.config = hostile;
  run.scope_names[0] = hostile;
  run.notes = {hostile};
  run.metrics = {{.name = hostile, .steps = {1}, .values = {1}}};
  const std::string html = run_report_html(std::vector{run, run});
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(html, HasSubstr("\\u003cscript\\u003ealert(1)"));
}

TEST(RunReportHtml, GivesEqualBytesForEqualRuns) {
  EXPECT_EQ(run_report_html(std::vector{planned_run()}),
            run_report_html(std::vector{planned_run()}));
}

TEST(RunJson, ListsScopesInTheOrderInWhichTheyAreDrawn) {
  const Json document = document_of({planned_run()});
  const Json& step = document["runs"][0]["shown"][0];
  ASSERT_EQ(step["scopes"].size(), 2u);
  EXPECT_EQ(step["scopes"][0], Json::array());
  // The reduction holds the forward that begins with it, so it is drawn first.
  EXPECT_EQ(step["scopes"][1], Json({1, -1, 0, 600, 0, 2, 0, 100, 0, 0, 200, 300}));
  EXPECT_EQ(step["planned"]["groups"].size(), step["planned"]["bars"].size() / 2);
  EXPECT_EQ(document["steps"], Json::array({{{"step", 7},
                                             {"why",
                                              "first, last, slowest, least "
                                              "balanced"}}}));
}

TEST(RunJson, HasNullWhereARunHasNothingOfAStep) {
  RunRecord other = planned_run();
  other.name = "other";
  other.steps[0].step = 8;
  const Json document = document_of({planned_run(), other});
  EXPECT_EQ(document["steps"].size(), 2u);
  EXPECT_FALSE(document["runs"][0]["shown"][0].is_null());
  EXPECT_TRUE(document["runs"][0]["shown"][1].is_null());
  EXPECT_TRUE(document["runs"][1]["shown"][0].is_null());
}

TEST(RunJson, SaysWhereAMetricIsNotANumber) {
  RunRecord run;
  run.metrics = {{.name = "train/loss", .steps = {4, 5, 6}, .values = {1, std::nan(""), 2}}};
  const Json document = document_of({run});
  EXPECT_EQ(document["runs"][0]["metrics"][0]["values"], Json({1, nullptr, 2}));
  EXPECT_EQ(document["runs"][0]["notes"],
            Json({"train/loss is not a number in 1 of 3 steps, first in step 5."}));
}

TEST(RunJson, HoldsCurvesOfRanksAsTimesAlone) {
  RunRecord run;
  run.metrics = {{.name = "perf/busy_ms/rank_0", .steps = {1}, .values = {3}}};
  const Json document = document_of({run});
  EXPECT_EQ(document["runs"][0]["metrics"], Json::array());
  EXPECT_EQ(document["runs"][0]["curves"][1]["name"], "compute_ns");
  EXPECT_EQ(document["runs"][0]["curves"][1]["values"], Json({3e6}));
}

TEST(RunJson, StaysSmallForALongRun) {
  RunRecord run;
  for (int name = 0; name < 200; ++name) {
    MetricCurve curve = {
        .name = "metric/" + std::to_string(1000 + name), .steps = {}, .values = {}};
    for (std::int64_t step = 0; step < 20'000; ++step) {
      curve.steps.push_back(step);
      curve.values.push_back(std::sin(static_cast<double>(step * name)));
    }
    run.metrics.push_back(std::move(curve));
  }
  const std::string json = run_json(std::vector{run});
  EXPECT_LT(json.size(), 8'000'000u);
  EXPECT_EQ(parse_json(json, "test")["runs"][0]["notes"],
            Json({"140 more metrics have no curve on this page."}));
}

TEST(RunJson, CountsNotesBeyondAScreenful) {
  RunRecord run;
  run.notes.assign(100, "a note");
  const Json document = document_of({run});
  EXPECT_EQ(document["runs"][0]["notes"].size(), 25u);
  EXPECT_EQ(document["runs"][0]["notes"].back(), "and 76 more of this kind.");
}

TEST(RunJson, TakesNoRunAndAnEmptyOne) {
  EXPECT_EQ(document_of({})["runs"].size(), 0u);
  const Json document = document_of({RunRecord{}});
  EXPECT_EQ(document["steps"], Json::array());
  EXPECT_TRUE(document["runs"][0]["figures"]["final_loss"].is_null());
}

}  // namespace
}  // namespace isochron
