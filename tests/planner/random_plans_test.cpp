// Random steps under every combination of options, through the independent checker.
//
// ISOCHRON_RANDOM_FACTOR multiplies the number of instances; a failure shows seed, question and
// document.

#include <gtest/gtest.h>

#include <exception>
#include <optional>
#include <string>

#include "isochron/check/check.h"
#include "isochron/cost/cost_model.h"
#include "isochron/plan/plan.h"
#include "tests/support/num_instances.h"
#include "tests/support/print_question.h"
#include "tests/support/step_question.h"

namespace isochron {
namespace {

// What is wrong with the answer to a question; nothing if it is what it should be.
std::optional<std::string> find_fault(const StepQuestion& question, StepPlan& plan) {
  try {
    plan = plan_step(question.batch, question.topology, question.cost, question.options);
  } catch (const std::exception& error) {
    return std::string("plan_step() throws: ") + error.what();
  }
  const std::string document = to_json(plan);
  if (step_plan_from_json(document) != plan) return "the document reads as another plan";
  if (plan.options != resolved(question.options, question.topology)) {
    return "the options are not those that were asked for";
  }
  // Limits on activations, and slots without placeholders, may be missed where they can be kept.
  const bool may_be_missed =
      plan.options.max_activation_bytes > 0 || plan.options.short_ != Short::empty;
  if (plan.status == Status::unknown && !may_be_missed) return "no answer: " + plan.reason;
  // Roundings leave very short steps without a bound, and so do sequences that join at the end.
  const auto shortest = 100 * static_cast<Nanoseconds>(question.batch.lengths.size());
  if (plan.options.balance && plan.predicted_step_ns > shortest && plan.lower_bound_ns == 0 &&
      plan.options.short_ != Short::drop && !plan.microbatches.empty()) {
    return "the plan beats its bound";
  }
  return find_violation(document, &question.batch);
}

// With the effort that nobody asked for, of which short steps get less, and costs of a real model:
// what drawn efforts and costs do not reach.
TEST(RandomPlans, PassTheCheckerAsTheyAreAskedForByDefault) {
  for (std::uint64_t seed = 0; seed < num_asked(400); ++seed) {
    StepQuestion question = random_step_question(seed);
    question.options.effort.reset();
    if (seed % 2 == 0)
      question.cost = cost_preset(seed % 4 == 0 ? "qwen3-8b_h100" : "llama-3-8b_h200");
    if (seed % 5 == 0) question.options.context = "dynamic:powers";
    StepPlan plan;
    const auto fault = find_fault(question, plan);
    EXPECT_FALSE(fault) << "seed " << seed << ": " << fault.value_or("") << "\n" << question;
  }
}

TEST(RandomPlans, PassTheChecker) {
  std::uint64_t num_answered = 0;
  std::uint64_t num_optimal = 0;
  std::uint64_t num_unknown = 0;
  const std::uint64_t count = num_asked(20'000);
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    const StepQuestion question = random_step_question(seed);
    StepPlan plan;
    const auto fault = find_fault(question, plan);
    EXPECT_FALSE(fault) << "seed " << seed << ": " << fault.value_or("") << "\n"
                        << question << "\n"
                        << to_json(plan);
    num_answered += plan.microbatches.empty() ? 0 : 1;
    num_optimal += plan.status == Status::optimal ? 1 : 0;
    num_unknown += plan.status == Status::unknown ? 1 : 0;
  }
  EXPECT_LE(num_unknown, count / 100);
  EXPECT_GT(num_answered, count / 2);
  EXPECT_GT(num_optimal, count / 16);
}

}  // namespace
}  // namespace isochron
