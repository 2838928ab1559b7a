#include "isochron/engine/execute/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/support/random_rows.h"
#include "tests/engine/support/tiny_model.h"

namespace isochron {
namespace {

using testing::ThrowsMessage;

// An engine of one rank, without a network.
class OneRankEngine : public testing::Test {
 protected:
  static TokenLoss loss() {
    return [](const TokenOutputs& outputs) { return -outputs.log_prob_T; };
  }

  World world_{Place{}, WorldOptions{}};
  Decoder model_ = make_tiny_model({});
  ShardedAdamW optimizer_{model_.parameters(), world_.all(), AdamWOptions{}};
  Tracer tracer_;
  Engine engine_{world_, model_, &optimizer_, CostModel{}, tracer_, {.capacity = 16}};
  const TokenRows rows_ = random_rows({5, 9, 3, 8}, tiny_vocabulary, 1);
};

TEST_F(OneRankEngine, TrainsTheLossDown) {
  const Update update = {rows_.view(), loss()};
  const StepPlan plan = engine_.plan(update.rows.batch, Pass::train);
  const double first = engine_.train(1, plan, update, 1e-2).loss;
  double last = first;
  for (int step = 2; step <= 30; ++step) last = engine_.train(step, plan, update, 1e-2).loss;
  EXPECT_GT(first, 2);
  EXPECT_LT(last, 0.5 * first);
}

TEST_F(OneRankEngine, EqualStepsGiveEqualBits) {
  const Update update = {rows_.view(), loss()};
  const StepPlan plan = engine_.plan(update.rows.batch, Pass::train);
  Decoder other = make_tiny_model({});
  ShardedAdamW other_optimizer(other.parameters(), world_.all(), AdamWOptions{});
  Engine other_engine(world_, other, &other_optimizer, CostModel{}, tracer_, {.capacity = 16});
  for (int step = 1; step <= 3; ++step) {
    EXPECT_EQ(engine_.train(step, plan, update, 1e-3).loss,
              other_engine.train(step, plan, update, 1e-3).loss);
  }
  for (std::size_t i = 0; i < model_.parameters().size(); ++i) {
    EXPECT_TRUE(at::equal(model_.parameters()[i].value, other.parameters()[i].value));
  }
}

TEST_F(OneRankEngine, DropsInputsInTrainingAloneByTheStep) {
  const Update update = {rows_.view(), loss()};
  const StepPlan plan = engine_.plan(update.rows.batch, Pass::train);
  const double whole = engine_.evaluate(1, plan, update).loss;
  Engine dropping(world_, model_, &optimizer_, CostModel{}, tracer_,
                  {.capacity = 16, .dropout = 0.1, .seed = 3});
  EXPECT_EQ(dropping.evaluate(1, plan, update).loss, whole);
  const auto expected = engine_.scores(1, plan, update.rows);
  const auto scores = dropping.scores(1, plan, update.rows);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(scores.at(i).log_prob, expected[i].log_prob);
  }
  // A learning rate of 0 leaves the weights as they are.
  const double first = dropping.train(1, plan, update, 0).loss;
  EXPECT_NE(first, whole);
  EXPECT_NE(dropping.train(2, plan, update, 0).loss, first);
  EXPECT_EQ(dropping.train(1, plan, update, 0).loss, first);
  Engine of_another_seed(world_, model_, &optimizer_, CostModel{}, tracer_,
                         {.capacity = 16, .dropout = 0.1, .seed = 4});
  EXPECT_NE(of_another_seed.train(1, plan, update, 0).loss, first);
}

TEST_F(OneRankEngine, NothingTrainedIsALossOfZeroAndNoGradient) {
  TokenRows rows = rows_;
  for (auto& mask : rows.loss_mask) std::ranges::fill(mask, 0);
  const Update update = {rows.view(), loss()};
  const StepResult result =
      engine_.train(1, engine_.plan(update.rows.batch, Pass::train), update, 1e-3);
  EXPECT_EQ(result.loss, 0);
  EXPECT_EQ(result.grad_norm, 0);
}

TEST_F(OneRankEngine, MeasuresWhatItDid) {
  const Update update = {rows_.view(), loss()};
  const StepPlan plan = engine_.plan(update.rows.batch, Pass::train);
  const StepResult result = engine_.train(1, plan, update, 1e-3);
  ASSERT_EQ(result.ranks.size(), 1u);
  EXPECT_GT(result.ranks[0].busy_ns, 0);
  EXPECT_GE(result.ranks[0].step_ns, result.ranks[0].busy_ns);
  EXPECT_GT(result.ranks[0].memory.host, 1 << 20);
  std::size_t num_forward = 0;
  std::size_t num_backward = 0;
  for (const TracedScope& scope : tracer_.scopes()) {
    num_forward += scope.name == "forward" ? 1u : 0u;
    num_backward += scope.name == "backward" ? 1u : 0u;
  }
  EXPECT_EQ(num_forward, plan.microbatches.size());
  EXPECT_EQ(num_backward, plan.microbatches.size());
}

TEST_F(OneRankEngine, SaysWhyThereIsNoPlan) {
  Batch batch;
  batch.lengths = {4, 17};
  EXPECT_THAT([&] { (void)engine_.plan(batch, Pass::train); },
              ThrowsMessage<std::invalid_argument>(
                  testing::AllOf(testing::HasSubstr("[engine] there is no plan for these rows: "),
                                 testing::HasSubstr("17"))));
}

TEST_F(OneRankEngine, RejectsPlansThatItCannotExecute) {
  const Update update = {rows_.view(), loss()};
  const auto evaluate = [&](const StepPlan& plan) { (void)engine_.evaluate(1, plan, update); };
  StepPlan plan = engine_.plan(update.rows.batch, Pass::forward);
  plan.topology.ranks = 2;
  EXPECT_THAT([&] { evaluate(plan); }, ThrowsMessage<std::invalid_argument>(
                                           "[engine] the plan is for 2 ranks, there are 1"));
  plan.topology.ranks = 1;
  plan.topology.pipeline.stages = 4;
  EXPECT_THAT([&] { evaluate(plan); },
              ThrowsMessage<std::invalid_argument>(
                  "[engine] the plan has 4 pipeline stages, the engine executes 1"));
  plan.topology.pipeline.stages = 1;
  plan.options.tensor_parallel = 2;
  EXPECT_THAT([&] { evaluate(plan); },
              ThrowsMessage<std::invalid_argument>(
                  "[engine] the plan has tensor_parallel 2, the engine executes 1"));
}

}  // namespace
}  // namespace isochron
