#include "apps/isochron/plan_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "isochron/core/json.h"
#include "isochron/plan/plan.h"

namespace isochron {
namespace {

using testing::HasSubstr;

const CostModel token_cost = {.name = "tokens", .linear_ns = 1};

Batch batch_of(std::vector<Tokens> lengths) {
  Batch batch;
  batch.lengths = std::move(lengths);
  return batch;
}

TEST(Distribution, OfTheNumbersToTwentyIsKnown) {
  std::vector<double> values(20);
  std::iota(values.rbegin(), values.rend(), 1.0);
  const Distribution distribution = distribution_of(values).value();
  EXPECT_EQ(distribution.count, 20);
  EXPECT_EQ(distribution.min, 1);
  EXPECT_EQ(distribution.mean, 10.5);
  EXPECT_EQ(distribution.median, 10.5);
  EXPECT_EQ(distribution.p95, 19);  // 19 of 20 do not exceed it
  EXPECT_EQ(distribution.max, 20);
}

TEST(Distribution, OfOneValueIsThatValueAndOfNoneNothing) {
  const Distribution distribution = distribution_of({7}).value();
  EXPECT_EQ(distribution.min, 7);
  EXPECT_EQ(distribution.median, 7);
  EXPECT_EQ(distribution.p95, 7);
  EXPECT_FALSE(distribution_of({}));
}

TEST(DealtPlan, UsesTheSmallestStaticGroupsThatHoldTheLongestSequence) {
  const Topology topology = {.ranks = 8, .capacity = 100};
  const PlanOptions options = {.context = "dynamic", .min_context_size = 4};
  const StepPlan plan = dealt_plan(batch_of({150, 10, 10, 10, 10}), topology, token_cost, options);
  EXPECT_EQ(plan.options.context, "static:2");
  EXPECT_FALSE(plan.options.balance);
  ASSERT_EQ(plan.microbatches.size(), 1u);
  EXPECT_EQ(plan.microbatches[0].size(), 4u);
  EXPECT_EQ(plan.predicted_step_ns, 80);  // 150 and 10 on ranks 0 and 1
  const StepPlan none = dealt_plan(batch_of({801}), topology, token_cost, options);
  EXPECT_TRUE(none.microbatches.empty());
  EXPECT_THAT(none.reason, HasSubstr("sequence 0 of 801 tokens"));
}

TEST(DealtPlan, KeepsAStaticContext) {
  const Topology topology = {.ranks = 4, .capacity = 100};
  const StepPlan plan =
      dealt_plan(batch_of({10, 10}), topology, token_cost, {.context = "static:4"});
  EXPECT_EQ(plan.options.context, "static:4");
  EXPECT_EQ(plan.predicted_step_ns, 6);  // 10 / 4 rounded, twice
}

TEST(PlanFigures, CountGroupsAndTokens) {
  StepPlan plan;
  plan.topology = {.ranks = 3, .capacity = 16};
  plan.options = resolved({.context = "dynamic:any", .pad_multiple = 4}, plan.topology);
  plan.cost = token_cost;
  plan.batch.lengths = {13, 5, 7};
  plan.padding_rows = 1;
  plan.peak_activation_bytes = {1, 3, 2};
  plan.microbatches = {
      {{.ranks = {0, 2}, .sequences = {SequenceId(0)}},
       {.ranks = {2, 1}, .sequences = {SequenceId(1), SequenceId(3)}}},
      {{.ranks = {0, 1}, .sequences = {SequenceId(2)}}, {.ranks = {1, 1}, .sequences = {}}}};
  const PlanFigures figures = figures_of(plan);
  EXPECT_EQ(figures.num_slots, 2);
  EXPECT_EQ(figures.num_placeholders, 1);
  EXPECT_EQ(figures.groups_of_size, (std::map<std::int64_t, std::int64_t>{{1, 2}, {2, 1}}));
  EXPECT_EQ(figures.real_tokens, 25);
  EXPECT_EQ(figures.padded_tokens, 16 + 5 + 2 + 7);
  EXPECT_EQ(figures.room_tokens, 4 * 16);
  EXPECT_EQ(figures.token_fill(), 30.0 / 64);
  EXPECT_EQ(figures.padding_share(), 5.0 / 30);
  EXPECT_EQ(figures.peak_activation_bytes, 3);
  EXPECT_EQ(figures.busy_of_rank, (std::vector<Nanoseconds>{7 + 7, 7, 7}));
}

TEST(PlanSummary, CountsWhatHasAPlanAndNamesWhatHasNone) {
  const Topology topology = {.ranks = 2, .capacity = 10};
  PlanSummary summary;
  EXPECT_TRUE(summary.has_all_plans());
  const Batch even = batch_of({4, 1, 2, 3});  // dealt 4 + 2 and 1 + 3, planned 5 and 5
  summary.add(plan_step(even, topology, token_cost), dealt_plan(even, topology, token_cost, {}));
  StepPlan plan = plan_step(batch_of({11, 1}), topology, token_cost);
  plan.first_sequence = 4;
  summary.add(plan, plan);
  EXPECT_FALSE(summary.has_all_plans());
  const std::string text = summary.text();
  EXPECT_THAT(text, HasSubstr("2 batches: 1 optimal, 1 infeasible\n"));
  EXPECT_THAT(text, HasSubstr("all steps together take 16.67 % less time"));
  EXPECT_THAT(text, HasSubstr("\nbatch 1, sequences 4 to 5: infeasible: sequence 4 of 11 tokens "));

  const Json json = parse_json(summary.json(4), "test");
  EXPECT_EQ(json["schema"], "isochron.plan_summary.v1");
  EXPECT_EQ(json["batch"], 4);
  EXPECT_EQ(json["batches"], 2);
  EXPECT_EQ(json["sequences"], 6);
  EXPECT_EQ(json["status"],
            Json::parse(R"({"optimal": 1, "feasible": 0, "infeasible": 1, "unknown": 0})"));
  EXPECT_EQ(json["imbalance"]["count"], 1);
  EXPECT_EQ(json["imbalance"]["max"], 1.0);
  EXPECT_EQ(json["gap"]["max"], 0.0);
  EXPECT_DOUBLE_EQ(json["time_saved"]["mean"].get<double>(), 1.0 / 6);
  EXPECT_EQ(json["token_fill"]["median"], 0.5);
  EXPECT_EQ(json["slots"]["p95"], 1.0);
}

TEST(PlanSummary, HasNoDistributionOfNothing) {
  PlanSummary summary;
  const StepPlan plan = plan_step(batch_of({11}), {.ranks = 1, .capacity = 10}, token_cost);
  for (int i = 0; i < 10; ++i) summary.add(plan, plan);
  EXPECT_TRUE(parse_json(summary.json(1), "test")["gap"].is_null());
  EXPECT_THAT(summary.text(), HasSubstr("and 2 more without a plan\n"));
}

}  // namespace
}  // namespace isochron
