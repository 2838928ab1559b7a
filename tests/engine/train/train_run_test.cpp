// `isochron train` from outside, with real processes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "isochron/check/check.h"
#include "isochron/core/random.h"
#include "isochron/engine/checkpoint/manifest.h"
#include "isochron/engine/model/hf_folder.h"
#include "isochron/engine/train/recipe.h"
#include "tests/engine/train/tiny_run.h"

namespace isochron {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

using More = std::vector<std::string>;

std::vector<std::int64_t> up_to(std::int64_t last) {
  std::vector<std::int64_t> steps(static_cast<std::size_t>(last));
  std::iota(steps.begin(), steps.end(), 1);
  return steps;
}

// Waits until metrics.jsonl has so many lines.
void await_steps(const TinyRun& tiny, const std::string& name, std::size_t count) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(100);
  while (tiny.metrics(name).size() < count && std::chrono::steady_clock::now() < deadline) {
    ::usleep(10'000);
  }
}

TEST(TrainRun, LeavesACompleteRunFolder) {
  const TinyRun tiny;
  tiny.run_well("run",
                {"--nproc", "2", "trainer.total_epochs=3", "trainer.total_training_steps=null",
                 "trainer.save_freq=after_each_epoch", "trainer.max_ckpt_to_keep=2",
                 "data.val_files=" + tiny.folder("val.jsonl").string(), "trainer.test_freq=4"});
  EXPECT_EQ(tiny.steps("run"), up_to(18));  // 6 whole batches of 50 rows, three times
  const std::vector<double> losses = tiny.losses("run");
  EXPECT_LT(losses.back(), losses.front() / 2);
  for (const Json& line : tiny.metrics("run")) {
    const Json& data = line["data"];
    for (const char* name :
         {"train/grad_norm", "train/lr", "train/global_tokens", "train/total_tokens(B)",
          "train/mfu", "perf/cpu_memory_used_gb", "perf/tokens_per_s", "perf/predicted_ms/rank_1",
          "perf/busy_ms/rank_1", "perf/straggler_share", "global_seqlen/balanced_max",
          "global_cost/mean"}) {
      EXPECT_TRUE(data.contains(name)) << name;
    }
    const std::int64_t step = line["step"];
    EXPECT_EQ(data.contains("val/loss"), step % 4 == 0 || step == 18) << step;
    const std::string plan = tiny.files().read("run/plans/step_" + std::to_string(step) + ".json");
    EXPECT_EQ(find_violation(plan), std::nullopt);
  }
  EXPECT_FALSE(std::filesystem::exists(tiny.folder("run/global_step_6")));
  EXPECT_EQ(find_damage(tiny.folder("run/global_step_12")), std::nullopt);
  EXPECT_EQ(find_damage(tiny.folder("run/global_step_18")), std::nullopt);
  EXPECT_EQ(tiny.files().read("run/latest_checkpointed_iteration.txt"), "18");
  for (const char* trace : {"run/trace/rank_0.json", "run/trace/rank_1.json"}) {
    EXPECT_THAT(tiny.files().read(trace), HasSubstr("\"name\":\"backward\"")) << trace;
  }
  const std::string written = tiny.files().read("run/config.yaml");
  EXPECT_EQ(to_yaml(read_recipe(written)), written);
}

TEST(TrainRun, GivesTheSameNumbersOnEveryNumberOfRanksAndWithoutBalance) {
  const TinyRun tiny;
  tiny.run_well("one", {});
  tiny.run_well("two", {"--nproc", "2"});
  tiny.run_well("dealt", {"--nproc", "3", "trainer.balance_batch=false"});
  tiny.run_well("fixed",
                {"--nproc", "2", "data.use_dynamic_bsz=false", "data.micro_batch_size_per_gpu=3"});
  tiny.run_well("padded", {"--nproc", "3", "data.pad=rows"});  // 8 rows and one
  EXPECT_EQ(parse_json(tiny.files().read("padded/plans/step_1.json"), "plan")["padding_rows"], 1);
  const std::vector<double> expected = tiny.losses("one");
  for (const char* name : {"two", "dealt", "fixed", "padded"}) {
    const std::vector<double> losses = tiny.losses(name);
    ASSERT_EQ(losses.size(), 6);
    for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(losses[i], expected[i], 1e-4) << name;
    EXPECT_EQ(tiny.metrics(name).back()["data"]["train/total_tokens(B)"],
              tiny.metrics("one").back()["data"]["train/total_tokens(B)"]);
  }
}

TEST(TrainRun, ResumesBitEqualOnTheSameNumberOfRanks) {
  const TinyRun tiny;
  const More adam = {"--nproc", "2"};
  tiny.run_well("whole", adam);
  tiny.run_well("cut", {"--nproc", "2", "trainer.total_training_steps=3"});
  tiny.run_well("cut", adam);
  EXPECT_EQ(tiny.steps("cut"), up_to(6));
  EXPECT_EQ(tiny.losses("cut"), tiny.losses("whole"));
  EXPECT_EQ(tiny.parts("cut", 6), tiny.parts("whole", 6));
  EXPECT_EQ(tiny.metrics("cut").back()["data"]["train/total_tokens(B)"],
            tiny.metrics("whole").back()["data"]["train/total_tokens(B)"]);
}

TEST(TrainRun, DropsTheSameInputsOnEveryNumberOfRanksAndAfterAResume) {
  const TinyRun tiny;
  const std::string dropout = "model.dropout=0.1";
  tiny.run_well("without", {"--nproc", "2"});
  tiny.run_well("whole", {"--nproc", "2", dropout});
  tiny.run_well("alone", {dropout, "data.max_token_len_per_gpu=200"});
  tiny.run_well("cut", {"--nproc", "2", dropout, "trainer.total_training_steps=3"});
  tiny.run_well("cut", {"--nproc", "2", dropout});
  tiny.run_well("reseeded", {"--nproc", "2", dropout, "engine.seed=43"});
  const std::vector<double> expected = tiny.losses("whole");
  EXPECT_EQ(tiny.losses("cut"), expected);
  EXPECT_EQ(tiny.parts("cut", 6), tiny.parts("whole", 6));
  const std::vector<double> alone = tiny.losses("alone");
  ASSERT_EQ(alone.size(), 6);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(alone[i], expected[i], 1e-4);
  EXPECT_GT(std::abs(tiny.losses("without")[0] - expected[0]), 1e-3);
  EXPECT_GT(std::abs(tiny.losses("reseeded")[0] - expected[0]), 1e-3);
}

TEST(TrainRun, ResumesOnAnotherNumberOfRanks) {
  const TinyRun tiny;
  tiny.run_well("whole", {"--nproc", "2"});
  tiny.run_well("cut", {"--nproc", "2", "trainer.total_training_steps=3"});
  tiny.run_well("cut", {"--nproc", "3", "trainer.total_training_steps=5"});
  tiny.run_well("cut", {});
  const std::vector<double> expected = tiny.losses("whole");
  const std::vector<double> losses = tiny.losses("cut");
  ASSERT_EQ(losses.size(), 6);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(losses[i], expected[i], 1e-4) << i;
}

TEST(TrainRun, SavesInTheBackgroundWhatItSavesOtherwise) {
  const TinyRun tiny;
  const std::string contents = "checkpoint.save_contents=[model,optimizer,extra,hf_model]";
  tiny.run_well("plain", {"--nproc", "2", "trainer.save_freq=2", contents});
  tiny.run_well("async", {"--nproc", "2", "trainer.save_freq=2", contents,
                          "checkpoint.async_save=true", "trainer.max_ckpt_to_keep=3"});
  for (const std::int64_t step : {2, 4, 6}) {
    EXPECT_EQ(tiny.parts("async", step), tiny.parts("plain", step)) << step;
  }
}

TEST(TrainRun, SavesTheSameStepOnEveryRankWhenAskedToStop) {
  const TinyRun tiny;
  const More endless = {"--nproc", "2", "trainer.total_epochs=100000",
                        "trainer.total_training_steps=null"};
  StartedProgram program(tiny.call("run", endless), tiny.files().path());
  await_steps(tiny, "run", 3);
  program.signal(SIGTERM);
  const EndedProgram ended = program.wait();
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const std::int64_t last = tiny.steps("run").back();
  EXPECT_GE(last, 3);
  EXPECT_EQ(tiny.files().read("run/latest_checkpointed_iteration.txt"), std::to_string(last));
  EXPECT_EQ(find_damage(tiny.folder("run/global_step_" + std::to_string(last))), std::nullopt);
  EXPECT_THAT(ended.out, HasSubstr("asked to stop: saved step " + std::to_string(last)));
  tiny.run_well("run",
                {"--nproc", "2", "trainer.total_training_steps=" + std::to_string(last + 2)});
  EXPECT_EQ(tiny.steps("run"), up_to(last + 2));
}

// Every step is saved, so that most kills hit a save.
TEST(TrainRun, LosesNothingWhenKilledWhileSaving) {
  const TinyRun tiny;
  const More more = {"--nproc", "2", "trainer.save_freq=1", "trainer.max_ckpt_to_keep=1",
                     "trainer.total_training_steps=12"};
  tiny.run_well("whole", more);
  Random random(5);
  for (int kill = 0; kill < 5; ++kill) {
    const std::size_t begun = tiny.metrics("cut").size();
    StartedProgram program(tiny.call("cut", more), tiny.files().path());
    await_steps(tiny, "cut", std::min<std::size_t>(begun + 1, 11));
    ::usleep(static_cast<useconds_t>(random.between(0, 30'000)));
    program.signal(SIGKILL);
    (void)program.wait();
    ::usleep(200'000);  // the ranks follow their launcher
  }
  tiny.run_well("cut", more);
  EXPECT_EQ(tiny.steps("cut"), up_to(12));
  EXPECT_EQ(tiny.losses("cut"), tiny.losses("whole"));
  EXPECT_EQ(tiny.parts("cut", 12), tiny.parts("whole", 12));
}

TEST(TrainRun, SkipsADamagedCheckpointAndNeverStartsAnew) {
  const TinyRun tiny;
  tiny.run_well("run", {"trainer.save_freq=3"});
  std::filesystem::resize_file(tiny.folder("run/global_step_6/model/part_00000.safetensors"), 100);
  const EndedProgram skipped = tiny.run("run", {"trainer.total_training_steps=7"});
  EXPECT_EQ(skipped.exit_code, 0) << skipped.err;
  EXPECT_THAT(skipped.out, HasSubstr("skipped a damaged checkpoint: ["));
  EXPECT_THAT(skipped.out, HasSubstr("resumed from " + tiny.folder("run/global_step_3").string()));
  EXPECT_EQ(tiny.steps("run"), up_to(7));
  for (const char* step : {"3", "7"}) {
    std::filesystem::remove(tiny.folder(std::string("run/global_step_") + step + "/extra.json"));
  }
  const EndedProgram damaged = tiny.run("run", {});
  EXPECT_EQ(damaged.exit_code, 3);
  EXPECT_THAT(damaged.err, HasSubstr("[checkpoint] none of the 3 in "));
  const EndedProgram named =
      tiny.run("run", {"trainer.resume_from_path=" + tiny.folder("run/global_step_3").string(),
                       "trainer.resume_mode=resume_path"});
  EXPECT_EQ(named.exit_code, 3);
  EXPECT_THAT(named.err, HasSubstr("extra.json] cannot be opened"));
  tiny.run_well("run", {"trainer.resume_mode=disable", "trainer.total_training_steps=1"});
  EXPECT_EQ(tiny.steps("run"), up_to(1));
}

TEST(TrainRun, ResumesFromANamedCheckpointOfAnotherRun) {
  const TinyRun tiny;
  tiny.run_well("first", {"trainer.save_freq=2"});
  tiny.run_well("second",
                {"trainer.resume_mode=resume_path",
                 "trainer.resume_from_path=" + tiny.folder("first/global_step_4").string()});
  EXPECT_THAT(tiny.steps("second"), ElementsAre(5, 6));
  EXPECT_EQ(tiny.parts("second", 6), tiny.parts("first", 6));
}

TEST(TrainRun, RefusesRowsInAnotherOrderUnlessAllowed) {
  const TinyRun tiny;
  tiny.run_well("run", {"trainer.total_training_steps=2"});
  const EndedProgram ended = tiny.run("run", {"trainer.seed=9"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err, HasSubstr("was trained with trainer.seed = 1, the recipe gives 9"));
  tiny.run_well("run", {"trainer.seed=9", "checkpoint.load_contents=[model,optimizer]"});
  EXPECT_EQ(tiny.steps("run"), up_to(6));
}

TEST(TrainRun, ValidatesOverAllTokensWhateverTheBatch) {
  const TinyRun tiny;
  const std::string files = "data.val_files=" + tiny.folder("val.jsonl").string();
  std::vector<double> losses;
  for (const char* batch : {"1", "3", "8", "50"}) {  // 11 rows
    const std::string name = std::string("batch_") + batch;
    tiny.run_well(name, {files, "optim.lr=0", "trainer.total_training_steps=1",
                         std::string("data.train_batch_size=") + batch});
    losses.push_back(tiny.metrics(name).back()["data"]["val/loss"]);
  }
  for (const double loss : losses) EXPECT_NEAR(loss, losses[0], 1e-6);
}

TEST(TrainRun, ReportsABatchWithoutATrainedTokenAndGoesOn) {
  const TinyRun tiny;
  // The mask of a first token trains nothing: nobody predicts it.
  const std::string rows = tiny.files().write("empty.jsonl",
                                              "{\"input_ids\":[1,2],\"loss_mask\":[1,0]}\n"
                                              "{\"input_ids\":[3],\"loss_mask\":[1]}\n");
  const EndedProgram ended =
      tiny.run("run", {"data.train_files=" + rows, "data.train_batch_size=1",
                       "trainer.total_training_steps=2", "data.val_files=" + rows});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("step 1: the batch has no trained token"));
  EXPECT_EQ(tiny.metrics("run").back()["data"]["train/skipped_updates"], 2);
  EXPECT_FALSE(tiny.metrics("run").back()["data"].contains("train/loss"));
  EXPECT_FALSE(tiny.metrics("run").back()["data"].contains("val/loss"));
}

TEST(TrainRun, SkipsAnUpdateWhoseGradientIsNotFinite) {
  const TinyRun tiny;
  const EndedProgram ended = tiny.run("run", {"--nproc", "2", "optim.lr=1e6"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("the gradient is not finite, no weight was changed"));
  EXPECT_EQ(tiny.steps("run"), up_to(6));
  EXPECT_GT(tiny.metrics("run").back()["data"]["train/skipped_updates"], 0);
  EXPECT_EQ(find_damage(tiny.folder("run/global_step_6")), std::nullopt);
}

// The processes that `process` started.
std::vector<pid_t> children_of(pid_t process) {
  const std::string id = std::to_string(process);
  std::ifstream stream("/proc/" + id + "/task/" + id + "/children");
  return {std::istream_iterator<pid_t>(stream), {}};
}

TEST(TrainRun, EndsWithTheOthersWhenARankIsLost) {
  const TinyRun tiny;
  StartedProgram program(
      tiny.call("run", {"--nproc", "3", "trainer.total_epochs=100000",
                        "trainer.total_training_steps=null", "engine.collective_timeout_s=20"}),
      tiny.files().path());
  await_steps(tiny, "run", 2);
  const std::vector<pid_t> ranks = children_of(program.process());
  ASSERT_EQ(ranks.size(), 3);
  ::kill(ranks[1], SIGKILL);
  const EndedProgram ended = program.wait();
  EXPECT_EQ(ended.exit_code, 128 + SIGKILL);
  EXPECT_THAT(ended.err, HasSubstr("isochron: [launch] rank 1 was ended by signal 9"));
  EXPECT_THAT(ended.err, HasSubstr("rank 1 was last seen")) << "the others name it too";
  EXPECT_FALSE(std::filesystem::exists(tiny.folder("run/latest_checkpointed_iteration.txt")));
  for (const pid_t rank : ranks) EXPECT_NE(::kill(rank, 0), 0) << "rank stays behind";
}

TEST(TrainRun, ExportsAModelThatLoads) {
  const TinyRun tiny;
  tiny.run_well("run",
                {"--nproc", "2", "checkpoint.save_contents=[model,optimizer,extra,hf_model]"});
  const Decoder before = load_decoder(tiny.folder("model"), {});
  const Decoder after = load_decoder(tiny.folder("run/global_step_6/huggingface"), {});
  EXPECT_FALSE(at::equal(before.head_weight(), after.head_weight()));
}

TEST(TrainRun, SaysOncePerEpochHowManyRowsAreLeftOut) {
  const TinyRun tiny;
  const EndedProgram ended = tiny.run("run", {"trainer.total_training_steps=13"});
  EXPECT_THAT(ended.out, HasSubstr("epoch 0 is over: 2 rows did not fill a batch"));
  EXPECT_THAT(ended.out, HasSubstr("epoch 1 is over: 2 rows"));
  EXPECT_THAT(ended.out, Not(HasSubstr("epoch 2 is over")));
}

TEST(TrainRun, SaysWhatIsWrongOnceForAllRanks) {
  const TinyRun tiny;
  const auto error = [&](const More& more, int exit_code) {
    const EndedProgram ended = tiny.run("bad", more);
    EXPECT_EQ(ended.exit_code, exit_code) << ended.err;
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    return ended.err;
  };
  EXPECT_EQ(error({"--nproc", "2", "data.train_bach_size=8"}, 2),
            "isochron: [recipe] unknown key \"data.train_bach_size\", did you mean "
            "\"data.train_batch_size\"?\n");
  EXPECT_EQ(error({"--nproc", "0"}, 2),
            "isochron: [train] --nproc is 0, must be from 1 to 1048576\n");
  EXPECT_THAT(error({"--nproc", "2", "model.path=nowhere"}, 3),
              HasSubstr("isochron: [nowhere/config.json] cannot be opened"));
  EXPECT_THAT(error({"--nproc", "2", "data.train_batch_size=51"}, 2),
              HasSubstr("hold 50 rows, must be at least data.train_batch_size = 51"));
  EXPECT_THAT(error({"--nproc", "3", "data.pad=error"}, 2),
              HasSubstr("must be a multiple of the 3 ranks"));
  EXPECT_THAT(error({"data.max_token_len_per_gpu=20"}, 2),
              HasSubstr("must have at most data.max_token_len_per_gpu = 20"));
  const std::string rows = tiny.files().write(
      "bad.jsonl",
      "{\"input_ids\":[1],\"loss_mask\":[1]}\n{\"input_ids\":[1,32],\"loss_mask\":[0,1]}\n");
  EXPECT_THAT(error({"--nproc", "2", "data.train_files=" + rows, "data.train_batch_size=2"}, 2),
              HasSubstr("row 1 of " + rows + " has token 32 at 1, must be from 0 to 31"));
  EXPECT_THAT(error({"trainer.device=cuda", "engine.hardware=h100"}, 3),
              HasSubstr("[trainer.device] cuda: there are 0 devices"));
  EXPECT_EQ(error({"--nproc", "-1"}, 2),
            "isochron: [train] --nproc is -1, must be from 1 to 1048576\n");
}

TEST(DryRun, CountsStepsTimeAndMemoryAndLoadsNothing) {
  const TinyRun tiny;
  const EndedProgram ended = tiny.run("dry", {"--nproc", "2", "--dry-run"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("rows        50, "));
  EXPECT_THAT(ended.out, HasSubstr("steps       6 (6 per epoch) on 2 ranks"));
  EXPECT_THAT(ended.out, HasSubstr("step 3 "));
  EXPECT_THAT(ended.out, HasSubstr("it fits"));
  EXPECT_FALSE(std::filesystem::exists(tiny.folder("dry")));
}

TEST(DryRun, Exits1WithTheNumbersWhenTheDeviceIsTooSmall) {
  const TinyRun tiny;
  const EndedProgram ended = tiny.run(
      "dry", {"--dry-run", "data.max_token_len_per_gpu=100000000", "engine.hardware=rtx-3070-ti"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.out, HasSubstr("activations"));
  EXPECT_THAT(ended.out, HasSubstr("too small"));
  EXPECT_EQ(ended.err, "");
}

}  // namespace
}  // namespace isochron
