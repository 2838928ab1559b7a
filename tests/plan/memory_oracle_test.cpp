// Limits on activations, beside all plans of tiny batches: whenever one keeps the limit, the
// planner finds one that does.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "isochron/check/check.h"
#include "isochron/plan/plan.h"
#include "tests/oracle/best_plan.h"
#include "tests/plan/tiny_question.h"
#include "tests/support/num_instances.h"
#include "tests/support/print_question.h"

namespace isochron {
namespace {

// A question with a limit between what its longest sequence takes on the widest group and what the
// plan without a limit takes.
StepQuestion limited_question(std::uint64_t seed, const QuestionShape& shape) {
  StepQuestion question = random_question(seed, shape);
  question.cost.activation_bytes_per_token = 1000;
  const StepPlan free =
      plan_step(question.batch, question.topology, question.cost, question.options);
  if (free.microbatches.empty()) return question;
  const PipelineShape& pipeline = question.topology.pipeline;
  double share = 1.0 / pipeline.stages;
  for (std::size_t i = 0; i < pipeline.shares.size(); ++i) {
    share = std::max(share, pipeline.shares[i] * pipeline.virtual_);
  }
  const bool is_dynamic = shape.options.context != "static:1";
  const Tokens longest =
      *std::max_element(question.batch.lengths.begin(), question.batch.lengths.end());
  const double least =
      static_cast<double>(longest) * 1000 * share / (is_dynamic ? question.topology.ranks : 1);
  const auto most = static_cast<double>(
      *std::max_element(free.peak_activation_bytes.begin(), free.peak_activation_bytes.end()));
  const double part = Random(seed + 1'000'000).unit();
  question.options.max_activation_bytes =
      std::max<std::int64_t>(1, std::llround(least + part * part * (most - least)));
  return question;
}

// What is reached, with a margin: prediction over optimum.
constexpr double most_mean = 1.1;
constexpr double most_ratio = 1.3;

void expect_found(const std::string& name, const QuestionShape& shape) {
  int num_found = 0;
  int num_none = 0;
  int num_proved = 0;
  double sum = 0;
  double worst = 1;
  for (const std::uint64_t seed : seeds_asked(8, {})) {
    const StepQuestion question = limited_question(seed, shape);
    if (question.options.max_activation_bytes == 0) continue;
    SCOPED_TRACE(testing::Message() << name << ", seed " << seed << ": " << question);
    const auto best = oracle::best_step_time(question.batch, question.topology, question.cost,
                                             resolved(question.options, question.topology));
    const StepPlan plan =
        plan_step(question.batch, question.topology, question.cost, question.options);
    EXPECT_EQ(find_violation(to_json(plan), &question.batch), std::nullopt);
    if (!best) {
      EXPECT_TRUE(plan.microbatches.empty());
      ++num_none;
      num_proved += plan.status == Status::infeasible ? 1 : 0;
      continue;
    }
    EXPECT_FALSE(plan.microbatches.empty()) << plan.reason << ", best " << *best;
    if (plan.microbatches.empty()) continue;
    EXPECT_LE(plan.lower_bound_ns, *best);
    EXPECT_GE(plan.predicted_step_ns, *best);
    const double ratio = static_cast<double>(plan.predicted_step_ns) / static_cast<double>(*best);
    EXPECT_LE(ratio, most_ratio);
    sum += ratio;
    worst = std::max(worst, ratio);
    ++num_found;
  }
  if (is_sampled) return;
  ASSERT_GT(num_found, 0);
  std::printf("%-48s %d with a plan: mean %.4f, max %.4f; %d without, %d proved\n", name.c_str(),
              num_found, sum / num_found, worst, num_none, num_proved);
  EXPECT_LE(sum / num_found, most_mean);
}

// Both kinds of waiting, and stages of equal and of different sizes.
void expect_found_with(const std::string& name, QuestionShape shape) {
  shape.has_wide_choice = shape.options.context != "static:1";
  for (const Sync sync : {Sync::step, Sync::microbatch}) {
    for (const bool has_shares : {false, true}) {
      shape.options.sync = sync;
      shape.has_shares = has_shares;
      expect_found(name + (has_shares ? " with shares, " : ", ") + shape.options.context + ", " +
                       std::string(name_of(sync)),
                   shape);
    }
  }
}

TEST(MemoryOracle, Stages) {
  for (const char* context : {"static:1", "dynamic", "dynamic:any"}) {
    for (const std::int32_t stages : {2, 3}) {
      expect_found_with(std::to_string(stages) + " stages", {.most_sequences = 4,
                                                             .most_ranks = 3,
                                                             .options = {.context = context},
                                                             .stages = stages});
    }
  }
}

TEST(MemoryOracle, VirtualStages) {
  for (const char* context : {"static:1", "dynamic", "dynamic:any"}) {
    expect_found_with("2 by 2 stages", {.most_sequences = 4,
                                        .most_ranks = 3,
                                        .options = {.context = context},
                                        .stages = 2,
                                        .virtual_ = 2,
                                        .group = 2});
  }
}

TEST(MemoryOracle, ForwardOnly) {
  expect_found_with("3 stages, forward", {.most_sequences = 4,
                                          .most_ranks = 3,
                                          .options = {.context = "dynamic", .pass = Pass::forward},
                                          .stages = 3});
}

}  // namespace
}  // namespace isochron
