// Plans of tiny batches beside the best of all plans: bound <= optimum <= prediction.

#include <gtest/gtest.h>

#include <cstdio>
#include <vector>

#include "isochron/check/check.h"
#include "isochron/plan/plan.h"
#include "tests/oracle/best_plan.h"
#include "tests/plan/tiny_question.h"
#include "tests/support/num_instances.h"
#include "tests/support/print_question.h"

namespace isochron {
namespace {

// Prediction over optimum, of a family of questions.
struct Aim {
  double mean = 1;
  double max = 1;
};

// What the searches reach, with a margin, so that a loss is noticed.
constexpr Aim exact = {1, 1};
constexpr Aim nearly_exact = {1.0005, 1.005};
constexpr Aim nested = {1.001, 1.06};      // groups that nest nearly, whose members alone wait
constexpr Aim crossing = {1.001, 1.04};    // groups of any size, which cross each other
constexpr Aim lockstep = {1.0001, 1.01};   // all ranks wait after every slot
constexpr Aim equal = {1.001, 1.03};       // as many micro-batches on every rank
constexpr Aim full = {1.003, 1.1};         // and none of them without sequences
constexpr Aim restricted = {1.002, 1.06};  // further rules
constexpr Aim pipelined = {1.002, 1.03};
constexpr Aim interleaved = {1.002, 1.035};  // virtual stages
constexpr Aim interleaved_pairs = {1.007, 1.06};
// Some steps take 10 ms, and get less than one to be planned.
constexpr Aim pipelined_in_haste = {1.01, 1.1};

void expect_bracketed(const StepQuestion& question, const StepPlan& plan, Nanoseconds best) {
  EXPECT_LE(plan.lower_bound_ns, best);
  EXPECT_GE(plan.predicted_step_ns, best);
  EXPECT_EQ(plan.status == Status::optimal, plan.predicted_step_ns == plan.lower_bound_ns);
  EXPECT_EQ(find_violation(to_json(plan), &question.batch), std::nullopt);
}

void expect_near_the_best(const char* name, const QuestionShape& shape, Aim aim,
                          std::uint64_t standard = 200,
                          const std::vector<std::uint64_t>& others = {}) {
  const std::vector<std::uint64_t> seeds = seeds_asked(standard, others);
  double sum = 0;
  double worst = 1;
  int num_feasible = 0;
  int num_best = 0;
  int num_proved = 0;
  for (const std::uint64_t seed : seeds) {
    const StepQuestion question = random_question(seed, shape);
    SCOPED_TRACE(testing::Message() << name << ", seed " << seed << ": " << question);
    const auto best = oracle::best_step_time(question.batch, question.topology, question.cost,
                                             resolved(question.options, question.topology));
    const StepPlan plan =
        plan_step(question.batch, question.topology, question.cost, question.options);
    if (!best) {
      // That prompts which keep their ranks fill no slots, counting does not always prove.
      const bool is_searched = question.options.keep_groups == KeepGroups::rank &&
                               question.options.short_ != Short::empty;
      EXPECT_TRUE(plan.status == Status::infeasible ||
                  (is_searched && plan.status == Status::unknown))
          << name_of(plan.status);
      continue;
    }
    EXPECT_TRUE(plan.status == Status::optimal || plan.status == Status::feasible)
        << name_of(plan.status) << " " << plan.reason << ", best " << *best;
    if (plan.microbatches.empty()) continue;
    expect_bracketed(question, plan, *best);
    const double ratio = static_cast<double>(plan.predicted_step_ns) / static_cast<double>(*best);
    if (!is_sampled) {
      EXPECT_LE(ratio, aim.max);
    }
    sum += ratio;
    worst = std::max(worst, ratio);
    num_feasible += 1;
    num_best += plan.predicted_step_ns == *best ? 1 : 0;
    num_proved += plan.status == Status::optimal ? 1 : 0;
  }
  if (is_sampled) return;
  ASSERT_GT(num_feasible, 0);
  const double mean = sum / num_feasible;
  std::printf("%-44s %4d of %4d feasible: mean %.5f, max %.5f, %d best, %d proved\n", name,
              num_feasible, static_cast<int>(seeds.size()), mean, worst, num_best, num_proved);
  EXPECT_LE(mean, aim.mean) << name;
}

const std::string aligned = "dynamic";
const std::string any = "dynamic:any";

TEST(PlanOracle, StepWithOneRankASequence) {
  expect_near_the_best("step, static:1", {.most_sequences = 9, .has_wide_choice = false}, exact);
}

TEST(PlanOracle, StepWithFixedGroups) {
  expect_near_the_best("step, static:2", {.options = {.context = "static:2"}}, exact);
  expect_near_the_best("step, static:3", {.options = {.context = "static:3"}}, nearly_exact, 100);
}

TEST(PlanOracle, StepWithAlignedGroups) {
  expect_near_the_best("step, aligned, 8 ranks",
                       {.most_sequences = 10, .least_ranks = 8, .options = {.context = aligned}},
                       exact, 300);
  expect_near_the_best("step, aligned, 1 to 8 ranks", {.options = {.context = aligned}}, nested);
}

TEST(PlanOracle, StepWithGroupsOfAnySize) {
  expect_near_the_best("step, any, 8 ranks",
                       {.most_sequences = 8, .least_ranks = 8, .options = {.context = any}},
                       crossing);
  expect_near_the_best("step, any, 8 ranks, 10 sequences",
                       {.most_sequences = 10, .least_ranks = 8, .options = {.context = any}},
                       crossing, 40);
  expect_near_the_best("step, any, 1 to 7 ranks",
                       {.most_sequences = 8, .most_ranks = 7, .options = {.context = any}},
                       crossing);
}

TEST(PlanOracle, Microbatch) {
  const auto shape = [](const std::string& context) {
    return QuestionShape{.most_sequences = 10,
                         .options = {.context = context, .sync = Sync::microbatch},
                         .has_wide_choice = context != "static:1"};
  };
  expect_near_the_best("microbatch, static:1", shape("static:1"), exact);
  expect_near_the_best("microbatch, static:2", shape("static:2"), nearly_exact);
  expect_near_the_best("microbatch, aligned", shape(aligned), lockstep, 150, {536});
  expect_near_the_best("microbatch, any", shape(any), lockstep, 150);
}

TEST(PlanOracle, EqualCounts) {
  const auto shape = [](const std::string& context, Short short_) {
    return QuestionShape{.most_sequences = 5,
                         .most_ranks = 6,
                         .options = {.context = context, .counts = Counts::equal, .short_ = short_},
                         .has_wide_choice = context != "static:1"};
  };
  expect_near_the_best("step, equal counts, static:1", shape("static:1", Short::empty), exact);
  expect_near_the_best("step, equal counts, aligned", shape(aligned, Short::empty), equal, 100,
                       {451});
  expect_near_the_best("step, equal counts, any", shape(any, Short::empty), equal, 100);
  expect_near_the_best("step, equal counts, short error", shape("static:1", Short::error), exact);
  expect_near_the_best("step, equal counts, short drop", shape("static:1", Short::drop), exact);
  for (const Short short_ : {Short::error, Short::drop}) {
    const std::string name = ", short " + std::string(name_of(short_));
    expect_near_the_best(("step, aligned" + name).c_str(), shape(aligned, short_), full, 100);
    expect_near_the_best(("step, any" + name).c_str(), shape(any, short_), full, 100);
  }
  QuestionShape waiting = shape("static:1", Short::drop);
  waiting.options.sync = Sync::microbatch;
  expect_near_the_best("microbatch, short drop", waiting, exact);
  waiting.options.short_ = Short::error;
  expect_near_the_best("microbatch, short error", waiting, exact);
}

// Each policy with both kinds of waiting.
void expect_near_the_best_with(const std::string& name, QuestionShape shape, Aim aim = restricted,
                               std::uint64_t num_questions = 100,
                               const std::vector<std::uint64_t>& others = {}) {
  for (const Sync sync : {Sync::step, Sync::microbatch}) {
    shape.options.sync = sync;
    expect_near_the_best((std::string(name_of(sync)) + ", " + name).c_str(), shape, aim,
                         num_questions, others);
  }
}

// A policy of plans, beside the mode.
struct Policy {
  const char* name;
  QuestionShape shape;
  Aim aim = pipelined;
  std::vector<std::uint64_t> others = {};  // seeds
};

TEST(PlanOracle, FewSequencesAMicrobatch) {
  expect_near_the_best_with("max_sequences", {.options = {.context = aligned, .max_sequences = 2}});
}

TEST(PlanOracle, TensorParallel) {
  expect_near_the_best_with("tensor_parallel",
                            {.options = {.context = aligned, .tensor_parallel = 4}});
}

TEST(PlanOracle, LimitsOnTheSizeOfGroups) {
  expect_near_the_best_with(
      "min, max context",
      {.least_ranks = 4,
       .options = {.context = aligned, .min_context_size = 2, .max_context_size = 4}});
  // Of which two that hold three of four ranks cross.
  expect_near_the_best_with("any, max context",
                            {.least_ranks = 3, .options = {.context = any, .max_context_size = 3}},
                            restricted, 100, {266});
  // Ranks that the smallest groups leave over.
  expect_near_the_best_with("any, min context",
                            {.least_ranks = 3, .options = {.context = any, .min_context_size = 2}});
}

TEST(PlanOracle, OversizedAlone) {
  expect_near_the_best_with(
      "alone, static:1", {.options = {.context = "static:1", .oversize = Oversize::alone}}, exact);
  expect_near_the_best_with("alone, aligned",
                            {.options = {.context = aligned, .oversize = Oversize::alone}});
}

TEST(PlanOracle, KeptGroups) {
  for (const std::string& context : {std::string("static:1"), aligned}) {
    QuestionShape shape{.most_ranks = 6, .options = {.context = context}, .has_groups = true};
    shape.has_wide_choice = context == aligned;
    shape.options.keep_groups = KeepGroups::rank;
    expect_near_the_best_with("keep rank, " + context, shape,
                              context == aligned ? restricted : nearly_exact, 100, {282, 359});
    shape.options.keep_groups = KeepGroups::microbatch;
    expect_near_the_best_with("keep microbatch, " + context, shape,
                              context == aligned ? restricted : exact);
  }
}

TEST(PlanOracle, KeptGroupsOfAnySize) {
  QuestionShape shape{.most_ranks = 5, .options = {.context = any}, .has_groups = true};
  shape.options.keep_groups = KeepGroups::rank;
  expect_near_the_best_with("keep rank, any", shape, restricted, 100);
}

TEST(PlanOracle, EveryPolicyOnGroupsOfAnySize) {
  const Policy policies[] = {
      {"keep microbatch",
       {.options = {.keep_groups = KeepGroups::microbatch}, .has_groups = true},
       restricted},
      {"tensor_parallel", {.options = {.tensor_parallel = 4}}, restricted},
      {"max_sequences", {.options = {.max_sequences = 2}}, restricted},
      {"forward", {.options = {.pass = Pass::forward}}, restricted},
      {"alone", {.options = {.oversize = Oversize::alone}}, restricted},
      {"extra costs", {.has_extra_costs = true}, restricted},
      {"slow ranks", {.has_speeds = true}, {1.003, 1.08}},
  };
  for (const Policy& policy : policies) {
    QuestionShape shape = policy.shape;
    shape.most_ranks = 5;
    shape.options.context = any;
    expect_near_the_best_with(std::string(policy.name) + ", any", shape, policy.aim, 60);
  }
}

TEST(PlanOracle, KeptGroupsWithEqualCounts) {
  for (const std::string& context : {std::string("static:1"), aligned, any}) {
    for (const KeepGroups keep : {KeepGroups::rank, KeepGroups::microbatch}) {
      for (const Short short_ : {Short::empty, Short::error, Short::drop}) {
        // What is dropped of prompts on ranks the oracle knows by sequence, not by prompt.
        if (keep == KeepGroups::rank && short_ == Short::drop) continue;
        const QuestionShape shape{.most_sequences = 5,
                                  .most_ranks = 5,
                                  .options = {.context = context,
                                              .counts = Counts::equal,
                                              .short_ = short_,
                                              .keep_groups = keep},
                                  .has_groups = true,
                                  .has_wide_choice = context != "static:1"};
        const std::string name = "equal counts, keep " + std::string(name_of(keep)) + ", short " +
                                 std::string(name_of(short_)) + ", " + context;
        expect_near_the_best(name.c_str(), shape, short_ == Short::empty ? equal : full, 40);
      }
    }
  }
}

TEST(PlanOracle, ExtraCostsAndSlowRanks) {
  expect_near_the_best_with("extra costs",
                            {.options = {.context = aligned}, .has_extra_costs = true});
  expect_near_the_best_with("slow ranks", {.options = {.context = aligned}, .has_speeds = true});
  expect_near_the_best_with("slow ranks, static:1",
                            {.options = {}, .has_speeds = true, .has_wide_choice = false});
}

TEST(PlanOracle, ForwardOnly) {
  expect_near_the_best_with("forward", {.options = {.context = aligned, .pass = Pass::forward}});
}

TEST(PlanOracle, Stages) {
  for (const std::int32_t stages : {2, 3}) {
    const std::string name = std::to_string(stages) + " stages, ";
    QuestionShape shape{
        .most_sequences = 4, .most_ranks = 3, .stages = stages, .has_wide_choice = false};
    expect_near_the_best_with(name + "static:1", shape, pipelined, 40);
    shape = {
        .most_sequences = 4, .most_ranks = 4, .options = {.context = aligned}, .stages = stages};
    expect_near_the_best_with(name + "aligned", shape, pipelined, 40);
    shape.options.pass = Pass::forward;
    expect_near_the_best_with(name + "forward", shape, pipelined, 40);
  }
}

// Up to five sequences, on groups of at most two.
QuestionShape pairs_on_three_ranks(QuestionShape shape, const std::string& context) {
  shape.most_sequences = 5;
  shape.least_ranks = 3;
  shape.most_ranks = 3;
  shape.has_wide_choice = false;
  shape.options.context = context;
  shape.options.max_context_size = 2;
  return shape;
}

// Groups of all ranks are the best of almost all tiny questions, whatever else is asked: pairs on
// three ranks leave a choice, in which half of the questions tell the two kinds of waiting apart.
TEST(PlanOracle, StagesWithEveryPolicy) {
  const Policy policies[] = {
      {"no other", {}},
      {"keep rank",
       {.options = {.keep_groups = KeepGroups::rank}, .has_groups = true},
       pipelined_in_haste},
      {"keep microbatch", {.options = {.keep_groups = KeepGroups::microbatch}, .has_groups = true}},
      {"tensor_parallel", {.options = {.tensor_parallel = 4}}},
      {"slow ranks", {.has_speeds = true}, pipelined_in_haste, {50}},
      {"shares", {.has_shares = true}},
      {"transfers", {.has_transfers = true}},
      {"forward", {.options = {.pass = Pass::forward}}},
      {"max_sequences", {.options = {.max_sequences = 2}}},
      {"alone", {.options = {.oversize = Oversize::alone}}},
      {"extra costs", {.has_extra_costs = true}},
      {"short error", {.options = {.short_ = Short::error}}, {1.004, 1.03}},
      {"short drop", {.options = {.short_ = Short::drop}}, {1.004, 1.03}},
  };
  for (const std::string& context : {aligned, any}) {
    for (const Policy& policy : policies) {
      QuestionShape shape = pairs_on_three_ranks(policy.shape, context);
      for (const std::int32_t stages : {2, 3}) {
        shape.stages = stages;
        expect_near_the_best_with(
            std::to_string(stages) + " stages, " + context + ", " + policy.name, shape, policy.aim,
            12, policy.others);
      }
    }
  }
}

// Interleaved stages, whose slots fill whole groups.
void expect_near_the_best_interleaved(const PipelineShape& pipeline, QuestionShape shape) {
  shape.stages = pipeline.stages;
  shape.virtual_ = pipeline.virtual_;
  shape.group = pipeline.group;
  for (const std::string& context : {std::string("static:1"), aligned, any}) {
    shape.options.context = context;
    shape.has_wide_choice = context != "static:1";
    const std::string name = std::to_string(pipeline.stages) + " by " +
                             std::to_string(pipeline.virtual_) + " stages, slots by " +
                             std::to_string(pipeline.group) + ", " + context;
    expect_near_the_best_with(name, shape, interleaved, 20);
  }
}

TEST(PlanOracle, VirtualStages) {
  const QuestionShape shape{.most_sequences = 4, .least_ranks = 2, .most_ranks = 3};
  expect_near_the_best_interleaved({.stages = 2, .virtual_ = 2, .group = 2}, shape);
  expect_near_the_best_interleaved({.stages = 2, .virtual_ = 2, .group = 3}, shape);
  expect_near_the_best_interleaved({.stages = 2, .virtual_ = 3, .group = 2}, shape);
  expect_near_the_best_interleaved({.stages = 3, .virtual_ = 2, .group = 3}, shape);
}

// Pairs on three ranks, as above.
TEST(PlanOracle, VirtualStagesWithEveryPolicy) {
  const Policy policies[] = {
      {"no other", {}},
      {"forward", {.options = {.pass = Pass::forward}}},
      {"keep rank", {.options = {.keep_groups = KeepGroups::rank}, .has_groups = true}},
      {"short error", {.options = {.short_ = Short::error}}},
      {"slow ranks", {.has_speeds = true}},
      {"shares", {.has_shares = true}},
      {"transfers", {.has_transfers = true}},
      {"keep microbatch", {.options = {.keep_groups = KeepGroups::microbatch}, .has_groups = true}},
      {"tensor_parallel", {.options = {.tensor_parallel = 4}}},
      {"max_sequences", {.options = {.max_sequences = 2}}},
      {"extra costs", {.has_extra_costs = true}},
  };
  for (const std::string& context : {aligned, any}) {
    for (const Policy& policy : policies) {
      QuestionShape shape = pairs_on_three_ranks(policy.shape, context);
      shape.stages = 2;
      shape.virtual_ = 2;
      shape.group = 2;
      expect_near_the_best_with("2 by 2 stages, " + context + ", " + policy.name, shape,
                                interleaved_pairs, 12);
    }
  }
}

}  // namespace
}  // namespace isochron
