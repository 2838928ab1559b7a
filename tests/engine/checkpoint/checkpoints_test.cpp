#include "isochron/engine/checkpoint/checkpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "isochron/engine/checkpoint/manifest.h"
#include "isochron/engine/model/hf_folder.h"
#include "tests/engine/support/random_decoder.h"
#include "tests/engine/temporary_folder.h"

namespace isochron {
namespace {

Decoder random_model() {
  Decoder model(model_config_from_json(small_config("qwen3")), {});
  randomise(model, 1);
  return model;
}

// One rank that saves in the background and exports its model.
class AsyncSave : public testing::Test {
 protected:
  [[nodiscard]] Checkpoints checkpoints(const std::filesystem::path& model_folder) {
    CheckpointOptions options;
    options.async_save = true;
    options.save_contents.push_back(Content::hf_model);
    return {run_folder_, options, world_, model_folder};
  }

  TemporaryFolder files_;
  const std::filesystem::path run_folder_ = files_.path() / "run";
  World world_{Place{}, WorldOptions{}};
  Decoder model_ = random_model();
  ShardedAdamW optimizer_{model_.parameters(), world_.all(), AdamWOptions{}};
  Tracer tracer_;
  Engine engine_{world_, model_, &optimizer_, CostModel{}, tracer_, {}};
};

TEST_F(AsyncSave, ExportsTheWeightsOfItsStepWhileTheyChange) {
  const at::Tensor expected = model_.head_weight().detach().clone();
  Checkpoints saving = checkpoints({});
  saving.save(3, engine_, "{}");
  {
    const at::NoGradGuard no_grad;
    for (const Parameter& parameter : model_.parameters()) at::Tensor(parameter.value).zero_();
  }
  saving.finish();
  const Decoder exported = load_decoder(run_folder_ / "global_step_3/huggingface", {});
  EXPECT_TRUE(at::equal(exported.head_weight(), expected));
  EXPECT_EQ(find_damage(run_folder_ / "global_step_3"), std::nullopt);
}

TEST_F(AsyncSave, DoesNotExportBeforeItReturns) {
  // Files that stand beside the model are copied from a folder that is not there.
  Checkpoints saving = checkpoints(files_.path() / "nowhere");
  saving.save(3, engine_, "{}");
  EXPECT_THAT([&] { saving.finish(); },
              testing::ThrowsMessage<std::runtime_error>(testing::HasSubstr("nowhere")));
  EXPECT_FALSE(std::filesystem::exists(run_folder_ / "global_step_3"));
}

}  // namespace
}  // namespace isochron
