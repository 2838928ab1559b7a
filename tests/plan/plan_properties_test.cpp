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

TEST(PlanProperties, MoreEffortIsNeverSlower) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    StepQuestion question = random_step_question(seed);
    Nanoseconds before = 0;
    for (const std::int64_t effort : {0, 300, 3000, 30'000}) {
      question.options.effort = effort;
      const StepPlan plan = answer(question);
      if (before > 0 && plan.dropped.empty()) {
        EXPECT_LE(plan.predicted_step_ns, before)
            << "seed " << seed << ", effort " << effort << ": " << question;
      }
      before = plan.predicted_step_ns;
    }
  }
}

TEST(PlanProperties, GroupsOfAnySizeAreNeverSlowerThanAlignedOnes) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    StepQuestion question = random_step_question(seed);
    if (question.topology.pipeline.stages > 1 || question.options.short_ != Short::empty) continue;
    question.options.balance = true;
    question.options.effort.reset();
    question.options.oversize.reset();
    question.options.context = "dynamic";
    const StepPlan aligned = answer(question);
    question.options.context = "dynamic:any";
    const StepPlan any = answer(question);
    if (!has_plan(aligned)) continue;
    ASSERT_TRUE(has_plan(any)) << "seed " << seed << ": " << any.reason;
    EXPECT_LE(any.predicted_step_ns, aligned.predicted_step_ns)
        << "seed " << seed << ": " << question;
  }
}

// The baselines are compared where they keep all that was asked.
TEST(PlanProperties, NoPlanIsSlowerThanWhatItReplaces) {
  int num_compared = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    StepQuestion question = random_step_question(seed);
    if (question.topology.pipeline.stages > 1) continue;
    question.options.balance = true;
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
