// Sequences that one rank cannot hold, on several.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "isochron/engine/model/activation_memory.h"
#include "isochron/plan/plan.h"
#include "tests/engine/support/measured_training.h"
#include "tests/support/process_ranks.h"

namespace isochron {
namespace {

CostModel cost_of(const MeasuredModel& model) {
  CostModel cost;
  cost.linear_ns = 1;
  cost.activation_bytes_per_token =
      static_cast<double>(activation_bytes(model.shape, {.recompute = model.recompute,
                                                         .element_bytes = model.element_bytes(),
                                                         .in_groups = true})
                              .peak());
  cost.context = {{.kind = ContextKind::all_gather_kv,
                   .bytes_per_token = 1,
                   .links = {{.max_ranks = 64, .gb_per_s = 1}}}};
  return cost;
}

TEST(LongSequence, ThatIsCTimesTheCapOfARankTrainsOnCRanks) {
  constexpr Tokens cap = 1200;
  const MeasuredModel model = {.shape = {.name = "small",
                                         .hidden = 64,
                                         .layers = 3,
                                         .heads = 8,
                                         .kv_heads = 4,
                                         .head_dim = 8,
                                         .ffn = 192,
                                         .vocabulary = 64}};
  for (const std::int32_t c : {2, 3, 4}) {
    Batch batch;
    batch.lengths = {c * cap, 500, 700};
    const Topology one_rank = {.ranks = 1, .capacity = cap};
    EXPECT_EQ(plan_step(batch, one_rank, cost_of(model), {.context = "dynamic"}).status,
              Status::infeasible);
    const Topology all_ranks = {.ranks = c, .capacity = cap};
    const StepPlan plan = plan_step(batch, all_ranks, cost_of(model), {.context = "dynamic"});
    run_ranks(c, [&](World& world) {
      MeasuredTraining training(world, model,
                                {.head = {.chunk = 256}, .context = {.gather_bytes = 1}});
      const StepMemory first = training.step(plan);
      const std::int64_t predicted =
          plan.peak_activation_bytes[static_cast<std::size_t>(world.place().rank)];
      EXPECT_EQ(predicted, cap * static_cast<std::int64_t>(plan.cost.activation_bytes_per_token));
      EXPECT_LE(first.activations, predicted);
      EXPECT_GE(first.activations, predicted * 10 / 13);
      StepMemory last = first;
      for (int i = 0; i < 3; ++i) last = training.step(plan);
      EXPECT_LT(last.loss, first.loss);
      EXPECT_LE(last.activations, predicted);
    });
  }
}

TEST(LongSequence, Of65536TokensNeedsLessThan2GbOnEachOf2Ranks) {
  const MeasuredModel model = {.shape = {.name = "narrow",
                                         .hidden = 32,
                                         .layers = 1,
                                         .heads = 1,
                                         .kv_heads = 1,
                                         .head_dim = 16,
                                         .ffn = 64,
                                         .vocabulary = 64}};
  Batch batch;
  batch.lengths = {65'536};
  const Topology topology = {.ranks = 2, .capacity = 32'768};
  const StepPlan plan = plan_step(batch, topology, cost_of(model), {.context = "dynamic"});
  ASSERT_EQ(plan.microbatches.at(0).at(0).ranks, (RankRange{0, 2}));
  const RankOptions options = {.limit = std::chrono::seconds{500},
                               .world = {.timeout = std::chrono::milliseconds{400'000}}};
  const auto resident = run_ranks(
      2,
      [&](World& world) {
        MeasuredTraining training(world, model, {});
        const StepMemory memory = training.step(plan);
        EXPECT_GT(memory.loss, 0);
        EXPECT_LT(peak_memory(at::kCPU).host, 2'000'000'000);
        return std::to_string(peak_memory(at::kCPU).host);
      },
      options);
  for (const std::string& bytes : resident) RecordProperty("resident_bytes", bytes);
}

}  // namespace
}  // namespace isochron
