// Plans of pipelines with several stages: what a user without the planner has is never faster, and
// the limits of the stages are kept.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "isochron/check/check.h"
#include "isochron/plan/baselines.h"
#include "isochron/plan/plan.h"
#include "isochron/simulate/pipeline_time.h"
#include "tests/plan/tiny_question.h"
#include "tests/support/num_instances.h"
#include "tests/support/print_question.h"

namespace isochron {
namespace {

using testing::HasSubstr;

// One token costs 3 ns, a micro-batch 1 ns, nothing is quadratic; a group of any size shares both
// without traffic.
CostModel simple_cost() {
  return {.name = "simple",
          .quadratic_ns = 0,
          .linear_ns = 3,
          .microbatch_ns = 0,
          .forward_share = 1.0 / 3,
          .context = {{.kind = ContextKind::all_gather_kv,
                       .bytes_per_token = 0,
                       .links = {{1 << 20, 100, 0}}}},
          .activation_bytes_per_token = 1};
}

Batch batch_of(std::vector<Tokens> lengths) {
  Batch batch;
  batch.lengths = std::move(lengths);
  return batch;
}

StepPlan checked_plan(const Batch& batch, const Topology& topology, const CostModel& cost,
                      const PlanOptions& options) {
  StepPlan plan = plan_step(batch, topology, cost, options);
  EXPECT_EQ(find_violation(to_json(plan), &batch), std::nullopt);
  return plan;
}

bool has_plan(const StepPlan& plan) { return !plan.microbatches.empty(); }

// Virtual stages, transfers and unequal chunks, now and then.
void set_shape(Random& random, PipelineShape& shape) {
  if (random.below(3) == 0) {
    shape.virtual_ = 2;
    shape.group = shape.stages;
  }
  if (random.below(4) == 0) shape.transfer_ns = random.between(0, 20'000'000);
  if (random.below(4) == 0) {
    std::vector<double> weights(static_cast<std::size_t>(shape.num_chunks()));
    for (double& weight : weights) weight = 0.5 + random.unit();
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (const double weight : weights) shape.shares.push_back(weight / sum);
  }
}

// A question with stages, larger than what can be searched through.
StepQuestion random_pipeline(std::uint64_t seed, const std::string& context, Sync sync) {
  Random random(seed);
  const std::int32_t size = context_mode(context).size;
  const auto stages = static_cast<std::int32_t>(random.between(2, 4));
  StepQuestion question =
      random_question(seed, {.most_sequences = static_cast<std::size_t>(random.between(1, 60)),
                             .least_ranks = size,
                             .most_ranks = 12,
                             .options = {.context = context, .sync = sync},
                             .stages = stages,
                             .has_extra_costs = random.below(4) == 0,
                             .has_wide_choice = context == "dynamic"});
  set_shape(random, question.topology.pipeline);
  question.options.effort = 4000;  // enough for promises that hold whatever the effort
  if (random.below(4) == 0) question.options.pass = Pass::forward;
  if (random.below(4) == 0) question.options.max_sequences = 3;
  return question;
}

void for_random_pipelines(std::uint64_t standard,
                          const std::function<void(const StepQuestion&, const StepPlan&)>& check) {
  for (std::uint64_t seed = 0; seed < num_asked(standard); ++seed) {
    for (const std::string context : {"static:1", "static:2", "dynamic"}) {
      for (const Sync sync : {Sync::step, Sync::microbatch}) {
        const StepQuestion question = random_pipeline(seed, context, sync);
        SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << question);
        const StepPlan plan =
            checked_plan(question.batch, question.topology, question.cost, question.options);
        if (has_plan(plan)) check(question, plan);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(PipelinePlan, IsNeverSlowerThanTheInputDealtInOrder) {
  for_random_pipelines(40, [](const StepQuestion& question, const StepPlan& plan) {
    const StepPlan naive = naive_plan(question.batch, question.topology, question.cost,
                                      question.options, plan.lower_bound_ns);
    // Of two placeholders that a plan may not have, the baseline has one: no plan to compare with.
    if (find_violation(to_json(naive), &question.batch)) return;
    EXPECT_LE(plan.predicted_step_ns, naive.predicted_step_ns);
    EXPECT_GT(naive.lower_bound_ns, 0) << "the bound is above a plan";
    PlanOptions dealt = question.options;
    dealt.balance = false;
    if (context_mode(dealt.context).kind != ContextMode::Kind::fixed) return;
    EXPECT_LE(plan.predicted_step_ns,
              plan_step(question.batch, question.topology, question.cost, dealt).predicted_step_ns);
  });
}

TEST(PipelinePlan, IsNeverSlowerThanAStaticContext) {
  for_random_pipelines(30, [](const StepQuestion& question, const StepPlan& plan) {
    if (question.options.context != "dynamic") return;
    for (std::int32_t size = 1; size <= question.topology.ranks; ++size) {
      if (question.topology.ranks % size != 0) continue;
      PlanOptions options = question.options;
      options.context = "static:" + std::to_string(size);
      const StepPlan fixed = plan_step(question.batch, question.topology, question.cost, options);
      if (!has_plan(fixed)) continue;
      EXPECT_LE(plan.predicted_step_ns, fixed.predicted_step_ns) << options.context;
      EXPECT_LE(plan.lower_bound_ns, fixed.predicted_step_ns) << options.context;
    }
  });
}

TEST(PipelinePlan, EqualSlotsMeetTheBound) {
  // One slot for each of four sequences on two stages: (4 + 1) * 30 / 2, which 1F1B cannot beat.
  const StepPlan plan =
      checked_plan(batch_of({10, 10, 10, 10}),
                   {.ranks = 1, .capacity = 10, .pipeline = {.stages = 2}}, simple_cost(), {});
  EXPECT_EQ(plan.microbatches.size(), 4u);
  EXPECT_EQ(plan.predicted_step_ns, 75);
  EXPECT_GE(plan.lower_bound_ns, 60);
}

TEST(PipelinePlan, TheLongestSequenceRunsAloneOnItsRank) {
  // 100 tokens take 300 ns through both stages; all others fit beside it on the other rank.
  const StepPlan plan =
      checked_plan(batch_of({100, 20, 20, 20, 20}),
                   {.ranks = 2, .capacity = 100, .pipeline = {.stages = 2}}, simple_cost(), {});
  EXPECT_EQ(plan.predicted_step_ns, 300);
  EXPECT_EQ(plan.lower_bound_ns, 300);
  EXPECT_EQ(plan.status, Status::optimal);
}

TEST(PipelinePlan, DearMicrobatchesAreFewAndFreeOnesMany) {
  const Batch batch = batch_of(std::vector<Tokens>(32, 10));
  const Topology topology{.ranks = 1, .capacity = 1000, .pipeline = {.stages = 4}};
  CostModel cost = simple_cost();
  EXPECT_GE(checked_plan(batch, topology, cost, {}).microbatches.size(), 24u);
  cost.microbatch_ns = 10'000;
  EXPECT_EQ(checked_plan(batch, topology, cost, {}).microbatches.size(), 1u);
}

TEST(PipelinePlan, TokensForceTheNumberOfSlots) {
  CostModel cost = simple_cost();
  cost.microbatch_ns = 10'000;
  const StepPlan plan =
      checked_plan(batch_of(std::vector<Tokens>(12, 10)),
                   {.ranks = 2, .capacity = 20, .pipeline = {.stages = 2}}, cost, {});
  EXPECT_EQ(plan.microbatches.size(), 3u);
}

TEST(PipelinePlan, FewerSequencesThanSlotsLeavePlaceholders) {
  const Topology topology{
      .ranks = 2, .capacity = 20, .pipeline = {.stages = 2, .virtual_ = 2, .group = 2}};
  const StepPlan plan = checked_plan(batch_of({10, 20, 5}), topology, simple_cost(), {});
  ASSERT_EQ(plan.microbatches.size(), 2u);
  int num_placeholders = 0;
  for (const Slot& slot : plan.microbatches) {
    for (const ContextGroup& group : slot) num_placeholders += group.sequences.empty() ? 1 : 0;
  }
  EXPECT_EQ(num_placeholders, 1);
}

TEST(PipelinePlan, VirtualStagesHaveAMultipleOfTheirGroup) {
  const Topology topology{
      .ranks = 2, .capacity = 30, .pipeline = {.stages = 2, .virtual_ = 2, .group = 3}};
  const StepPlan plan =
      checked_plan(batch_of(std::vector<Tokens>(14, 10)), topology, simple_cost(), {});
  EXPECT_EQ(plan.microbatches.size() % 3, 0u);
  EXPECT_EQ(plan.microbatches.size(), 6u);  // 7 a rank would not divide
}

TEST(PipelinePlan, PromptGroupsStayOnTheirRanks) {
  for_random_pipelines(10, [](const StepQuestion& question, const StepPlan&) {
    StepQuestion kept = question;
    for (std::size_t i = 0; i < kept.batch.lengths.size(); ++i) {
      add_to_group(kept.batch, std::to_string(i / 3));
    }
    for (const KeepGroups keep : {KeepGroups::rank, KeepGroups::microbatch}) {
      kept.options.keep_groups = keep;
      checked_plan(kept.batch, kept.topology, kept.cost, kept.options);
    }
  });
}

TEST(PipelinePlan, ALimitOnActivationsMakesMoreAndSmallerMicrobatches) {
  // Two stages hold half of two micro-batches each: 40 bytes in all, so that none exceeds 40
  // tokens.
  const Batch batch = batch_of(std::vector<Tokens>(16, 10));
  CostModel cost = simple_cost();
  cost.microbatch_ns = 1000;  // without the limit one is enough
  const Topology topology{.ranks = 1, .capacity = 1000, .pipeline = {.stages = 2}};
  EXPECT_EQ(checked_plan(batch, topology, cost, {}).microbatches.size(), 1u);
  const StepPlan plan = checked_plan(batch, topology, cost, {.max_activation_bytes = 40});
  ASSERT_TRUE(has_plan(plan)) << plan.reason;
  EXPECT_LE(plan.peak_activation_bytes.front(), 40);
  EXPECT_EQ(plan.microbatches.size(), 4u);
}

TEST(PipelinePlan, WithoutStagesALimitOnActivationsIsOneOnTokens) {
  const Batch batch = batch_of(std::vector<Tokens>(16, 10));
  const Topology topology{.ranks = 1, .capacity = 1000};
  for (const Sync sync : {Sync::step, Sync::microbatch}) {
    const StepPlan plan =
        checked_plan(batch, topology, simple_cost(), {.sync = sync, .max_activation_bytes = 45});
    ASSERT_TRUE(has_plan(plan)) << plan.reason;
    EXPECT_EQ(plan.microbatches.size(), 4u);
    EXPECT_EQ(plan.peak_activation_bytes.front(), 40);
  }
}

TEST(PipelinePlan, ASequenceOverTheLimitOnActivationsIsNamed) {
  for (const std::int32_t stages : {1, 2}) {
    const StepPlan plan = checked_plan(
        batch_of({10, 99, 10}), {.ranks = 2, .capacity = 100, .pipeline = {.stages = stages}},
        simple_cost(), {.oversize = Oversize::alone, .max_activation_bytes = 98 / stages});
    EXPECT_EQ(plan.status, Status::infeasible);
    EXPECT_THAT(plan.reason, HasSubstr("sequence 1 of 99 tokens"));
    EXPECT_THAT(plan.reason, HasSubstr("max_activation_bytes"));
  }
}

TEST(PipelinePlan, AWiderGroupKeepsALimitOnActivations) {
  const StepPlan plan =
      checked_plan(batch_of({80, 10}), {.ranks = 2, .capacity = 100}, simple_cost(),
                   {.context = "dynamic", .max_activation_bytes = 40});
  ASSERT_TRUE(has_plan(plan)) << plan.reason;
  EXPECT_LE(*std::max_element(plan.peak_activation_bytes.begin(), plan.peak_activation_bytes.end()),
            40);
}

TEST(PipelinePlan, KeepsAnyLimitOnActivationsOrSaysThatItFoundNoOrder) {
  int num_kept = 0;
  for_random_pipelines(12, [&](const StepQuestion& question, const StepPlan& plan) {
    StepQuestion limited = question;
    limited.cost.activation_bytes_per_token = 1000;
    const StepPlan free = plan_step(limited.batch, limited.topology, limited.cost, limited.options);
    const std::int64_t peak =
        *std::max_element(free.peak_activation_bytes.begin(), free.peak_activation_bytes.end());
    EXPECT_EQ(free.predicted_step_ns, plan.predicted_step_ns);
    for (const std::int64_t divisor : {1, 2, 4}) {
      limited.options.max_activation_bytes = std::max<std::int64_t>(1, peak / divisor);
      const StepPlan kept =
          checked_plan(limited.batch, limited.topology, limited.cost, limited.options);
      if (!has_plan(kept)) {
        EXPECT_THAT(kept.reason, HasSubstr("max_activation_bytes"));
        EXPECT_TRUE(kept.status == Status::infeasible || kept.status == Status::unknown);
        EXPECT_GT(divisor, 1);
      }
      num_kept += has_plan(kept) ? 1 : 0;
    }
  });
  EXPECT_GT(num_kept, 0);
}

// Whether all sequences of a prompt are on one rank, if they have to be.
bool keeps_groups(const StepQuestion& question, const std::vector<std::size_t>& place,
                  std::size_t num_slots) {
  if (question.options.keep_groups != KeepGroups::rank) return true;
  const auto& groups = question.batch.groups;
  for (std::size_t i = 0; i < place.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (groups[i] == groups[j] && place[i] / num_slots != place[j] / num_slots) return false;
    }
  }
  return true;
}

// The least time of all ways to put the sequences of a question without context groups into up to
// `max_slots` slots of its ranks, by trying them all.
Nanoseconds best_of_all(const StepQuestion& question, std::int32_t max_slots) {
  const Topology& topology = question.topology;
  const PipelineShape& shape = topology.pipeline;
  const auto& lengths = question.batch.lengths;
  const auto ranks = static_cast<std::size_t>(topology.ranks);
  const bool meets = question.options.sync == Sync::microbatch;
  Nanoseconds best = max_total_cost;
  for (std::int32_t count = shape.group; count <= max_slots; count += shape.group) {
    const auto num_slots = static_cast<std::size_t>(count);
    PipelineTime time(shape, count, question.options.pass);
    std::vector<std::size_t> place(lengths.size(), 0);  // rank and slot of each sequence
    for (bool is_last = false; !is_last;) {
      std::vector<Nanoseconds> costs(ranks * num_slots, microbatch_cost(question.cost));
      std::vector<Tokens> tokens(costs.size(), 0);
      for (std::size_t i = 0; i < lengths.size(); ++i) {
        costs[place[i]] += sequence_cost(question.cost, lengths[i], 0);
        tokens[place[i]] += lengths[i];
      }
      if (*std::max_element(tokens.begin(), tokens.end()) <= topology.capacity &&
          keeps_groups(question, place, num_slots)) {
        std::vector<PassCost> slowest(num_slots);
        Nanoseconds longest = 0;
        for (std::size_t rank = 0; rank < ranks; ++rank) {
          std::vector<PassCost> passes;
          for (std::size_t slot = 0; slot < num_slots; ++slot) {
            const double pace = topology.rank_speed.empty() ? 1 : topology.rank_speed[rank];
            const Nanoseconds cost = costs[rank * num_slots + slot];
            PassCost pass =
                split_cost(pace != 1 ? std::llround(static_cast<double>(cost) * (1 / pace)) : cost,
                           question.cost.forward_share);
            if (question.options.pass == Pass::forward) pass.backward = 0;
            passes.push_back(pass);
            slowest[slot].forward = std::max(slowest[slot].forward, pass.forward);
            slowest[slot].backward = std::max(slowest[slot].backward, pass.backward);
          }
          if (!meets) longest = std::max(longest, time.makespan(passes));
        }
        best = std::min(best, meets ? time.makespan(slowest) : longest);
      }
      is_last = true;  // the next way: count up
      for (std::size_t& digit : place) {
        if (++digit < costs.size()) {
          is_last = false;
          break;
        }
        digit = 0;
      }
    }
  }
  return best;
}

TEST(PipelineBound, HoldsForEveryPlanOfFewSequences) {
  double sum = 0;
  double worst = 1;
  int num_plans = 0;
  for (std::uint64_t seed = 0; seed < num_asked(150); ++seed) {
    Random random(seed);
    const auto stages = static_cast<std::int32_t>(random.between(2, 4));
    StepQuestion question = random_question(
        seed, {.most_sequences = 4,
               .most_ranks = 2,
               .options = {.sync = random.below(2) == 0 ? Sync::step : Sync::microbatch,
                           .pass = random.below(3) == 0 ? Pass::forward : Pass::train},
               .stages = stages,
               .has_speeds = random.below(4) == 0,
               .has_wide_choice = false});
    set_shape(random, question.topology.pipeline);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << question);
    const StepPlan plan =
        checked_plan(question.batch, question.topology, question.cost, question.options);
    ASSERT_TRUE(has_plan(plan)) << plan.reason;
    const PipelineShape& shape = question.topology.pipeline;
    const auto count = static_cast<std::int32_t>(question.batch.lengths.size());
    const std::int32_t max_slots = (count + shape.group - 1) / shape.group * shape.group;
    const Nanoseconds best = best_of_all(question, max_slots);
    EXPECT_LE(plan.lower_bound_ns, best);
    // Ways that leave more slots idle than a plan may are among all.
    EXPECT_GE(plan.predicted_step_ns, best);
    const double ratio = static_cast<double>(plan.predicted_step_ns) / static_cast<double>(best);
    sum += ratio;
    worst = std::max(worst, ratio);
    ++num_plans;
  }
  EXPECT_LE(sum / num_plans, 1.02);
  EXPECT_LE(worst, 1.5);
}

TEST(PipelineBound, HoldsWherePromptsKeepTheirRanks) {
  double sum = 0;
  int num_plans = 0;
  for (std::uint64_t seed = 0; seed < num_asked(60); ++seed) {
    Random random(seed);
    StepQuestion question = random_question(
        seed, {.most_sequences = 5,
               .least_ranks = 2,
               .most_ranks = 2,
               .options = {.sync = random.below(2) == 0 ? Sync::step : Sync::microbatch,
                           .keep_groups = KeepGroups::rank},
               .stages = static_cast<std::int32_t>(random.between(2, 3)),
               .has_groups = true,
               .has_wide_choice = false});
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << question);
    const StepPlan plan =
        checked_plan(question.batch, question.topology, question.cost, question.options);
    if (!has_plan(plan)) continue;
    const auto count = static_cast<std::int32_t>(question.batch.lengths.size());
    const Nanoseconds best = best_of_all(question, count);
    EXPECT_LE(plan.lower_bound_ns, best);
    EXPECT_GE(plan.predicted_step_ns, best);
    sum += static_cast<double>(plan.lower_bound_ns) / static_cast<double>(best);
    ++num_plans;
  }
  EXPECT_GT(num_plans, 0);
  if (!is_sampled) {
    EXPECT_GE(sum / num_plans, 0.88);
  }
}

TEST(PipelineBound, SeesThatPromptsThatKeepTheirRanksLeaveHoles) {
  // Three prompts of 40 sequences on two ranks: one of these has two prompts, 2/3 of the work. The
  // mean of both would be half of it. On 2 stages no step is shorter than half of 80 * 3000, but
  // for a nanosecond for each of 120 sequences and some slots.
  std::vector<Tokens> lengths(120, 1000);
  Batch batch = batch_of(lengths);
  for (std::size_t i = 0; i < lengths.size(); ++i) add_to_group(batch, std::to_string(i / 40));
  const StepPlan plan =
      checked_plan(batch, {.ranks = 2, .capacity = 100'000, .pipeline = {.stages = 2}},
                   simple_cost(), {.context = "static:1", .keep_groups = KeepGroups::rank});
  EXPECT_GE(plan.lower_bound_ns, 40 * 3000 - 200);
}

TEST(PipelineBound, SeesTheInterleavingOfVirtualStages) {
  // Four stages in two chunks each, one sequence for each of four slots: with one block of slots
  // the last stage waits for three chunks of a forward and the first for as many of a backward.
  const std::vector<Tokens> lengths(4, 100'000);
  const StepPlan plan = checked_plan(
      batch_of(lengths),
      {.ranks = 1, .capacity = 100'000, .pipeline = {.stages = 4, .virtual_ = 2, .group = 4}},
      simple_cost(), {.context = "static:1"});
  const std::int64_t work = 4 * 300'000;
  EXPECT_GE(plan.lower_bound_ns, work / 4 + 3 * 300'000 / 8 - 100);
  EXPECT_EQ(plan.predicted_step_ns, work / 4 + 3 * 300'000 / 8);
}

TEST(PipelineBound, HoldsForEveryPlanOfOneRankWhoseLongestSequenceStandsOut) {
  for (std::uint64_t seed = 0; seed < num_asked(120); ++seed) {
    Random random(seed);
    StepQuestion question;
    question.topology = {.ranks = 1,
                         .capacity = 1'000'000,
                         .pipeline = {.stages = static_cast<std::int32_t>(random.between(2, 5))}};
    question.cost = simple_cost();
    question.cost.forward_share = std::vector{0.2, 1.0 / 3, 0.45, 0.5, 0.7}[random.below(5)];
    question.cost.microbatch_ns = static_cast<double>(random.below(2) * random.between(0, 9000));
    const auto count = static_cast<std::size_t>(random.between(2, 6));
    const Tokens longest = random.between(2'000, 40'000);
    question.batch.lengths = {longest};
    while (question.batch.lengths.size() < count) {
      question.batch.lengths.push_back(random.between(1, random.below(2) == 0 ? longest : 1'000));
    }
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << question);
    const StepPlan plan =
        checked_plan(question.batch, question.topology, question.cost, question.options);
    EXPECT_LE(plan.lower_bound_ns, best_of_all(question, static_cast<std::int32_t>(count)));
  }
}

TEST(PipelineBound, SeesThatTheLastOfTheLongestSlotsIsLate) {
  // Two stages, work of 1.2 million on one rank, of which the longest sequence has 100,000 forward
  // and 200,000 backward. Whatever comes after it has shorter forwards: a path with its backward
  // meets all but one of these, and takes (1,200,000 + 200,000 - 100,000) / 2. Roundings are less
  // than a nanosecond for each of 31 sequences and some slots.
  std::vector<Tokens> lengths(30, 10'000);
  lengths.push_back(100'000);
  const StepPlan plan =
      checked_plan(batch_of(lengths), {.ranks = 1, .capacity = 100'000, .pipeline = {.stages = 2}},
                   simple_cost(), {.context = "static:1"});
  EXPECT_GE(plan.lower_bound_ns, 650'000 - 100);
}

TEST(PipelineBound, SeesThatLittleWorkCannotHideALongSlot) {
  // Four stages and a sequence with 100,000 forward and 200,000 backward among work of 500,000. All
  // that is left, 200,000, has forwards of a third of it and backwards of two thirds: together a
  // path down and up with the long one misses no more, and takes (500,000 + 3 * 300,000 - 200,000)
  // / 4 or more; a rank without that slot would have to leave it out.
  std::vector<Tokens> lengths(20, 10'000 / 3);
  lengths.push_back(100'000);
  const StepPlan plan =
      checked_plan(batch_of(lengths), {.ranks = 1, .capacity = 100'000, .pipeline = {.stages = 4}},
                   simple_cost(), {.context = "static:1"});
  EXPECT_GE(plan.lower_bound_ns, 275'000);
}

}  // namespace
}  // namespace isochron
