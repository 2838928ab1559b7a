#include "isochron/engine/train/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "isochron/engine/train/foreign_keys.h"
#include "isochron/engine/train/yaml_document.h"
#include "tests/support/message_of.h"
#include "tests/support/mutate.h"

namespace isochron {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* smallest = "model: {path: m}\ndata: {train_files: rows.jsonl}\n";

Recipe recipe_with(const std::vector<std::string>& overrides) {
  return read_recipe(smallest, overrides);
}

std::string message_with(const std::vector<std::string>& overrides) {
  return message_of([&] { (void)recipe_with(overrides); });
}

std::string message_of_text(const std::string& text) {
  return message_of([&] { (void)read_recipe(text); });
}

TEST(Recipe, HasTheNamesAndDefaultsOfVerl) {
  const Recipe recipe = read_recipe(smallest);
  EXPECT_EQ(recipe.model.path, "m");
  EXPECT_THAT(recipe.data.train_files, ElementsAre("rows.jsonl"));
  EXPECT_EQ(recipe.data.train_batch_size, 256);
  EXPECT_EQ(recipe.data.max_token_len_per_gpu, 8192);
  EXPECT_TRUE(recipe.data.use_dynamic_bsz);
  EXPECT_EQ(recipe.data.val_files, std::nullopt);
  EXPECT_EQ(recipe.optim.lr, 1e-3);
  EXPECT_THAT(recipe.optim.betas, ElementsAre(0.9, 0.999));
  EXPECT_EQ(recipe.trainer.seed, 1);
  EXPECT_EQ(recipe.engine.seed, 42);
  EXPECT_EQ(recipe.horizon.total_epochs, 4);
  EXPECT_EQ(recipe.horizon.save_freq, (Frequency{.steps = -1}));
  EXPECT_EQ(recipe.trainer.default_local_dir, "checkpoints/gsm8k-sft/test");
  EXPECT_TRUE(recipe.checkpoint.loads(Content::optimizer));
}

TEST(Recipe, TakesOverridesOverTheFile) {
  const Recipe recipe = recipe_with(
      {"data.train_batch_size=8", "optim.lr=1e-5", "optim.betas=[0.9, 0.95]",
       "data.val_files=[a.jsonl, 'b: c.jsonl']", "trainer.save_freq=after_each_epoch",
       "trainer.test_freq=3", "trainer.experiment_name=x: y [z", "trainer.max_ckpt_to_keep=2",
       "trainer.max_ckpt_to_keep=null", "checkpoint.save_contents=[model, hf_model]",
       "model.path=other=path", "engine.dtype=bf16"});
  EXPECT_EQ(recipe.data.train_batch_size, 8);
  EXPECT_EQ(recipe.optim.lr, 1e-5);
  EXPECT_THAT(recipe.optim.betas, ElementsAre(0.9, 0.95));
  EXPECT_THAT(*recipe.data.val_files, ElementsAre("a.jsonl", "b: c.jsonl"));
  EXPECT_TRUE(recipe.horizon.save_freq.each_epoch);
  EXPECT_EQ(recipe.horizon.test_freq.steps, 3);
  EXPECT_EQ(recipe.trainer.default_local_dir, "checkpoints/gsm8k-sft/x: y [z");
  EXPECT_EQ(recipe.checkpoint.max_ckpt_to_keep, std::nullopt);
  EXPECT_THAT(recipe.checkpoint.save_contents, ElementsAre(Content::model, Content::hf_model));
  EXPECT_EQ(recipe.model.path, "other=path");
  EXPECT_EQ(recipe.engine.dtype, Precision::bfloat16);
}

TEST(Recipe, SurvivesARoundTripThroughItsFile) {
  const Recipe recipe =
      recipe_with({"trainer.experiment_name=a: \"b\" # \xf0\x9f\x8e\xb2 [c]", "optim.lr=0.1",
                   "trainer.seed=-7", "trainer.save_freq=after_each_epoch", "trainer.logger=[]",
                   "optim.num_cycles=0.30000000000000004",
                   "data.train_files=['true', '12', '~', '- x', 'null', \"a\\nb\"]"});
  const std::string text = to_yaml(recipe);
  EXPECT_EQ(to_yaml(read_recipe(text)), text);
  EXPECT_THAT(text, HasSubstr("  train_files: [\"true\", \"12\", \"~\", \"- x\", \"null\", "
                              "\"a\\nb\"]\n"));
  EXPECT_THAT(read_recipe(text).data.train_files,
              ElementsAre("true", "12", "~", "- x", "null", "a\nb"));
}

TEST(Recipe, NamesTheNearestKnownKey) {
  EXPECT_EQ(message_with({"data.train_bach_size=8"}),
            "[recipe] unknown key \"data.train_bach_size\", did you mean "
            "\"data.train_batch_size\"?");
  EXPECT_EQ(message_with({"train_batch_size"}), "[recipe] \"train_batch_size\" must be key=value");
  EXPECT_EQ(message_of_text("data: 5"), "[recipe] data is 5, must be a group of keys");
  EXPECT_EQ(message_of_text("trainer: {seed: 1}\ntrainer.seed: 2"),
            "[recipe] trainer.seed is given twice");
  EXPECT_EQ(message_of_text("- 1"), "[recipe] the text is a list of 1, must be a mapping");
}

TEST(Recipe, SaysWhyAKeyOfVerlDoesNotExist) {
  EXPECT_EQ(message_with({"data.num_workers=8"}),
            "[recipe] data.num_workers does not exist here: rows are mapped, nobody loads them");
  EXPECT_EQ(message_with({"data.messages_key=messages"}),
            "[recipe] data.messages_key does not exist here: it is an option of "
            "`python -m isochron.prepare`");
  EXPECT_THAT(message_with({"data.custom_cls.path=x"}), HasSubstr("does not exist here"));
  for (const char* key :
       {"data.balance_dp_token", "data.use_shm", "checkpoint.strict", "trainer.default_hdfs_dir",
        "trainer.nnodes", "trainer.n_gpus_per_node", "engine.fsdp_size",
        "engine.tensor_model_parallel_size", "model.mtp.enable", "optim.min_lr"}) {
    EXPECT_THAT(message_with({std::string(key) + "=1"}), HasSubstr("does not exist here")) << key;
  }
}

TEST(Recipe, HasNoKeyThatIsAlsoForeign) {
  Recipe recipe;
  for_each_options(recipe, []<class Options>(const Options&) {
    for (const std::string& key : field_keys<Options>()) {
      EXPECT_EQ(find_foreign_key(key), std::nullopt) << key;
    }
  });
}

TEST(Recipe, ChecksEveryValue) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"data.train_batch_size=0", "data.train_batch_size is 0, must be from 1 to 2147483647"},
      {"data.train_batch_size=1.5", "data.train_batch_size is 1.5, must be an integer from"},
      {"data.train_batch_size=null", "data.train_batch_size is null, must be an integer from"},
      {"data.train_files=[]", "data.train_files is missing"},
      {"data.train_files=['']", "data.train_files holds an empty path"},
      {"data.train_files=[3]", "data.train_files[0] is 3, must be a string"},
      {"data.train_max_samples=0", "data.train_max_samples is 0, must be -1 (all) or at least 1"},
      {"data.truncation=middle", "data.truncation is \"middle\", must be one of error, left"},
      {"data.pad_mode=right", "data.pad_mode is \"right\", must be one of no_padding"},
      {"data.pad=zeros", "data.pad is \"zeros\", must be one of uneven, rows, error"},
      {"model.dropout=1", "model.dropout is 1, must be at least 0 and below 1"},
      {"model.dropout=-0.1", "model.dropout is -0.1, must be at least 0 and below 1"},
      {"data.max_length=0", "data.max_length is 0, must be from 1 to 2147483647"},
      {"trainer.save_freq=0",
       "trainer.save_freq is 0, must be -1 (never), at least 1 or after_each_epoch"},
      {"trainer.test_freq=-2", "trainer.test_freq is -2, must be -1 (never), at least 1"},
      {"trainer.save_freq=always", "trainer.save_freq is \"always\", must be -1 (never)"},
      {"trainer.test_freq=5", "trainer.test_freq is 5, needs data.val_files"},
      {"trainer.total_epochs=0", "trainer.total_epochs is 0, must be from 1"},
      {"trainer.total_training_steps=0", "trainer.total_training_steps is 0, must be from 1"},
      {"trainer.logger=[console, wandb]", "trainer.logger has \"wandb\", must be console"},
      {"trainer.device=npu", "trainer.device is \"npu\", must be one of cuda, cpu"},
      {"trainer.resume_mode=resume_path",
       "trainer.resume_mode is resume_path, needs trainer.resume_from_path"},
      {"trainer.resume_mode=never", "trainer.resume_mode is \"never\", must be one of auto"},
      {"trainer.max_ckpt_to_keep=0", "trainer.max_ckpt_to_keep is 0, must be from 1"},
      {"trainer.default_local_dir=${user}", "may name ${trainer.project_name}"},
      {"checkpoint.save_contents=[]", "checkpoint.save_contents is empty"},
      {"checkpoint.save_contents=[weights]",
       "checkpoint.save_contents[0] is \"weights\", must be one of model, optimizer"},
      {"checkpoint.save_contents=[hf_model]",
       "a run resumes with its weights: checkpoint.save_contents must hold model"},
      {"checkpoint.load_contents=[hf_model]", "checkpoint.load_contents has hf_model"},
      {"optim.lr=-1", "optim.lr is -1, must be from 0"},
      {"optim.lr=fast", "optim.lr is \"fast\", must be a number"},
      {"optim.betas=[0.9]", "optim.betas has 1 numbers, must be 2"},
      {"optim.betas=[0.9, 1]", "optim.betas has 1, must be at least 0 and below 1"},
      {"optim.clip_grad=0", "optim.clip_grad is 0, must be above 0"},
      {"optim.clip_grad=null", "optim.clip_grad is null, must be a number"},
      {"optim.lr_scheduler_type=linear", "must be one of constant, cosine"},
      {"optim.override_optimizer_config=x", "must be null"},
      {"engine.dtype=float16", "engine.dtype is \"float16\", must be one of auto"},
      {"engine.recompute=some", "must be one of none, selective, full"},
      {"engine.context_parallel_size=0", "engine.context_parallel_size is 0, must be from 1"},
      {"engine.max_context_groups=0", "engine.max_context_groups is 0, must be from 1 to 1048576"},
      {"engine.max_seqlen_per_dp_cp_rank=0",
       "engine.max_seqlen_per_dp_cp_rank is 0, must be from 1 to 2147483647"},
      {"engine.max_seqlen_per_dp_cp_rank=2000",
       "engine.max_seqlen_per_dp_cp_rank is 2000, needs engine.dynamic_context_parallel = true"},
      {"engine.context_parallel_sizes=pairs",
       "engine.context_parallel_sizes is \"pairs\", must be one of dynamic, any"},
      {"engine.context_parallel_sizes=any",
       "engine.context_parallel_sizes is any, needs engine.dynamic_context_parallel = true"},
      {"engine.collective_timeout_s=0", "engine.collective_timeout_s is 0, must be from 1"},
      {"model.path=", "model.path is null, must be a string"},
      {"model.path=''", "model.path is missing"},
  };
  for (const auto& [assignment, message] : wrong) {
    EXPECT_THAT(message_with({assignment}), StartsWith("[recipe] ")) << assignment;
    EXPECT_THAT(message_with({assignment}), HasSubstr(message)) << assignment;
  }
}

TEST(Recipe, RejectsValuesThatContradictEachOther) {
  EXPECT_EQ(message_with({"model.enable_gradient_checkpointing=false", "engine.recompute=full"}),
            "[recipe] model.enable_gradient_checkpointing is false, contradicts engine.recompute "
            "= full");
  EXPECT_EQ(recipe_with({"model.enable_gradient_checkpointing=true"}).engine.recompute,
            Recompute::full);
  EXPECT_EQ(message_with({"trainer.resume_mode=disable", "trainer.resume_from_path=x"}),
            "[recipe] trainer.resume_from_path is \"x\", contradicts trainer.resume_mode = "
            "disable");
  EXPECT_EQ(message_with({"data.max_length=9000", "data.truncation=left"}),
            "[recipe] data.max_length is 9000, must be at most data.max_token_len_per_gpu = 8192");
}

TEST(Recipe, RejectsContextKeysThatContradictEachOther) {
  EXPECT_EQ(
      message_with({"engine.dynamic_context_parallel=true", "engine.context_parallel_size=2"}),
      "[recipe] engine.context_parallel_size is 2, must be 1 with "
      "engine.dynamic_context_parallel: sizes follow from the lengths");
  EXPECT_EQ(message_with({"engine.dynamic_context_parallel=true", "data.use_dynamic_bsz=false"}),
            "[recipe] data.use_dynamic_bsz is false, must be true with "
            "engine.dynamic_context_parallel: lengths decide what a micro-batch holds");
}

TEST(Recipe, LeavesTheLimitOfARowToTheRanksThatShareIt) {
  for (const char* context :
       {"engine.dynamic_context_parallel=true", "engine.context_parallel_size=2"}) {
    EXPECT_EQ(message_with({context, "data.max_length=9000", "data.truncation=left"}), "accepted");
  }
}

TEST(Recipe, SaysWhatIsNotExecutedYet) {
  EXPECT_EQ(message_with({"engine.pipeline_model_parallel_size=2"}),
            "[recipe] engine.pipeline_model_parallel_size is 2, must be 1: pipelines are not "
            "executed yet");
  EXPECT_EQ(message_with({"model.lora_rank=8"}),
            "[recipe] model.lora_rank is 8, must be 0: LoRA is not executed yet");
  EXPECT_THAT(message_with({"trainer.profile_interval=[1, 2]"}), EndsWith("not executed yet"));
}

TEST(Recipe, IsWhatEveryFileInRecipesIs) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ISOCHRON_SOURCE_FOLDER "/recipes")) {
    SCOPED_TRACE(entry.path());
    std::ifstream stream(entry.path());
    const std::string text(std::istreambuf_iterator<char>(stream), {});
    EXPECT_EQ(message_of_text(text), "accepted");
    ++count;
  }
  EXPECT_GE(count, 5);
}

TEST(Yaml, ReadsScalarsByTheCoreSchema) {
  EXPECT_EQ(
      parse_yaml("[1, -2, +3, 1e-5, .5, true, False, ~, null, yes, 0x10, '1', \"true\", a b]", "it")
          .dump(),
      R"([1,-2,3,1e-05,0.5,true,false,null,null,"yes","0x10","1","true","a b"])");
  EXPECT_EQ(parse_yaml("", "it").dump(), "{}");
  EXPECT_EQ(parse_yaml("# nothing", "it").dump(), "{}");
}

TEST(Yaml, RejectsWhatASmallFileGrowsBy) {
  EXPECT_EQ(message_of_text("a: &x [1]\nb: *x"),
            "[recipe] line 2 has an alias, must spell the value out");
  EXPECT_EQ(message_of_text("a: !!binary x"), "[recipe] line 1 has a tag, must be a value alone");
  EXPECT_EQ(message_of_text("a: 1\na: 2"), "[recipe] line 2 has the key \"a\" a second time");
  EXPECT_EQ(message_of_text("a: 1\n---\nb: 2"),
            "[recipe] the text holds a second document, must be one");
  EXPECT_EQ(message_of_text("? [1]\n: 2"), "[recipe] line 1 has a key that is no scalar");
  EXPECT_THAT(message_of_text(std::string(100000, '[')), StartsWith("[recipe] line 1"));
  EXPECT_THAT(message_of_text(std::string(100000, '{')), StartsWith("[recipe] line 1"));
  std::string steps;
  for (int depth = 0; depth < 300; ++depth) steps += std::string(2 * depth, ' ') + "a:\n";
  EXPECT_THAT(message_of_text(steps), HasSubstr("nests deeper than 16 levels"));
  EXPECT_THAT(message_of_text("a: [1"), HasSubstr("line 1 is not valid YAML"));
  EXPECT_THAT(message_of_text("a: \"x"), HasSubstr("is not valid YAML"));
  EXPECT_THAT(message_of_text(std::string((1 << 20) + 1, '#')), HasSubstr("must be at most"));
}

TEST(Yaml, SurvivesBrokenText) {
  const std::string text = to_yaml(read_recipe(smallest));
  for (std::int64_t i = 0; i < fuzz_iterations(); ++i) {
    Random random(static_cast<std::uint64_t>(i));
    const std::string broken = mutated(text, random);
    try {
      const Recipe recipe = read_recipe(broken);
      EXPECT_EQ(to_yaml(read_recipe(to_yaml(recipe))), to_yaml(recipe)) << broken;
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()), "") << i;
    }
  }
}

}  // namespace
}  // namespace isochron
