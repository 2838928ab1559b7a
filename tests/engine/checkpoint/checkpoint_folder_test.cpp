#include "isochron/engine/checkpoint/checkpoint_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "isochron/core/random.h"
#include "tests/engine/temporary_folder.h"

namespace isochron {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// A checkpoint of two files of `bytes` each.
void save(const TemporaryFolder& run, std::int64_t step, std::size_t bytes = 1000) {
  begin_checkpoint(run.path(), step);
  const std::filesystem::path temporary = temporary_path(run.path(), step);
  const std::string folder = temporary.filename();
  run.write(folder + "/model/part_00000.safetensors", std::string(bytes, 'm'));
  run.write(folder + "/extra.json", std::string(bytes, 'e'));
  publish_checkpoint(run.path(), {.step = step,
                                  .contents = {Content::model, Content::extra},
                                  .files = {stored_file(temporary, "model/part_00000.safetensors"),
                                            stored_file(temporary, "extra.json")}});
}

TEST(CheckpointFolder, PublishesAWholeCheckpointAndTheTracker) {
  const TemporaryFolder run;
  save(run, 5);
  EXPECT_THAT(names_in(run.path()),
              ElementsAre("global_step_5", "latest_checkpointed_iteration.txt"));
  EXPECT_EQ(run.read("latest_checkpointed_iteration.txt"), "5");
  EXPECT_EQ(find_damage(run.path() / "global_step_5"), std::nullopt);
  EXPECT_EQ(newest_intact(run.path()).path, run.path() / "global_step_5");
}

TEST(CheckpointFolder, HoldsNothingBeforeTheFirst) {
  const TemporaryFolder run;
  EXPECT_EQ(newest_intact(run.path()).path, std::nullopt);
  EXPECT_EQ(newest_intact(run.path() / "missing").path, std::nullopt);
  run.write("global_step_7x/file", "");
  run.write("global_step_007/file", "");
  run.write("global_step_7", "a file");
  EXPECT_EQ(newest_intact(run.path()).path, std::nullopt);
}

TEST(CheckpointFolder, TakesTheNewestIntactOneAndNamesEachItSkips) {
  const TemporaryFolder run;
  for (const std::int64_t step : {8, 9, 10}) save(run, step);
  run.write("global_step_10/extra.json", std::string(999, 'e') + "x");
  run.write("global_step_9/model/part_00000.safetensors", "short");
  const ChosenCheckpoint chosen = newest_intact(run.path());
  EXPECT_EQ(chosen.path, run.path() / "global_step_8");
  ASSERT_EQ(chosen.skipped.size(), 2);
  EXPECT_THAT(chosen.skipped[0], HasSubstr("global_step_10/extra.json] has another checksum"));
  EXPECT_THAT(chosen.skipped[1], HasSubstr("has 5 bytes, must have 1000"));
}

TEST(CheckpointFolder, NeverStartsAnewWhenAllAreDamaged) {
  const TemporaryFolder run;
  save(run, 3);
  std::filesystem::remove(run.path() / "global_step_3/manifest.json");
  try {
    (void)newest_intact(run.path());
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("[checkpoint] none of the 1 in"));
    EXPECT_THAT(error.what(), HasSubstr("manifest.json] cannot be opened"));
  }
}

TEST(CheckpointFolder, KnowsTheNewestByWhenItWasSavedNotByItsStep) {
  const TemporaryFolder run;
  save(run, 100);  // of a run before, in the same folder
  save(run, 10);
  EXPECT_EQ(newest_intact(run.path()).path, run.path() / "global_step_10");
  keep_newest(run.path(), 1);
  EXPECT_THAT(names_in(run.path()),
              ElementsAre("global_step_10", "latest_checkpointed_iteration.txt"));
}

TEST(CheckpointFolder, KeepsAsManyAsAskedWhoeverSavedThem) {
  const TemporaryFolder run;
  for (const std::int64_t step : {1, 2, 3, 4}) save(run, step);
  run.write("global_step_9/of_somebody_else.pt", "");
  keep_newest(run.path(), 2);
  EXPECT_THAT(names_in(run.path()), ElementsAre("global_step_3", "global_step_4", "global_step_9",
                                                "latest_checkpointed_iteration.txt"));
  keep_newest(run.path(), 5);
  EXPECT_EQ(names_in(run.path()).size(), 4);
}

TEST(CheckpointFolder, ReplacesACheckpointOfTheSameStep) {
  const TemporaryFolder run;
  save(run, 4, 10);
  save(run, 4, 20);
  EXPECT_EQ(read_manifest(run.path() / "global_step_4").files[0].bytes, 20);
  EXPECT_EQ(find_damage(run.path() / "global_step_4"), std::nullopt);
  EXPECT_THAT(names_in(run.path()),
              ElementsAre("global_step_4", "latest_checkpointed_iteration.txt"));
}

TEST(CheckpointFolder, RemovesWhatARunLeftThatEndedInTheMiddle) {
  const TemporaryFolder run;
  run.write(".tmp_global_step_3/model/part_00000.safetensors", "half");
  run.write(".deleted_global_step_1/manifest.json", "{}");
  run.write(".other", "stays");
  EXPECT_EQ(newest_intact(run.path()).path, std::nullopt);
  save(run, 4);
  EXPECT_THAT(names_in(run.path()),
              ElementsAre(".other", "global_step_4", "latest_checkpointed_iteration.txt"));
}

// A process that saves again and again, with retention, is killed at a random moment: what lies in
// the folder then always holds an intact checkpoint that is as new as the tracker says or newer.
TEST(CheckpointFolder, SurvivesAKillAtAnyMoment) {
  constexpr int num_kills = 40;
  const TemporaryFolder run;
  save(run, 0);
  std::int64_t last_step = 0;
  for (int kill = 0; kill < num_kills; ++kill) {
    SCOPED_TRACE(kill);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (std::int64_t step = last_step + 1;; ++step) {
        save(run, step, 100'000);
        keep_newest(run.path(), 1);
      }
    }
    Random random(static_cast<std::uint64_t>(kill));
    ::usleep(static_cast<useconds_t>(random.between(500, 30'000)));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    const ChosenCheckpoint chosen = newest_intact(run.path());
    EXPECT_THAT(chosen.skipped, testing::IsEmpty());
    ASSERT_TRUE(chosen.path.has_value());
    const std::int64_t step = *find_step(*chosen.path);
    EXPECT_GE(step, last_step);
    EXPECT_GE(step, std::stoll(run.read("latest_checkpointed_iteration.txt")));
    last_step = step;
  }
  EXPECT_GT(last_step, 0);
}

}  // namespace
}  // namespace isochron
