#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "isochron/core/json.h"
#include "isochron/engine/metrics/run_log.h"
#include "isochron/engine/metrics/step_numbers.h"
#include "isochron/engine/train/trace_file.h"
#include "isochron/plan/plan.h"
#include "tests/engine/temporary_folder.h"

namespace isochron {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// Two ranks: 30 + 10 tokens in the order of the input, 20 + 20 balanced.
StepPlan plan_of_four() {
  Batch batch;
  batch.lengths = {20, 10, 5, 5};
  CostModel cost;
  cost.linear_ns = 1000;
  return plan_step(batch, {.ranks = 2, .capacity = 100}, cost);
}

StepResult result_of_two() {
  StepResult result = {.loss = 1.5, .grad_norm = 2, .skipped = false, .ranks = {}};
  result.ranks = {{.predicted_ns = 20'000,
                   .busy_ns = 300'000'000,
                   .step_ns = 400'000'000,
                   .memory = {.host = 1 << 30, .device_allocated = 0, .device_reserved = 0}},
                  {.predicted_ns = 20'000,
                   .busy_ns = 100'000'000,
                   .step_ns = 500'000'000,
                   .memory = {.host = 3 << 29, .device_allocated = 0, .device_reserved = 0}}};
  return result;
}

std::map<std::string, double> by_name(const Numbers& numbers) {
  std::map<std::string, double> map(numbers.begin(), numbers.end());
  EXPECT_EQ(map.size(), numbers.size()) << "a name occurs twice";
  return map;
}

TEST(StepNumbers, ComparePlanAndExecution) {
  const Machine machine = {.model = model_preset("qwen3-0.6b"), .hardware = hardware_preset("cpu")};
  auto numbers = by_name(step_numbers(plan_of_four(), result_of_two(), machine));
  EXPECT_EQ(numbers["train/loss"], 1.5);
  EXPECT_EQ(numbers["train/grad_norm"], 2);
  EXPECT_EQ(numbers["train/global_tokens"], 40);
  EXPECT_EQ(numbers["perf/step_ms"], 500);  // the slower rank
  EXPECT_EQ(numbers["perf/tokens_per_s"], 80);
  EXPECT_EQ(numbers["perf/busy_ms"], 300);
  EXPECT_NEAR(numbers["perf/straggler_share"], 1 - 0.2 / 0.3, 1e-12);
  EXPECT_EQ(numbers["perf/busy_ms/rank_1"], 100);
  EXPECT_EQ(numbers["perf/predicted_ms/rank_0"], 0.02);
  EXPECT_EQ(numbers["perf/predicted_ms"], 0.02);
  EXPECT_EQ(numbers["perf/cpu_memory_used_gb"], 1.5);
  EXPECT_EQ(numbers["global_seqlen/min"], 10);
  EXPECT_EQ(numbers["global_seqlen/max"], 30);
  EXPECT_EQ(numbers["global_seqlen/balanced_max"], 20);
  EXPECT_EQ(numbers["global_cost/balanced_min"], 20'000);
  EXPECT_GT(numbers["train/mfu"], 0);
}

TEST(StepNumbers, LeaveOutWhatIsNotKnown) {
  const auto numbers =
      by_name(step_numbers(plan_of_four(), result_of_two(),
                           {.model = model_preset("qwen3-0.6b"), .hardware = std::nullopt}));
  EXPECT_FALSE(numbers.contains("train/mfu"));
  EXPECT_FALSE(numbers.contains("perf/max_memory_allocated_gb"));
}

struct Said {
  std::string text;
  double seconds = 0;

  RunLog log(const TemporaryFolder& folder, const RunLogOptions& options) {
    return RunLog(
        folder.path(), options, [this](std::string_view more) { text += more; },
        [this] { return std::chrono::duration<double>(seconds); });
  }
};

TEST(RunLog, WritesALinePerStepWithoutWhatIsNotFinite) {
  const TemporaryFolder folder;
  Said said;
  RunLog log = said.log(folder, {.num_steps = 3, .is_terminal = false});
  log.add({{"train/loss", 2.5}, {"train/lr", 0.001}});
  log.add({{"train/loss", 2.25}, {"val/loss", std::numeric_limits<double>::quiet_NaN()}});
  log.write(1);
  log.write(2);
  EXPECT_EQ(folder.read("metrics.jsonl"),
            "{\"step\":1,\"data\":{\"train/loss\":2.25,\"train/lr\":0.001}}\n"
            "{\"step\":2,\"data\":{}}\n");
  EXPECT_EQ(said.text, "step 1/3  loss 2.2500  val loss nan  lr 0.001\nstep 2/3\n");
}

TEST(RunLog, ShowsABarAndTheTimeLeftOnATerminal) {
  const TemporaryFolder folder;
  Said said;
  RunLog log = said.log(folder, {.first_step = 5, .num_steps = 10});
  said.seconds = 60;
  log.write(5);
  EXPECT_EQ(said.text, "[##########          ] step 5/10  5:00 left\n");
  EXPECT_EQ(duration_text(3723), "1:02:03");
  EXPECT_EQ(duration_text(0.4), "0:00");
}

TEST(RunLog, IsSilentWithoutTheConsole) {
  const TemporaryFolder folder;
  Said said;
  RunLog log = said.log(folder, {.num_steps = 3, .console = false});
  log.write(1);
  EXPECT_EQ(said.text, "");
  EXPECT_THAT(folder.read("metrics.jsonl"), StartsWith("{\"step\":1"));
}

TEST(RunLog, CutsTheStepsThatWillRunAgain) {
  const TemporaryFolder folder;
  folder.write("metrics.jsonl",
               "{\"step\":1,\"data\":{}}\n{\"step\":2,\"data\":{}}\nnonsense\n"
               "{\"step\":3,\"data\":{}}\n{\"step\":2,\"da");
  Said said;
  RunLog log = said.log(folder, {.first_step = 3, .num_steps = 3});
  EXPECT_EQ(folder.read("metrics.jsonl"), "{\"step\":1,\"data\":{}}\n{\"step\":2,\"data\":{}}\n");
  log.write(3);
  EXPECT_THAT(folder.read("metrics.jsonl"), testing::EndsWith("\n{\"step\":3,\"data\":{}}\n"));
}

TEST(TraceFile, IsAnOpenArrayOfEventsThatARunContinues) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "rank_1.json";
  const auto begin = std::chrono::system_clock::time_point(std::chrono::seconds(1'700'000'000));
  const std::vector<TracedScope> scopes = {
      {.name = "forward", .slot = 2, .begin_ns = 1'002'003, .end_ns = 2'002'010}};
  {
    TraceFile trace(path, 1, 0);
    for (const std::int64_t step : {1, 2, 3}) trace.write(step, begin, scopes);
  }
  EXPECT_THAT(folder.read("rank_1.json"),
              StartsWith("[\n{\"name\":\"forward\",\"ph\":\"X\",\"ts\":1700000000001002.003,"
                         "\"dur\":1000.007,\"pid\":1,\"tid\":0,"
                         "\"args\":{\"step\":1,\"slot\":2}},\n"));
  TraceFile trace(path, 1, 2);
  trace.write(3, begin, scopes);
  std::string text = folder.read("rank_1.json");
  text.replace(text.rfind(','), 1, "]");
  std::vector<int> steps;
  for (const Json& event : parse_json(text, "test")) steps.push_back(event["args"]["step"]);
  EXPECT_THAT(steps, ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace isochron
