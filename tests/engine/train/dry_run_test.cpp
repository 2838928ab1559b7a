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
      expected_memory(recipe_on(DeviceKind::cuda, Recompute::full), model, 8, 1, 16384, h100);
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
  const ExpectedMemory half = expected_memory(recipe_on(DeviceKind::cuda, Recompute::none), model,
                                              2, 1, 1000, std::nullopt);
  const ExpectedMemory full =
      expected_memory(recipe_on(DeviceKind::cpu, Recompute::none), model, 2, 1, 1000, std::nullopt);
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
    return expected_memory(recipe, model, 2, 1, tokens, std::nullopt).working;
  };
  EXPECT_EQ(working(100), head_bytes(model, 100, 2));
  EXPECT_EQ(working(4096), head_bytes(model, recipe.engine.loss_chunk, 2));
  EXPECT_EQ(working(1 << 20), (std::int64_t{1} << 20) * activation_bytes(model, {}).working);
}

TEST(ExpectedMemory, CountsTheKeysAndValuesThatAGroupExchanges) {
  const ModelShape model = model_preset("qwen3-8b");  // 8 heads of 128 numbers
  const Recipe recipe = recipe_on(DeviceKind::cuda, Recompute::full);
  const auto context = [&](std::int32_t size, Tokens tokens) {
    return expected_memory(recipe, model, 8, size, tokens, std::nullopt).context;
  };
  EXPECT_EQ(context(1, 16384), 0);
  EXPECT_EQ(context(2, 1024), 6 * 8 * 2 * (2 * 1024) * 128 * 2) << "all heads at a time";
  EXPECT_EQ(context(4, 16384), 6 * 1 * 2 * (4 * 16384) * 128 * 2) << "one takes 32 MB";
  const ExpectedMemory memory = expected_memory(recipe, model, 8, 4, 16384, std::nullopt);
  EXPECT_EQ(memory.total(), memory.weights + memory.gradients + memory.optimizer +
                                memory.activations + memory.working + memory.context);
}

Recipe with_context(std::int32_t size) {
  Recipe recipe;
  recipe.engine.context_parallel_size = size;
  return recipe;
}

Recipe with_dynamic_context(std::optional<Tokens> tokens_per_rank) {
  Recipe recipe;
  recipe.engine.dynamic_context_parallel = true;
  recipe.engine.max_seqlen_per_dp_cp_rank = tokens_per_rank;
  return recipe;
}

TEST(Planning, TakesTheCapacityOfTheModeOfTheRecipe) {
  Recipe recipe;
  EXPECT_EQ(microbatch_capacity(recipe, 100), 8192);
  EXPECT_EQ(plan_options(recipe, 3).max_sequences, 0);
  recipe.data.use_dynamic_bsz = false;
  recipe.trainer.balance_batch = false;
  EXPECT_EQ(microbatch_capacity(recipe, 100), 400);
  EXPECT_EQ(plan_options(recipe, 3).max_sequences, 4);
  EXPECT_FALSE(plan_options(recipe, 3).balance);
  // 4 rows of 100 tokens, padded to 102, on 3 ranks.
  recipe.engine.context_parallel_size = 3;
  EXPECT_EQ(microbatch_capacity(recipe, 100), 4 * 34);
}

TEST(Planning, PadsToAMultipleOfTheRanksIfAsked) {
  Recipe recipe;
  EXPECT_EQ(plan_options(recipe, 3).pad_multiple, 1);
  recipe.data.pad = Pad::rows;
  EXPECT_EQ(plan_options(recipe, 3).pad_multiple, 3);
}

TEST(Planning, TakesTheCapacityOfARankForDynamicGroups) {
  EXPECT_EQ(microbatch_capacity(with_dynamic_context(2000), 100), 2000);
  EXPECT_EQ(microbatch_capacity(with_dynamic_context(20000), 100), 20000);
  EXPECT_EQ(microbatch_capacity(with_dynamic_context(std::nullopt), 100), 8192);
}

TEST(Planning, PlansOnTheGroupsOfTheRecipe) {
  EXPECT_EQ(plan_options({}, 3).context, "static:1");
  EXPECT_EQ(plan_options(with_context(4), 8).context, "static:4");
  Recipe recipe = with_dynamic_context(std::nullopt);
  EXPECT_EQ(plan_options(recipe, 3).context, "dynamic");
  recipe.engine.context_parallel_sizes = "any";
  EXPECT_EQ(plan_options(recipe, 3).context, "dynamic:any");
  EXPECT_EQ(plan_options(recipe, 3).oversize, std::nullopt) << "widen, by default";
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
      static_cast<double>(activation_bytes(model, {.recompute = Recompute::selective}).peak());
  EXPECT_EQ(planning_cost(recipe, model, std::nullopt).activation_bytes_per_token, expected);
  recipe.engine.cost.reset();
  recipe.engine.hardware = "h200";
  EXPECT_EQ(planning_cost(recipe, model, find_rank_hardware(recipe, 1)).activation_bytes_per_token,
            expected);
}

TEST(Planning, OffersBothExchangesInThePrecisionOfTheRecipe) {
  const ModelShape model = model_preset("qwen3-0.6b");  // 28 layers, 16 heads of 128, 8 of keys
  const CostModel half =
      planning_cost(recipe_on(DeviceKind::cuda, Recompute::none), model, hardware_preset("h100"));
  ASSERT_EQ(half.context.size(), 2);
  EXPECT_EQ(half.context[0].kind, ContextKind::all_gather_kv);
  EXPECT_EQ(half.context[0].bytes_per_token, 3 * 2 * 8 * 128 * 2 * 28) << "K and V three times";
  EXPECT_EQ(half.context[0].divides, 0);
  EXPECT_EQ(half.context[1].kind, ContextKind::all_to_all);
  EXPECT_EQ(half.context[1].divides, 8) << "heads of K and V";
  const CostModel full =
      planning_cost(recipe_on(DeviceKind::cpu, Recompute::none), model, hardware_preset("h100"));
  for (const std::size_t i : {0, 1}) {
    EXPECT_EQ(full.context[i].bytes_per_token, 2 * half.context[i].bytes_per_token);
  }
  EXPECT_EQ(half.context[1].bytes_per_token, 3 * 2 * (16 + 8) * 128 * 2 * 28) << "all, three times";
}

TEST(Planning, CountsTheLinksOfProcessesOnACpu) {
  const ModelShape model = model_preset("qwen3-0.6b");
  const Recipe recipe = recipe_on(DeviceKind::cpu, Recompute::none);
  const CostModel cost = planning_cost(recipe, model, find_rank_hardware(recipe, 2));
  for (const ContextCost& context : cost.context) {
    ASSERT_EQ(context.links.size(), 2);
    EXPECT_EQ(context.links[0].max_ranks, 2);
    EXPECT_LT(context.links[0].gb_per_s, 10) << "what the preset of a server says";
    EXPECT_EQ(context.links[0].gb_per_s, context.links[1].gb_per_s);
    EXPECT_EQ(context.links[0].latency_us, 28 * 450);
  }
}

TEST(Planning, TakesTheRanksOfAHostForANode) {
  Recipe recipe = recipe_on(DeviceKind::cpu, Recompute::none);
  recipe.engine.threads = 2;
  EXPECT_EQ(find_rank_hardware(recipe, 3)->devices_per_node, 3);
  const double two_threads = find_rank_hardware(recipe, 3)->peak_flops;
  recipe.engine.threads = 1;
  EXPECT_EQ(find_rank_hardware(recipe, 3)->peak_flops, two_threads / 2);
  recipe.engine.hardware = "h100";
  EXPECT_EQ(find_rank_hardware(recipe, 4)->devices_per_node, 4);
  EXPECT_EQ(find_rank_hardware(recipe, 16)->devices_per_node, 8);
  recipe.engine.hardware = "gb200";
  EXPECT_EQ(find_rank_hardware(recipe, 4)->devices_per_node, 72) << "its links span hosts";
}

}  // namespace
}  // namespace isochron
