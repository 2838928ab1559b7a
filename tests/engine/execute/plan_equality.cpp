#include "tests/engine/execute/plan_equality.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/support/reference_training.h"

namespace isochron {

namespace {

constexpr double lr = 1e-3;
constexpr std::int64_t seed_of_masks = 42;
constexpr double loss_tolerance = 1e-6;
constexpr double weight_tolerance = 2e-6;  // absolute; weights are below 1, updates below 1e-3

const AdamWOptions optimizer_options = {.epsilon = 1e-2, .weight_decay = 0.1, .bucket_bytes = 2000};

double gradient_tolerance(const PlanCase& given) {
  if (given.model.dtype == at::kDouble) return 5e-6;
  const bool has_groups = std::ranges::any_of(given.plan.microbatches, [](const Slot& slot) {
    return std::ranges::any_of(slot,
                               [](const ContextGroup& group) { return group.ranks.size > 1; });
  });
  return has_groups ? 3e-5 : 1e-5;
}

// Compares what this rank holds of the gradient with the reference. `tolerance` is relative to the
// largest gradient of a tensor.
void expect_gradients(ShardedAdamW& optimizer, const ReferenceUpdate& expected, double tolerance) {
  for (const StatePiece& piece : optimizer.gradients()) {
    SCOPED_TRACE(piece.parameter);
    const at::Tensor whole = expected.gradients.at(piece.parameter).flatten();
    const at::Tensor part = whole.slice(0, piece.begin, piece.begin + piece.values.numel());
    const double largest = whole.abs().max().item<double>();
    const double error = (piece.values.to(at::kDouble) - part).abs().max().item<double>();
    EXPECT_LE(error, tolerance * largest + 1e-12);
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

void expect_scores(const Engine& engine, const std::vector<RowScores>& scores,
                   const TokenRows& rows, ReferenceTraining& reference) {
  ASSERT_EQ(scores.size(), rows.tokens.size());
  for (std::size_t row = 0; row < scores.size(); ++row) {
    const ReferenceScores expected = reference.scores(rows.tokens[row]);
    ASSERT_EQ(scores[row].log_probs.size(), expected.log_probs.size());
    for (std::size_t t = 0; t < expected.log_probs.size(); ++t) {
      ASSERT_NEAR(scores[row].log_probs[t], expected.log_probs[t], 1e-4)
          << "row " << row << ", token " << t;
      if (!engine.options().head.entropy) continue;
      ASSERT_NEAR(scores[row].entropies[t], expected.entropies[t], 1e-4)
          << "row " << row << ", token " << t;
    }
  }
}

}  // namespace

TokenLoss negative_log_prob() {
  return [](const TokenOutputs& outputs) { return -outputs.log_prob_T; };
}

void train_and_compare(World& world, const PlanCase& given) {
  Decoder model = make_tiny_model(given.model);
  const double tolerance = gradient_tolerance(given);
  TinyModel precise = given.model;
  precise.dtype = at::kDouble;
  precise.recompute = Recompute::none;
  Decoder reference_model = make_tiny_model(precise);
  ReferenceTraining reference(reference_model, optimizer_options);
  ShardedAdamW optimizer(model.parameters(), world.all(), optimizer_options);
  Tracer tracer;
  Engine engine(world, model, &optimizer, given.plan.cost, tracer,
                {.head = {.chunk = 7, .entropy = given.model.tied},
                 .context = given.context,
                 .dropout = given.dropout,
                 .seed = seed_of_masks});

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
    expect_gradients(optimizer, expected, tolerance);
  }
  expect_weights(model, reference_model);

  const StepResult evaluated =
      engine.evaluate(3, given.plan, {given.rows.view(), negative_log_prob()});
  EXPECT_NEAR(evaluated.loss, reference.loss(given.rows), 1e-5);
  const std::vector<TokenScore> own = engine.scores(3, given.plan, given.rows.view());
  expect_scores(engine, engine.gather_scores(given.plan, own), given.rows, reference);
}

}  // namespace isochron
