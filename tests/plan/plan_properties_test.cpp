// What holds for every plan, on random questions.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "isochron/check/check.h"
#include "isochron/plan/baselines.h"
#include "isochron/plan/plan.h"
#include "tests/support/equal_on_threads.h"
#include "tests/support/print_question.h"
#include "tests/support/step_question.h"

namespace isochron {
namespace {

StepPlan answer(const StepQuestion& question) {
  return plan_step(question.batch, question.topology, question.cost, question.options);
}

double ratio(Nanoseconds a, Nanoseconds b) {
  return b == 0 ? 1 : static_cast<double>(a) / static_cast<double>(b);
}

bool has_plan(const StepPlan& plan) { return !plan.microbatches.empty(); }

TEST(PlanProperties, APlanIsOptimalIfAndOnlyIfItMeetsItsBound) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const StepPlan plan = answer(random_step_question(seed));
    if (!has_plan(plan)) continue;
    EXPECT_LE(plan.lower_bound_ns, plan.predicted_step_ns) << "seed " << seed;
    EXPECT_EQ(plan.status == Status::optimal, plan.lower_bound_ns == plan.predicted_step_ns)
        << "seed " << seed;
  }
}

// Searches take other paths with more effort, and so a plan may be slower now and then.
TEST(PlanProperties, MoreEffortIsFasterOnAverage) {
  int num_compared = 0;
  int num_slower = 0;
  double sum = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    StepQuestion question = random_step_question(seed);
    question.options.effort = 300;
    const StepPlan little = answer(question);
    question.options.effort = 10'000;
    const StepPlan much = answer(question);
    EXPECT_EQ(has_plan(little), has_plan(much)) << "seed " << seed << ": " << question;
    if (!has_plan(little) || little.dropped != much.dropped) continue;
    ++num_compared;
    num_slower += much.predicted_step_ns > little.predicted_step_ns ? 1 : 0;
    sum += ratio(much.predicted_step_ns, little.predicted_step_ns);
  }
  EXPECT_LE(num_slower, num_compared / 50);
  EXPECT_LT(sum / num_compared, 0.999);
}

TEST(PlanProperties, GroupsOfAnySizeAreFasterThanAlignedOnesOnAverage) {
  int num_compared = 0;
  int num_slower = 0;
  double sum = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    StepQuestion question = random_step_question(seed);
    if (question.topology.pipeline.stages > 1) continue;
    question.options.short_ = Short::empty;
    question.options.balance = true;
    question.options.effort.reset();
    question.options.oversize.reset();
    question.options.context = "dynamic";
    const StepPlan aligned = answer(question);
    question.options.context = "dynamic:any";
    const StepPlan any = answer(question);
    if (!has_plan(aligned)) continue;
    ASSERT_TRUE(has_plan(any)) << "seed " << seed << ": " << any.reason;
    ++num_compared;
    num_slower += any.predicted_step_ns > aligned.predicted_step_ns ? 1 : 0;
    sum += ratio(any.predicted_step_ns, aligned.predicted_step_ns);
  }
  EXPECT_LE(num_slower, num_compared / 15);
  EXPECT_LT(sum / num_compared, 0.999);
}

TEST(PlanProperties, NoDynamicPlanIsSlowerThanAStaticOne) {
  int num_compared = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    StepQuestion question = random_step_question(seed);
    if (question.topology.pipeline.stages > 1) continue;
    question.options = {.context = seed % 2 == 0 ? "dynamic" : "dynamic:any",
                        .sync = question.options.sync,
                        .counts = question.options.counts,
                        .pass = question.options.pass,
                        .max_sequences = question.options.max_sequences,
                        .tensor_parallel = question.options.tensor_parallel,
                        .keep_groups = question.options.keep_groups};
    const StepPlan plan = answer(question);
    if (!has_plan(plan)) continue;
    for (std::int32_t size = 1; size <= question.topology.ranks; ++size) {
      if (question.topology.ranks % size != 0) continue;
      question.options.context = "static:" + std::to_string(size);
      const StepPlan other = answer(question);
      if (!has_plan(other)) continue;
      ++num_compared;
      EXPECT_LE(plan.predicted_step_ns, other.predicted_step_ns)
          << "seed " << seed << ", " << plan.options.context << " against: " << question;
    }
  }
  EXPECT_GT(num_compared, 300);
}

// The baselines are compared where they keep all that was asked.
TEST(PlanProperties, NoPlanIsSlowerThanWhatItReplaces) {
  int num_compared = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    StepQuestion question = random_step_question(seed);
    if (question.topology.pipeline.stages > 1 || question.cost.context[0].links.size() < 2)
      continue;
    question.options.balance = true;
    question.options.effort.reset();
    const StepPlan plan = answer(question);
    if (!has_plan(plan) || !plan.dropped.empty()) continue;
    const auto compare = [&](const char* name, StepPlan other) {
      if (!has_plan(other)) return;
      // The baselines have options of their own: this must be an answer to the same question.
      other.options = plan.options;
      other.options.balance = false;
      if (find_violation(to_json(other), &question.batch)) return;
      ++num_compared;
      EXPECT_LE(plan.predicted_step_ns, other.predicted_step_ns)
          << name << ", seed " << seed << ": " << question;
    };
    const auto& [batch, topology, cost, options] = question;
    compare("naive", naive_plan(batch, topology, cost, options));
    compare("verl", verl_plan(batch, topology, cost, options));
  }
  EXPECT_GT(num_compared, 300);
}

TEST(PlanProperties, EqualQuestionsHaveEqualAnswersOnEveryThread) {
  expect_equal_on_threads([] {
    std::vector<std::string> documents;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      documents.push_back(to_json(answer(random_step_question(seed))));
    }
    return documents;
  });
}

}  // namespace
}  // namespace isochron
