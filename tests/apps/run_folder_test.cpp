#include "apps/isochron/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/report/example_run.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// An empty folder of the running test.
fs::path test_folder() {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  const fs::path folder = fs::path(testing::TempDir()) / "isochron_run_folder" / test->name();
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

TEST(ReadRunFolder, TakesWhatARunWrote) {
  const fs::path folder = test_folder() / "first";
  write_example_run(folder, {.ranks = 3, .steps = 5, .num_plans = 4});
  const RunRecord run = read_run_folder(folder.string());
  EXPECT_EQ(run.name, "first");
  EXPECT_EQ(read_run_folder(folder.string() + "/").name, "first");
  EXPECT_THAT(run.config, HasSubstr("balance_batch: true"));
  EXPECT_THAT(run.notes, IsEmpty());
  ASSERT_EQ(run.steps.size(), 4u);
  const StepPlan planned = example_plans({.ranks = 3, .steps = 5, .num_plans = 4})[1];
  EXPECT_EQ(run.steps[1].step, 2);
  EXPECT_EQ(run.steps[1].plan, planned);
  std::size_t num_groups = 0;
  for (const Slot& slot : planned.microbatches) num_groups += slot.size();
  EXPECT_EQ(run.steps[1].scopes.size(), 2 * num_groups + 2 * 3);
  EXPECT_THAT(run.scope_names, ElementsAre("forward", "backward", "reduce", "optimizer"));
}

TEST(ReadRunFolder, SaysWhatIsMissing) {
  const fs::path folder = test_folder();
  std::ofstream(folder / "config.yaml") << "a: 1\n";
  EXPECT_THAT(read_run_folder(folder.string()).notes,
              ElementsAre("metrics.jsonl is missing: there are no curves.",
                          "plans/ has no step_N.json: nothing can be compared with a plan.",
                          "trace/ has no rank_R.json: no timeline was measured."));
}

TEST(ReadRunFolder, RejectsAFolderThatIsNoRun) {
  const fs::path folder = test_folder();
  EXPECT_EQ(message_of([&] { (void)read_run_folder(folder.string()); }),
            "[report] the folder \"" + folder.string() +
                "\" is no run: it must hold config.yaml, metrics.jsonl, plans or trace");
}

TEST(ReadRunFolder, NamesPlansThatCannotBeUsedAndReadsTheOthers) {
  const fs::path folder = test_folder();
  write_example_run(folder, {.steps = 8, .num_plans = 8});
  std::ofstream(folder / "plans" / "step_2.json") << "{";
  StepPlan broken = example_plans({.steps = 8, .num_plans = 8})[2];
  broken.microbatches[0][0].sequences.clear();
  std::ofstream(folder / "plans" / "step_3.json") << to_json(broken);
  for (const char* name : {"step_4.json", "step_5.json"}) std::ofstream(folder / "plans" / name);
  for (const char* name : {"step_x.json", "step_-1.json", "notes.txt"}) {
    std::ofstream(folder / "plans" / name) << "not looked at";
  }
  const RunRecord run = read_run_folder(folder.string());
  EXPECT_THAT(run.notes, Contains(HasSubstr("plans/step_2.json cannot be used: ")));
  EXPECT_THAT(run.notes, Contains(HasSubstr("plans/step_3.json is invalid: ")));
  EXPECT_THAT(run.notes, Contains("1 more plans cannot be used."));
  ASSERT_EQ(run.steps.size(), 8u);  // the traces are there
  EXPECT_TRUE(run.steps[0].plan.has_value());
  EXPECT_FALSE(run.steps[2].plan.has_value());
  EXPECT_TRUE(run.steps[7].plan.has_value());
}

TEST(ReadRunFolder, ReadsAnEvenSpreadOfTooManyPlans) {
  const fs::path folder = test_folder();
  write_example_run(folder, {.steps = 20, .num_plans = 20, .num_batches = 2});
  const RunRecord run = read_run_folder(folder.string(), 5);
  ASSERT_EQ(run.steps.size(), 5u);
  EXPECT_EQ(run.steps.front().step, 1);
  EXPECT_EQ(run.steps.back().step, 20);
  for (const RunStep& step : run.steps) EXPECT_FALSE(step.scopes.empty());
  EXPECT_THAT(run.notes, Contains("5 of 20 plans were read, spread evenly."));
}

TEST(ReadRunFolder, ReadsTracesWithoutPlansAndMetrics) {
  const fs::path folder = test_folder();
  write_example_run(folder, {.steps = 6, .num_plans = 6});
  fs::remove_all(folder / "plans");
  EXPECT_EQ(read_run_folder(folder.string()).steps.size(), 6u);
  fs::remove(folder / "metrics.jsonl");
  EXPECT_EQ(read_run_folder(folder.string()).steps.size(), 6u);
  EXPECT_EQ(read_run_folder(folder.string(), 4).steps.size(), 4u);
}

TEST(ReadRunFolder, SaysThatARankIsMissing) {
  const fs::path folder = test_folder();
  write_example_run(folder, {.ranks = 3, .steps = 2, .num_plans = 2});
  fs::remove(folder / "trace" / "rank_1.json");
  EXPECT_THAT(read_run_folder(folder.string()).notes, ElementsAre("trace/ holds 2 of 3 ranks."));
}

TEST(ReadRunFolders, CountsTheBytesThatItReads) {
  const fs::path folder = test_folder();
  write_example_run(folder, {.steps = 3, .num_plans = 3});
  std::size_t bytes = 0;
  (void)read_run_folders({folder.string()}, [&](std::size_t more) { bytes += more; });
  EXPECT_EQ(static_cast<std::int64_t>(bytes), run_bytes({folder.string()}));
}

TEST(ReadRunFolders, CallsRunsOfTheSameNameByTheirPath) {
  const fs::path folder = test_folder();
  for (const char* name : {"a/run", "b/run", "b/other"}) {
    write_example_run(folder / name, {.steps = 1, .num_plans = 1});
  }
  const auto runs = read_run_folders(
      {(folder / "a/run").string(), (folder / "b/run").string(), (folder / "b/other").string()});
  EXPECT_EQ(runs[0].name, (folder / "a/run").string());
  EXPECT_EQ(runs[1].name, (folder / "b/run").string());
  EXPECT_EQ(runs[2].name, "other");
}

}  // namespace
}  // namespace isochron
