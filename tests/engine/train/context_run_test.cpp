// `isochron train` with rows that no rank holds alone, with real processes. The rows of TinyRun
// have up to 60 tokens, one in eight of them more than 40.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "isochron/check/check.h"
#include "isochron/step/step_plan.h"
#include "tests/engine/train/tiny_run.h"

namespace isochron {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsSubsetOf;

using More = std::vector<std::string>;

constexpr double tolerance = 1e-4;  // of a loss of 3: fp32 sums in another order, then AdamW

// Dynamic groups of ranks that hold so many tokens each.
More dynamic(int ranks, int tokens, const More& more = {}) {
  More all = {"--nproc", std::to_string(ranks), "engine.dynamic_context_parallel=true",
              "engine.max_seqlen_per_dp_cp_rank=" + std::to_string(tokens)};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// The groups that run something, of all steps; every plan is accepted by the checker.
std::vector<ContextGroup> groups_of(const TinyRun& tiny, const std::string& name) {
  std::vector<ContextGroup> groups;
  for (const std::string& text : tiny.plans(name)) {
    EXPECT_EQ(find_violation(text), std::nullopt) << name;
    for (const Slot& slot : step_plan_from_json(text).microbatches) {
      std::copy_if(slot.begin(), slot.end(), std::back_inserter(groups),
                   [](const ContextGroup& group) { return !group.sequences.empty(); });
    }
  }
  return groups;
}

std::set<std::int64_t> group_sizes(const TinyRun& tiny, const std::string& name) {
  std::set<std::int64_t> sizes;
  for (const ContextGroup& group : groups_of(tiny, name)) sizes.insert(group.ranks.size);
  return sizes;
}

std::set<std::string_view> exchanges(const TinyRun& tiny, const std::string& name) {
  std::set<std::string_view> kinds;
  for (const ContextGroup& group : groups_of(tiny, name)) {
    if (group.exchange) kinds.insert(name_of(*group.exchange));
  }
  return kinds;
}

void expect_equal_losses(const TinyRun& tiny, const std::string& name, const std::string& other) {
  const std::vector<double> losses = tiny.losses(name);
  const std::vector<double> expected = tiny.losses(other);
  ASSERT_EQ(losses.size(), expected.size()) << name;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(losses[i], expected[i], tolerance) << name << ", step " << i + 1;
  }
  EXPECT_NEAR(tiny.metrics(name).back()["data"]["val/loss"],
              tiny.metrics(other).back()["data"]["val/loss"], tolerance)
      << name;
}

TEST(ContextRun, TrainsOnRowsThatNoRankHoldsAloneAsOneRankDoes) {
  const TinyRun tiny;
  const std::string val_files = "data.val_files=" + tiny.folder("val.jsonl").string();
  tiny.run_well("one", {val_files});
  tiny.run_well("two", dynamic(2, 32, {val_files}));
  tiny.run_well("three", dynamic(3, 24, {val_files}));
  tiny.run_well("any", dynamic(3, 32, {val_files, "engine.context_parallel_sizes=any"}));
  tiny.run_well("dealt", dynamic(2, 32, {val_files, "trainer.balance_batch=false"}));
  for (const char* name : {"two", "three", "any", "dealt"}) expect_equal_losses(tiny, name, "one");
  EXPECT_THAT(group_sizes(tiny, "two"), Contains(2));
  EXPECT_THAT(group_sizes(tiny, "three"), Contains(3)) << "60 tokens on ranks of 24";
  EXPECT_THAT(group_sizes(tiny, "any"), Contains(2));
  EXPECT_THAT(group_sizes(tiny, "dealt"), Contains(2));
  EXPECT_THAT(group_sizes(tiny, "two"), IsSubsetOf({1, 2}));
}

TEST(ContextRun, SharesEveryRowWithAStaticSize) {
  const TinyRun tiny;
  const std::string val_files = "data.val_files=" + tiny.folder("val.jsonl").string();
  const std::string pairs = "engine.context_parallel_size=2";
  tiny.run_well("one", {val_files});
  tiny.run_well("two", {"--nproc", "2", pairs, "data.max_token_len_per_gpu=32", val_files});
  tiny.run_well("four", {"--nproc", "4", pairs, "data.use_dynamic_bsz=false",
                         "data.micro_batch_size_per_gpu=3", val_files});
  for (const char* name : {"two", "four"}) {
    expect_equal_losses(tiny, name, "one");
    EXPECT_EQ(group_sizes(tiny, name), std::set<std::int64_t>{2}) << name;
  }
}

TEST(ContextRun, ExchangesWhatThePlanSays) {
  const TinyRun tiny(/*kv_heads=*/2);
  const auto costs = [&](const std::string& name, const std::string& heads_bytes) {
    const std::string links = R"("links": [{"max_ranks": 8, "gb_per_s": 1}]})";
    return "engine.cost=" +
           tiny.files().write(name, R"({"linear_ns": 1000, "microbatch_ns": 1000, "context": [
               {"kind": "all_gather_kv", "bytes_per_token": 8, )" +
                                        links + R"(, {"kind": "all_to_all", "divides": 2,
               "bytes_per_token": )" + heads_bytes +
                                        ", " + links + "]}");
  };
  const std::string val_files = "data.val_files=" + tiny.folder("val.jsonl").string();
  tiny.run_well("one", {val_files});
  tiny.run_well("heads", dynamic(2, 32, {val_files, costs("heads.json", "1")}));
  tiny.run_well("keys", dynamic(2, 32, {val_files, costs("keys.json", "100")}));
  for (const char* name : {"heads", "keys"}) expect_equal_losses(tiny, name, "one");
  EXPECT_THAT(exchanges(tiny, "heads"), testing::ElementsAre("all_to_all"));
  EXPECT_THAT(exchanges(tiny, "keys"), testing::ElementsAre("all_gather_kv"));
}

TEST(ContextRun, ResumesBitEqualOnTheSameNumberOfRanks) {
  const TinyRun tiny;
  tiny.run_well("whole", dynamic(3, 24));
  tiny.run_well("cut", dynamic(3, 24, {"trainer.total_training_steps=3"}));
  tiny.run_well("cut", dynamic(3, 24));
  EXPECT_EQ(tiny.losses("cut"), tiny.losses("whole"));
  EXPECT_EQ(tiny.parts("cut", 6), tiny.parts("whole", 6));
}

TEST(ContextRun, ResumesOnAnotherNumberOfRanks) {
  const TinyRun tiny;
  tiny.run_well("whole", dynamic(2, 32));
  tiny.run_well("cut", dynamic(2, 32, {"trainer.total_training_steps=2"}));
  tiny.run_well("cut", dynamic(3, 24, {"trainer.total_training_steps=4"}));
  tiny.run_well("cut", {});
  const std::vector<double> losses = tiny.losses("cut");
  const std::vector<double> expected = tiny.losses("whole");
  ASSERT_EQ(losses.size(), 6);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(losses[i], expected[i], tolerance) << i;
}

TEST(ContextRun, KeepsOneGroupOpenIfAsked) {
  const TinyRun tiny;
  tiny.run_well("many", dynamic(3, 24));
  tiny.run_well("one", dynamic(3, 24, {"engine.max_context_groups=1"}));
  EXPECT_EQ(tiny.losses("one"), tiny.losses("many"));
  EXPECT_EQ(tiny.parts("one", 6), tiny.parts("many", 6));
}

// DP rank 0 everywhere made every rank a logger and a writer (SPEC G.7, defect 7).
TEST(ContextDefects, Number7OneRankLogsAndWrites) {
  const TinyRun tiny;
  const EndedProgram ended = tiny.run("run", dynamic(2, 32));
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(tiny.steps("run"), testing::ElementsAre(1, 2, 3, 4, 5, 6));
  for (int step = 1; step <= 6; ++step) {
    const std::string line = "step " + std::to_string(step) + "/6";
    const std::size_t first = ended.out.find(line);
    ASSERT_NE(first, std::string::npos) << ended.out;
    EXPECT_EQ(ended.out.find(line, first + 1), std::string::npos) << ended.out;
  }
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(tiny.folder("run"))) {
    names.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(names,
              testing::UnorderedElementsAre("config.yaml", "metrics.jsonl", "plans", "trace",
                                            "global_step_6", "latest_checkpointed_iteration.txt"));
}

TEST(ContextRun, SaysWhatCannotWorkOnceForAllRanks) {
  const TinyRun tiny;
  const auto error = [&](const More& more) {
    const EndedProgram ended = tiny.run("bad", more);
    EXPECT_EQ(ended.exit_code, 2) << ended.err;
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    return ended.err;
  };
  EXPECT_THAT(error(dynamic(2, 16)), HasSubstr("train.jsonl has 5"));
  EXPECT_THAT(error(dynamic(2, 16)), HasSubstr("tokens, must have at most 32: 2 ranks share it, "
                                               "engine.max_seqlen_per_dp_cp_rank = 16"));
  EXPECT_THAT(error({"--nproc", "3", "engine.context_parallel_size=2"}),
              HasSubstr("isochron: [recipe] engine.context_parallel_size is 2, must divide the 3 "
                        "ranks\n"));
  const std::string costs = tiny.files().write(
      "heads.json", R"({"linear_ns": 1, "context": {"kind": "all_to_all", "bytes_per_token": 1,
                        "divides": 2, "links": [{"max_ranks": 8, "gb_per_s": 1}]}})");
  EXPECT_THAT(error(dynamic(2, 32, {"engine.cost=" + costs})),
              HasSubstr("whose all_to_all divides 2, must divide the 1 heads of keys and values"));
  EXPECT_FALSE(std::filesystem::exists(tiny.folder("bad")));
}

TEST(ContextRun, LeavesPlansThatTheProgramAccepts) {
  const TinyRun tiny;
  tiny.run_well("run", dynamic(2, 32, {"trainer.total_training_steps=1"}));
  StartedProgram check({"check", tiny.folder("run/plans/step_1.json").string()},
                       tiny.files().path());
  EXPECT_EQ(check.wait().exit_code, 0);
}

TEST(DryRun, SaysHowFarGroupsReach) {
  const TinyRun tiny;
  const EndedProgram ended = tiny.run("dry", dynamic(3, 24, {"--dry-run"}));
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("context     dynamic: groups of up to 3 ranks of 24 tokens, "
                                   "rows of up to 72\n"));
  EXPECT_THAT(ended.out, HasSubstr(" x 3 ranks\n"));
  EXPECT_THAT(ended.out, HasSubstr("  context  "));
  const EndedProgram alone = tiny.run("dry", {"--dry-run"});
  EXPECT_THAT(alone.out, testing::Not(HasSubstr("groups")));
}

}  // namespace
}  // namespace isochron
