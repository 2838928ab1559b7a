#include "isochron/report/trace.h"

#include <gtest/gtest.h>

#include <set>

#include "isochron/core/json.h"
#include "tests/report/example_plans.h"

namespace isochron {
namespace {

Json trace_of(const StepPlan& plan) { return parse_json(trace_json(plan, simulate(plan)), "test"); }

TEST(Trace, HasAnEventPerSpanInMicroseconds) {
  StepPlan plan;
  plan.topology = {.ranks = 2, .capacity = 100};
  plan.options = resolved({.context = "static:2"}, plan.topology);
  plan.cost = {.name = "tokens", .linear_ns = 300};
  plan.batch.lengths = {5, 9};
  plan.microbatches = {
      {{.ranks = {.first = 0, .size = 2}, .sequences = {SequenceId(0), SequenceId(1)}}}};
  const Json trace = trace_of(plan);
  const Json& event = trace["traceEvents"].back();
  EXPECT_EQ(event["ph"], "X");
  EXPECT_EQ(event["name"], "slot 0 backward x2");
  EXPECT_EQ(event["pid"], 1);
  EXPECT_EQ(event["tid"], 0);
  EXPECT_EQ(event["ts"], 0.7);  // 2100 ns on each rank, a third of it forward
  EXPECT_EQ(event["dur"], 1.4);
  EXPECT_EQ(event["args"]["sequences"], Json({0, 1}));
  EXPECT_EQ(event["args"]["lengths"], Json({5, 9}));
  EXPECT_EQ(event["args"]["group_size"], 2);
  EXPECT_EQ(event["args"]["tokens_per_rank"], 10);  // 8 + 12 padded, over two ranks
}

TEST(Trace, NamesEveryRankAndStage) {
  const StepPlan plan = example_plan({.ranks = 3, .sequences = 10, .stages = 4});
  std::set<std::string> names;
  std::size_t num_spans = 0;
  const Json trace = trace_of(plan);
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") {
      ++num_spans;
    } else {
      names.insert(event["args"]["name"].get<std::string>());
    }
  }
  EXPECT_EQ(num_spans, simulate(plan).spans.size());
  EXPECT_EQ(names, (std::set<std::string>{"rank 0", "rank 1", "rank 2", "stage 0", "stage 1",
                                          "stage 2", "stage 3"}));
}

}  // namespace
}  // namespace isochron
