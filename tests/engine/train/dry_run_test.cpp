#include "isochron/engine/train/dry_run.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(memory.activations, std::int64_t{16384} * 2 * 4096 * 36);  // the input of every layer
  EXPECT_EQ(memory.reserve, h100.hbm_bytes / 10);
  EXPECT_LT(memory.total(), h100.hbm_bytes);
}

TEST(ExpectedMemory, TakesTwiceAsMuchInFloat32) {
  const ModelShape model = model_preset("qwen3-0.6b");
  const ExpectedMemory half =
      expected_memory(recipe_on(DeviceKind::cuda, Recompute::none), model, 2, 1000, std::nullopt);
  const ExpectedMemory full =
      expected_memory(recipe_on(DeviceKind::cpu, Recompute::none), model, 2, 1000, std::nullopt);
  EXPECT_EQ(full.weights, 2 * half.weights);
  EXPECT_EQ(full.activations, 2 * half.activations);
  EXPECT_EQ(full.gradients, half.gradients);
  EXPECT_EQ(full.reserve, 0);
}

TEST(Planning, TakesTheCapacityOfTheModeOfTheRecipe) {
  DataOptions data;
  EXPECT_EQ(microbatch_capacity(data, 100), 8192);
  data.use_dynamic_bsz = false;
  EXPECT_EQ(microbatch_capacity(data, 100), 400);
  Recipe recipe;
  EXPECT_EQ(plan_options(recipe, 3).max_sequences, 0);
  EXPECT_EQ(plan_options(recipe, 3).pad_multiple, 1);
  recipe.data.use_dynamic_bsz = false;
  recipe.trainer.balance_batch = false;
  recipe.data.pad = Pad::rows;
  EXPECT_EQ(plan_options(recipe, 3).max_sequences, 4);
  EXPECT_FALSE(plan_options(recipe, 3).balance);
  EXPECT_EQ(plan_options(recipe, 3).pad_multiple, 3);
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

}  // namespace
}  // namespace isochron
