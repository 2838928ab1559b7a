#include "isochron/engine/train/dry_run.h"

#include <gtest/gtest.h>

#include "isochron/engine/model/activation_memory.h"
#include "isochron/engine/train/planning.h"

namespace isochron {
namespace {

Recipe recipe_on(DeviceKind device, Recompute recompute) {
  Recipe recipe;
  recipe.trainer.device = device;
  recipe.engine.recompute = recompute;
  return recipe;
}

TEST(ExpectedMemory, CountsEveryPartOnce) {
  const ModelShape model = model_preset("qwen3-8b");
  const std::int64_t parameters = num_parameters(model);
  const Hardware h100 = hardware_preset("h100");
  const ExpectedMemory memory =
      expected_memory(recipe_on(DeviceKind::cuda, Recompute::full), model, 8, 16384, h100);
  EXPECT_EQ(memory.weights, 2 * parameters);
  EXPECT_EQ(memory.gradients, 4 * parameters);
  EXPECT_EQ(memory.optimizer, (12 * parameters + 7) / 8);
  const std::int64_t layer_inputs = std::int64_t{16384} * 2 * 4096 * 36;
  EXPECT_GE(memory.activations, layer_inputs);
  EXPECT_LE(memory.activations, layer_inputs * 101 / 100);
  EXPECT_EQ(memory.working, head_bytes(model, 2048, 2));
  EXPECT_EQ(memory.reserve, h100.hbm_bytes / 10);
  EXPECT_LT(memory.total(), h100.hbm_bytes);
}

TEST(ExpectedMemory, TakesMoreInFloat32) {
  const ModelShape model = model_preset("qwen3-0.6b");
  const ExpectedMemory half =
      expected_memory(recipe_on(DeviceKind::cuda, Recompute::none), model, 2, 1000, std::nullopt);
  const ExpectedMemory full =
      expected_memory(recipe_on(DeviceKind::cpu, Recompute::none), model, 2, 1000, std::nullopt);
  EXPECT_EQ(full.weights, 2 * half.weights);
  // Row sums and angles are float32 in both.
  EXPECT_GT(full.activations, half.activations * 19 / 10);
  EXPECT_LT(full.activations, half.activations * 2);
  EXPECT_EQ(full.gradients - half.gradients, 2 * model.vocabulary * model.hidden);  // tied
  EXPECT_EQ(full.reserve, 0);
}

TEST(ExpectedMemory, TheWorkingSetIsThatOfTheHeadOrOfALayer) {
  const ModelShape model = model_preset("qwen3-0.6b");
  const Recipe recipe = recipe_on(DeviceKind::cuda, Recompute::none);
  const auto working = [&](Tokens tokens) {
    return expected_memory(recipe, model, 2, tokens, std::nullopt).working;
  };
  EXPECT_EQ(working(100), head_bytes(model, 100, 2));
  EXPECT_EQ(working(4096), head_bytes(model, recipe.engine.loss_chunk, 2));
  EXPECT_EQ(working(1 << 20),
            (std::int64_t{1} << 20) * activation_bytes(model, Recompute::none, 2).working);
}

TEST(Planning, TakesTheCapacityOfTheModeOfTheRecipe) {
  DataOptions data;
  EXPECT_EQ(microbatch_capacity(data, 100), 8192);
  data.use_dynamic_bsz = false;
  EXPECT_EQ(microbatch_capacity(data, 100), 400);
  Recipe recipe;
  EXPECT_EQ(plan_options(recipe).max_sequences, 0);
  recipe.data.use_dynamic_bsz = false;
  recipe.trainer.balance_batch = false;
  EXPECT_EQ(plan_options(recipe).max_sequences, 4);
  EXPECT_FALSE(plan_options(recipe).balance);
}

TEST(Planning, CountsWithWhatTheRecipeNames) {
  const ModelShape model = model_preset("qwen3-0.6b");
  Recipe recipe = recipe_on(DeviceKind::cpu, Recompute::none);
  EXPECT_EQ(planning_cost(recipe, model, find_rank_hardware(recipe, 1)).name, "qwen3-0.6b_cpu");
  recipe.engine.hardware = "h100";
  EXPECT_EQ(planning_cost(recipe, model, find_rank_hardware(recipe, 1)).name, "qwen3-0.6b_h100");
  recipe.engine.cost = "verl";
  EXPECT_EQ(planning_cost(recipe, model, std::nullopt).linear_ns, 24576);
  recipe.engine.cost.reset();
  EXPECT_THROW((void)planning_cost(recipe, model, std::nullopt), std::invalid_argument);
}

TEST(Planning, CountsTheActivationsOfTheEngineWhateverTheCosts) {
  const ModelShape model = model_preset("qwen3-0.6b");
  Recipe recipe = recipe_on(DeviceKind::cuda, Recompute::selective);
  recipe.engine.cost = "verl";
  const auto expected =
      static_cast<double>(activation_bytes(model, Recompute::selective, 2).peak());
  EXPECT_EQ(planning_cost(recipe, model, std::nullopt).activation_bytes_per_token, expected);
  recipe.engine.cost.reset();
  recipe.engine.hardware = "h200";
  EXPECT_EQ(planning_cost(recipe, model, find_rank_hardware(recipe, 1)).activation_bytes_per_token,
            expected);
}

}  // namespace
}  // namespace isochron
