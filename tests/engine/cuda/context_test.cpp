// Context parallelism of several ranks that share one GPU, over Gloo. Skipped where there is none.

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include "tests/engine/context/attention_comparison.h"
#include "tests/engine/execute/plan_by_hand.h"
#include "tests/engine/execute/plan_equality.h"
#include "tests/support/process_ranks.h"

namespace isochron {
namespace {

const at::Device gpu(at::kCUDA, 0);

RankOptions on_one_gpu() {
  return {
      .limit = std::chrono::seconds{300},
      .world = {
          .timeout = std::chrono::milliseconds{120'000}, .device = gpu, .backend = Backend::gloo}};
}

class ContextOnOneGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no GPU";
  }
};

void compare_attention(World& world, at::ScalarType dtype, double tolerance) {
  Communicator& group = world.group(0, world.place().size);
  Random random(3);
  for (const ContextKind exchange : {ContextKind::all_gather_kv, ContextKind::all_to_all}) {
    for (int round = 0; round < 8; ++round) {
      SCOPED_TRACE(testing::Message() << name_of(exchange) << ", round " << round);
      compare_with_whole_sequences(group, random,
                                   {.exchange = exchange,
                                    .kv_heads = group.size() * random.between(1, 2),
                                    .head_dim = 64,
                                    .longest = 700,
                                    .device = gpu,
                                    .dtype = dtype,
                                    .tolerance = tolerance,
                                    .options = {.gather_bytes = round % 2 == 0 ? 1 << 30 : 1}});
    }
  }
}

// bf16 has 8 bits: a result around 1 is off by up to 2^-8, and sums of some of them by a few times
// that.
TEST_F(ContextOnOneGpu, AttentionInBf16EqualsWholeSequencesToItsRounding) {
  for (const std::int32_t ranks : {2, 3}) {
    run_ranks(
        ranks, [](World& world) { compare_attention(world, at::kBFloat16, 4e-2); }, on_one_gpu());
  }
}

TEST_F(ContextOnOneGpu, AttentionInFp32EqualsWholeSequences) {
  for (const std::int32_t ranks : {2, 3}) {
    run_ranks(
        ranks, [](World& world) { compare_attention(world, at::kFloat, 1e-4); }, on_one_gpu());
  }
}

// One update of a mixed plan, by two dtypes on the GPU, against fp32 on the CPU of one rank.
TEST_F(ContextOnOneGpu, AStepOfMixedGroupsEqualsOneRankOnTheCpu) {
  const std::vector<Tokens> lengths = {300, 1, 65, 128, 17};
  const TokenRows rows = random_rows(lengths, tiny_vocabulary, 3);
  const auto train = [&](World& world, const TinyModel& which, const StepPlan& plan) {
    Decoder model = make_tiny_model(which);
    ShardedAdamW optimizer(model.parameters(), world.all(), {.epsilon = 1e-2});
    Tracer tracer;
    Engine engine(world, model, &optimizer, plan.cost, tracer, {.head = {.chunk = 50}});
    return engine.train(1, plan, {rows.view(), negative_log_prob()}, 1e-3);
  };
  run_ranks(
      3,
      [&](World& world) {
        World alone({}, {});
        const StepResult expected =
            train(alone, {.head_dim = 32}, one_rank_groups(lengths, 1, {{{0, 1, 2, 3, 4}}}));
        const StepPlan plan =
            plan_of(lengths, 3, {{{0, 3, {0, 1}}}, {{0, 2, {2, 4}}, {2, 1, {3}}}});
        for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
          const double tolerance = dtype == at::kFloat ? 1e-4 : 2e-2;
          const StepResult actual =
              train(world, {.dtype = dtype, .head_dim = 32, .device = gpu}, plan);
          EXPECT_NEAR(actual.loss, expected.loss, tolerance * expected.loss);
          EXPECT_NEAR(actual.grad_norm, expected.grad_norm, 5 * tolerance * expected.grad_norm);
        }
      },
      on_one_gpu());
}

}  // namespace
}  // namespace isochron
