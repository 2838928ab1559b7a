// The central property: loss, every gradient and the updated weights do not depend on the plan.
//
// The reference is fp64, one rank, one sequence at a time. The engine runs in fp32; a gradient may
// differ from the reference by 1e-5 of the largest one of its tensor, the loss by 1e-6 of itself.
// An AdamW with a large epsilon makes weights depend on gradients smoothly, and on their scale.

#include <gtest/gtest.h>

#include <algorithm>

#include "isochron/check/check.h"
#include "isochron/core/random.h"
#include "isochron/engine/execute/engine.h"
#include "tests/engine/support/random_rows.h"
#include "tests/engine/support/reference_training.h"
#include "tests/engine/support/tiny_model.h"
#include "tests/support/process_ranks.h"
#include "tests/support/random_plan.h"

namespace isochron {
namespace {

constexpr double lr = 1e-3;
constexpr double gradient_tolerance = 1e-5;  // of the largest gradient of a tensor
constexpr double loss_tolerance = 1e-6;
constexpr double weight_tolerance = 2e-6;  // absolute; weights are below 1, updates below 1e-3

const AdamWOptions optimizer_options = {.epsilon = 1e-2, .weight_decay = 0.1, .bucket_bytes = 2000};

TokenLoss negative_log_prob() {
  return [](const TokenOutputs& outputs) { return -outputs.log_prob_T; };
}

// Compares what this rank holds of the gradient with the reference.
void expect_gradients(ShardedAdamW& optimizer, const ReferenceUpdate& expected) {
  for (const StatePiece& piece : optimizer.gradients()) {
    SCOPED_TRACE(piece.parameter);
    const at::Tensor whole = expected.gradients.at(piece.parameter).flatten();
    const at::Tensor part = whole.slice(0, piece.begin, piece.begin + piece.values.numel());
    const double largest = whole.abs().max().item<double>();
    const double error = (piece.values.to(at::kDouble) - part).abs().max().item<double>();
    EXPECT_LE(error, gradient_tolerance * largest + 1e-12);
  }
}

void expect_weights(const Decoder& model, const Decoder& reference) {
  for (std::size_t i = 0; i < model.parameters().size(); ++i) {
    SCOPED_TRACE(model.parameters()[i].name);
    const at::Tensor difference =
        model.parameters()[i].value.to(at::kDouble) - reference.parameters()[i].value;
    EXPECT_LE(difference.abs().max().item<double>(), weight_tolerance);
  }
}

constexpr std::int64_t seed_of_masks = 42;

struct Case {
  TinyModel model;
  StepPlan plan;
  TokenRows rows;
  double dropout = 0;
};

// Three updates with one plan, each with masks of its own; then a look without any.
void train_and_compare(World& world, const Case& given) {
  Decoder model = make_tiny_model(given.model);
  TinyModel precise = given.model;
  precise.dtype = at::kDouble;
  precise.recompute = Recompute::none;
  Decoder reference_model = make_tiny_model(precise);
  ReferenceTraining reference(reference_model, optimizer_options);
  ShardedAdamW optimizer(model.parameters(), world.all(), optimizer_options);
  Tracer tracer;
  Engine engine(world, model, &optimizer, given.plan.cost, tracer,
                {.head = {.chunk = 7}, .dropout = given.dropout, .seed = seed_of_masks});

  for (int update = 0; update < 3; ++update) {
    SCOPED_TRACE(testing::Message() << "update " << update);
    const ReferenceUpdate expected = reference.update(
        given.rows, lr, {.probability = given.dropout, .seed = seed_of_masks, .step = update});
    const StepResult result =
        engine.train(update, given.plan, {given.rows.view(), negative_log_prob()}, lr);
    EXPECT_FALSE(result.skipped);
    EXPECT_NEAR(result.loss, expected.loss, loss_tolerance * expected.loss);
    EXPECT_NEAR(result.grad_norm, expected.grad_norm, 1e-5 * expected.grad_norm + 1e-12);
    EXPECT_EQ(result.ranks.size(), static_cast<std::size_t>(world.place().size));
    expect_gradients(optimizer, expected);
  }
  expect_weights(model, reference_model);

  const StepResult evaluated =
      engine.evaluate(3, given.plan, {given.rows.view(), negative_log_prob()});
  EXPECT_NEAR(evaluated.loss, reference.loss(given.rows), 1e-5);
  const auto log_probs = engine.log_probs(3, given.plan, given.rows.view());
  ASSERT_EQ(log_probs.size(), given.rows.tokens.size());
  for (std::size_t row = 0; row < log_probs.size(); ++row) {
    const std::vector<double> expected = reference.log_probs(given.rows.tokens[row]);
    ASSERT_EQ(log_probs[row].size(), expected.size());
    for (std::size_t t = 0; t < expected.size(); ++t) {
      ASSERT_NEAR(log_probs[row][t], expected[t], 1e-4) << "row " << row << ", token " << t;
    }
  }
}

StepPlan random_plan_for(std::int32_t ranks, std::uint64_t seed) {
  return random_plan(seed, {.ranks = ranks,
                            .context = "static:1",
                            .pass = Pass::train,
                            .keep_groups = KeepGroups::none,
                            .oversize = Oversize::error,
                            .short_ = Short::empty,
                            .tensor_parallel = 1,
                            .stages = 1,
                            .virtual_ = 1,
                            .capacity = 48,
                            .num_sequences = 14});
}

// A plan by hand: the sequences of each slot and rank.
StepPlan plan_of(const std::vector<Tokens>& lengths, std::int32_t ranks,
                 const std::vector<std::vector<std::vector<int>>>& slots) {
  StepPlan plan;
  plan.status = Status::feasible;
  plan.topology = {.ranks = ranks, .capacity = 1000};
  plan.options = resolved({}, plan.topology);
  plan.batch.lengths = lengths;
  plan.peak_activation_bytes.assign(static_cast<std::size_t>(ranks), 0);
  for (const auto& ranks_of_slot : slots) {
    Slot slot;
    for (std::size_t rank = 0; rank < ranks_of_slot.size(); ++rank) {
      if (ranks_of_slot[rank].empty()) continue;
      ContextGroup group;
      group.ranks = {static_cast<std::int64_t>(rank), 1};
      for (const int sequence : ranks_of_slot[rank]) group.sequences.emplace_back(sequence);
      slot.push_back(group);
    }
    plan.microbatches.push_back(slot);
  }
  return plan;
}

void train_random_plans(World& world) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", ranks " << world.place().size);
    const StepPlan plan = random_plan_for(world.place().size, seed);
    ASSERT_EQ(find_violation(to_json(plan)), std::nullopt);
    const TinyModel model = {
        .tied = seed % 2 == 0, .seed = seed, .recompute = static_cast<Recompute>(seed % 3)};
    const double dropout = seed % 4 < 2 ? 0.1 : 0;
    train_and_compare(
        world, {model, plan, random_rows(plan.batch.lengths, tiny_vocabulary, seed), dropout});
  }
}

void train_forced_cases(World& world) {
  const std::vector<Tokens> lengths = {9, 1, 5, 2, 7};
  const TokenRows rows = random_rows(lengths, tiny_vocabulary, 5);
  {
    SCOPED_TRACE("different counts, a sequence of one token alone");
    const StepPlan plan = plan_of(lengths, 2, {{{0, 3}, {1}}, {{2}, {}}, {{4}, {}}});
    train_and_compare(world, {{}, plan, rows});
  }
  {
    SCOPED_TRACE("a rank without work");
    const StepPlan plan = plan_of(lengths, 2, {{{}, {0, 1, 2}}, {{}, {3, 4}}});
    train_and_compare(world, {{.tied = true}, plan, rows});
  }
  {
    SCOPED_TRACE("nothing trained on one rank");
    TokenRows half = rows;
    for (const std::size_t row : {0, 1, 2}) std::ranges::fill(half.loss_mask[row], 0);
    const StepPlan plan = plan_of(lengths, 2, {{{0, 1, 2}, {3, 4}}});
    train_and_compare(world, {{}, plan, half});
  }
  {
    SCOPED_TRACE("padding rows, beside others and alone");
    StepPlan plan = plan_of(lengths, 2, {{{0, 5, 1}, {6}}, {{2}, {3, 4}}});
    plan.padding_rows = 2;
    train_and_compare(world, {{}, plan, rows, 0.1});
  }
  {
    SCOPED_TRACE("one slot, everything on it");
    train_and_compare(world, {{}, plan_of(lengths, 2, {{{0, 1, 2}, {3, 4}}}), rows});
  }
}

TEST(PlanEquality, HoldsForRandomPlansOnOneRank) { run_ranks(1, train_random_plans); }
TEST(PlanEquality, HoldsForRandomPlansOnTwoRanks) { run_ranks(2, train_random_plans); }
TEST(PlanEquality, HoldsForRandomPlansOnThreeRanks) { run_ranks(3, train_random_plans); }
TEST(PlanEquality, HoldsForRandomPlansOnFourRanks) { run_ranks(4, train_random_plans); }
TEST(PlanEquality, HoldsForForcedCases) { run_ranks(2, train_forced_cases); }

TEST(PlanEquality, RanksWithDifferentPlansStopWithTheSameMessage) {
  run_ranks(3, [](World& world) {
    const std::vector<Tokens> lengths = {3, 4, 5};
    const StepPlan plan = world.place().rank == 2 ? plan_of(lengths, 3, {{{0}, {1}, {2}}})
                                                  : plan_of(lengths, 3, {{{1}, {0}, {2}}});
    Decoder model = make_tiny_model({});
    Tracer tracer;
    Engine engine(world, model, nullptr, plan.cost, tracer, {});
    const TokenRows rows = random_rows(lengths, tiny_vocabulary, 1);
    try {
      (void)engine.evaluate(7, plan, {rows.view(), negative_log_prob()});
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(),
                   "[engine] the plan of step 7 differs between ranks: that of rank 0 from that of "
                   "2");
    }
  });
}

TEST(PlanEquality, OneRankThatWantsToStopStopsAll) {
  run_ranks(3, [](World& world) {
    const std::vector<Tokens> lengths = {3, 4, 5};
    const StepPlan plan = plan_of(lengths, 3, {{{0}, {1}, {2}}});
    Decoder model = make_tiny_model({});
    Tracer tracer;
    Engine engine(world, model, nullptr, plan.cost, tracer, {});
    const TokenRows rows = random_rows(lengths, tiny_vocabulary, 1);
    (void)engine.evaluate(1, plan, {rows.view(), negative_log_prob()});
    EXPECT_FALSE(engine.stop_agreed());
    if (world.place().rank == 1) engine.ask_to_stop();
    EXPECT_FALSE(engine.stop_agreed());
    (void)engine.evaluate(2, plan, {rows.view(), negative_log_prob()});
    EXPECT_TRUE(engine.stop_agreed());
  });
}

}  // namespace
}  // namespace isochron
