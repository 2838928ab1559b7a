#include "isochron/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "isochron/check/check.h"
#include "isochron/core/json.h"
#include "isochron/plan/plan.h"
#include "isochron/report/beside_baselines.h"
#include "isochron/report/page_text.h"
#include "isochron/report/report_json.h"
#include "isochron/simulate/simulate.h"
#include "tests/report/example_plans.h"

namespace isochron {
namespace {

using testing::HasSubstr;
using testing::Not;

Json document_of(const std::vector<ReportEntry>& entries) {
  return parse_json(report_json(entries), "test");
}

ReportEntry entry_of(StepPlan plan, std::string violation = "") {
  return {.name = "plan.json",
          .steps = {{.plan = std::move(plan), .violation = std::move(violation)}}};
}

TEST(ExamplePlan, IsValid) {
  for (const ExampleOptions& options :
       {ExampleOptions{}, ExampleOptions{.ranks = 64, .sequences = 500},
        ExampleOptions{.ranks = 3, .sequences = 10, .stages = 4}}) {
    EXPECT_EQ(find_violation(to_json(example_plan(options))).value_or(""), "");
  }
}

TEST(EscapedForScript, LeavesNothingThatEndsAScript) {
  EXPECT_EQ(escaped_for_script("</script><!-- & \xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xa6"),
            "\\u003c/script\\u003e\\u003c!-- \\u0026 \\u2028\\u2029\xe2\x80\xa6");
}

TEST(EscapedForScript, KeepsTheMeaning) {
  const Json text = "<>&\xe2\x80\xa8 a \\u003c";
  EXPECT_EQ(parse_json(escaped_for_script(text.dump()), "test"), text);
}

TEST(ReportHtml, IsOneFileWithoutLinks) {
  const std::string html = report_html(std::vector{entry_of(example_plan({}))});
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  for (const char* reference : {"http://", "https://", "src=", "href=", "@import", "url("}) {
    EXPECT_THAT(html, Not(HasSubstr(reference)));
  }
  for (const char* mark : {"@style@", "@script@", "@data@", "@style_hash@", "@script_hash@"}) {
    EXPECT_THAT(html, Not(HasSubstr(mark)));
  }
}

TEST(ReportHtml, ShowsHostileTextAsTextAlone) {
  const std::string hostile = "</script><script>alert(1)</script>";
  StepPlan plan = example_plan({});
  plan.cost.name = hostile;
  plan.reason = hostile;
  plan.batch.groups.assign(plan.batch.lengths.size(), PromptGroupId(0));
  plan.batch.group_names = {hostile};
  ReportEntry entry = entry_of(plan, hostile);
  const std::size_t harmless =
      report_html(std::vector{entry_of(example_plan({}))}).find("alert(1)");
  EXPECT_EQ(harmless, std::string::npos);
  entry.name = hostile;
  const std::string html = report_html(std::vector{entry});
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(html, HasSubstr("\\u003cscript\\u003ealert(1)"));
}

TEST(ReportHtml, TakesNamesThatAreNotUtf8) {
  ReportEntry entry = entry_of(example_plan({}));
  entry.name = "plan\xff.json";
  EXPECT_THAT(report_html(std::vector{entry}), HasSubstr("plan\xef\xbf\xbd.json"));
}

TEST(ReportHtml, GivesEqualBytesForEqualPlans) {
  const auto make = [] { return report_html(std::vector{entry_of(example_plan({}))}); };
  EXPECT_EQ(make(), make());
}

TEST(ReportJson, HasOneBarPerGroupAndDirection) {
  const StepPlan plan = example_plan({.ranks = 8, .sequences = 96});
  const Timeline timeline = simulate(plan);
  const Json document = document_of({entry_of(plan)});
  const Json& step = document["entries"][0]["steps"][0];
  std::size_t num_groups = 0;
  bool has_wide = false;
  for (const Slot& slot : plan.microbatches) {
    num_groups += slot.size();
    for (const ContextGroup& group : slot) has_wide |= group.ranks.size > 1;
  }
  EXPECT_TRUE(has_wide);
  EXPECT_EQ(step["groups"].size(), num_groups);
  EXPECT_EQ(step["bars"].size(), 2 * num_groups);
  EXPECT_EQ(step["step_ns"], timeline.step_ns);
  EXPECT_EQ(step["busy_ns"], Json(timeline.busy_ns));
  EXPECT_EQ(step["groups"][0]["cost_ns"], group_cost(plan, plan.microbatches[0][0]));
}

TEST(ReportJson, CountsPaddedTokens) {
  StepPlan plan;
  plan.topology = {.ranks = 2, .capacity = 100};
  plan.options = resolved({.context = "static:2"}, plan.topology);
  plan.cost = {.name = "tokens", .linear_ns = 1};
  plan.batch.lengths = {5, 9};
  plan.microbatches = {
      {{.ranks = {.first = 0, .size = 2}, .sequences = {SequenceId(0), SequenceId(1)}}}};
  const Json document = document_of({entry_of(plan)});
  EXPECT_EQ(document["entries"][0]["steps"][0]["groups"][0]["tokens"], 8 + 12);
}

TEST(ReportJson, HasTheOptionsThatAreNotTheDefault) {
  StepPlan plan = example_plan({.ranks = 8, .sequences = 96});
  const auto options_of = [](const StepPlan& each) {
    return document_of({entry_of(each)})["entries"][0]["steps"][0]["options"];
  };
  EXPECT_EQ(options_of(plan), Json::object());
  plan.options.max_sequences = 7;
  plan.options.keep_groups = KeepGroups::rank;
  EXPECT_EQ(options_of(plan).dump(), R"({"max_sequences":7,"keep_groups":"rank"})");
}

TEST(ReportJson, HasNoBarsForAPlanThatCannotBePlayed) {
  StepPlan plan = example_plan({.ranks = 8, .sequences = 96});
  plan.cost.context.clear();  // no group beyond one rank has a cost
  const Json document = document_of({entry_of(plan, "the cost model has no exchange")});
  const Json& step = document["entries"][0]["steps"][0];
  EXPECT_EQ(step["bars"].size(), 0u);
  EXPECT_EQ(step["violation"], "the cost model has no exchange");
  EXPECT_THROW((void)document_of({entry_of(plan)}), std::invalid_argument);
}

TEST(ReportJson, KeepsTheReasonWhereThereIsNoPlan) {
  StepPlan plan;
  plan.topology = {.ranks = 2, .capacity = 10};
  plan.status = Status::infeasible;
  plan.reason = "sequence 0 has 11 tokens, the capacity is 10";
  plan.batch.lengths = {11};
  const Json document = document_of({entry_of(plan)});
  const Json& step = document["entries"][0]["steps"][0];
  EXPECT_EQ(step["status"], "infeasible");
  EXPECT_EQ(step["reason"], plan.reason);
  EXPECT_EQ(step["groups"].size(), 0u);
}

// Groups of three ranks, of which the cost model admits none.
TEST(BesideBaselines, AreInvalidWhereNoneCanBeMade) {
  CostModel cost{.name = "pairs",
                 .linear_ns = 1000,
                 .context = {{.kind = ContextKind::all_to_all,
                              .bytes_per_token = 1,
                              .divides = 2,
                              .links = {{8, 100, 1}}}}};
  Batch batch;
  batch.lengths = {208, 82};
  StepPlan plan = plan_step(batch, {.ranks = 3, .capacity = 1000}, cost, {.context = "static:3"});
  ASSERT_EQ(plan.status, Status::infeasible);
  const auto entries = beside_baselines(entry_of(std::move(plan)));
  ASSERT_EQ(entries.size(), 3U);
  for (const std::size_t i : {0U, 1U}) {
    ASSERT_EQ(entries[i].steps.size(), 1U);
    EXPECT_TRUE(entries[i].steps[0].plan.microbatches.empty());
    EXPECT_THAT(entries[i].steps[0].violation,
                HasSubstr(" raises: [simulate] the cost model has no exchange for ranks"));
  }
}

}  // namespace
}  // namespace isochron
