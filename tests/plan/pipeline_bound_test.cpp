// The lower bound of pipelines: against all ways to plan a few sequences, and what it has to see.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "isochron/plan/baselines.h"
#include "isochron/plan/pipelines/naive_slots.h"
#include "isochron/plan/pipelines/pipeline_bound.h"
#include "isochron/plan/plan.h"
#include "isochron/simulate/pipeline_time.h"
#include "tests/plan/pipeline_question.h"
#include "tests/plan/singles.h"
#include "tests/plan/tiny_question.h"
#include "tests/support/num_instances.h"
#include "tests/support/print_question.h"

namespace isochron {
namespace {

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
    EXPECT_GE(sum / num_plans, 0.94);
  }
}

TEST(PipelineBound, SeesTheLongestSequenceOfAPrompt) {
  // It passes all stages one after the other, whatever else its prompt has.
  std::vector<Tokens> lengths(40, 100);
  lengths[7] = 50'000;
  Batch batch = batch_of(lengths);
  for (std::size_t i = 0; i < lengths.size(); ++i) add_to_group(batch, std::to_string(i / 10));
  const Topology topology{.ranks = 4, .capacity = 100'000, .pipeline = {.stages = 4}};
  const StepPlan kept = checked_plan(batch, topology, simple_cost(),
                                     {.context = "static:1", .keep_groups = KeepGroups::rank});
  const StepPlan free = checked_plan(batch, topology, simple_cost(), {.context = "static:1"});
  EXPECT_GE(kept.lower_bound_ns, 50'000 * 3);
  EXPECT_EQ(kept.lower_bound_ns, free.lower_bound_ns);
}

TEST(PipelineBound, DoesNotFallWhenPromptsKeepTheirRanks) {
  for (std::uint64_t seed = 0; seed < num_asked(60); ++seed) {
    Random random(seed);
    StepQuestion question = random_question(
        seed, {.most_sequences = 40,
               .least_ranks = 2,
               .most_ranks = 16,
               .options = {.context = "dynamic",
                           .sync = random.below(2) == 0 ? Sync::step : Sync::microbatch,
                           .keep_groups = KeepGroups::rank},
               .stages = static_cast<std::int32_t>(random.between(2, 4)),
               .has_groups = true});
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << question);
    const StepPlan kept =
        checked_plan(question.batch, question.topology, question.cost, question.options);
    if (!has_plan(kept)) continue;
    question.options.keep_groups = KeepGroups::none;
    const StepPlan free =
        checked_plan(question.batch, question.topology, question.cost, question.options);
    // But for what is lost where alike bundles are judged together.
    EXPECT_GE(static_cast<double>(kept.lower_bound_ns),
              0.98 * static_cast<double>(free.lower_bound_ns));
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

TEST(PipelineBound, SeesTheLongestSlotsOfSlowRanks) {
  // As SeesThatTheLastOfTheLongestSlotsIsLate, at half the speed.
  std::vector<Tokens> lengths(30, 10'000);
  lengths.push_back(100'000);
  const StepPlan plan = checked_plan(
      batch_of(lengths),
      {.ranks = 1, .capacity = 100'000, .pipeline = {.stages = 2}, .rank_speed = {0.5}},
      simple_cost(), {.context = "static:1"});
  EXPECT_GE(plan.lower_bound_ns, 2 * 650'000 - 200);
}

TEST(PipelineBound, SeesThatFastRanksWaitForASlowOne) {
  // Sequences that need both ranks run at the pace of the slower one. Each takes 30,000 on either
  // stage, and one stage waits for one of them before its first or after its last.
  const std::vector<Tokens> lengths(4, 20'000);
  const StepPlan plan = checked_plan(
      batch_of(lengths),
      {.ranks = 2, .capacity = 10'000, .pipeline = {.stages = 2}, .rank_speed = {1, 0.5}},
      simple_cost(), {.context = "dynamic"});
  EXPECT_GE(plan.lower_bound_ns, 5 * 30'000 - 100);
}

// One of four prompts is most of the work, and a rank of its own runs it in each of two stages.
TEST(StaticPipelineBound, SeesThatARankRunsTheDearestPrompt) {
  const Topology topology{.ranks = 4, .capacity = 10'000, .pipeline = {.stages = 2}};
  const PlanOptions options{.context = "static:1", .keep_groups = KeepGroups::rank};
  Batch batch = batch_of({1000, 1000, 1000, 1000, 10, 10, 10});
  batch.groups = {PromptGroupId(0), PromptGroupId(0), PromptGroupId(0), PromptGroupId(0),
                  PromptGroupId(1), PromptGroupId(2), PromptGroupId(3)};
  batch.group_names = {"a", "b", "c", "d"};
  Work work = singles(batch.lengths);
  work.bundles = {{0, 1, 2, 3}, {4}, {5}, {6}};
  const Problem problem(work, topology, simple_cost(), resolved(options, topology));
  const Nanoseconds bound = static_pipeline_bound(problem, rank_room_of(problem), 1);
  EXPECT_GE(bound, 4 * 3000 / 2);
  const StepPlan plan = checked_plan(batch, topology, simple_cost(), options);
  EXPECT_LE(bound, plan.predicted_step_ns);
}

// Pairs leave one of three ranks over, and all of them have the middle one.
TEST(SideBySideBound, SeesThatGroupsLeaveRanksOver) {
  const Topology topology{.ranks = 3, .capacity = 10'000, .pipeline = {.stages = 2}};
  const PlanOptions options{.context = "dynamic:any", .min_context_size = 2, .max_context_size = 2};
  const std::vector<Tokens> lengths(8, 1200);
  const Problem problem(singles(lengths), topology, simple_cost(), resolved(options, topology));
  const Nanoseconds bound = side_by_side_bound(problem);
  EXPECT_GE(bound, 8 * 1800 / 2);
  EXPECT_GT(bound, pipeline_bound(problem, rank_room_of(problem)));
  const StepPlan plan = checked_plan(batch_of(lengths), topology, simple_cost(), options);
  EXPECT_LE(bound, plan.predicted_step_ns);
  EXPECT_GE(plan.lower_bound_ns, bound);
}

TEST(SideBySideBound, HoldsForThePlansOfFewSequences) {
  int num_raised = 0;
  for (std::uint64_t seed = 0; seed < num_asked(60); ++seed) {
    Random random(seed);
    const auto smallest = static_cast<std::int32_t>(random.between(2, 4));
    StepQuestion question = random_question(
        seed, {.most_sequences = 6,
               .least_ranks = smallest,
               .most_ranks = 7,
               .options = {.context = "dynamic:any",
                           .min_context_size = smallest,
                           .sync = random.below(2) == 0 ? Sync::step : Sync::microbatch,
                           .pass = random.below(3) == 0 ? Pass::forward : Pass::train},
               .stages = static_cast<std::int32_t>(random.between(2, 4))});
    set_shape(random, question.topology.pipeline);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << question);
    const StepPlan plan =
        checked_plan(question.batch, question.topology, question.cost, question.options);
    if (!has_plan(plan)) continue;
    const Problem problem(singles(question.batch.lengths), question.topology, question.cost,
                          resolved(question.options, question.topology));
    const Nanoseconds bound = side_by_side_bound(problem);
    EXPECT_LE(bound, plan.predicted_step_ns);
    EXPECT_LE(bound, plan.lower_bound_ns);
    if (bound > pipeline_bound(problem, rank_room_of(problem))) ++num_raised;
  }
  if (!is_sampled) {
    EXPECT_GT(num_raised, 0);
  }
}

// The baseline is left out only where it is as late as that, long items beside short ones too.
TEST(PipelineBound, LeavesNoNaiveSlotsOutThatEndInTime) {
  int num_asked_for = 0;
  for (std::uint64_t seed = 0; seed < num_asked(300); ++seed) {
    StepQuestion question =
        random_question(seed, {.most_sequences = 40,
                               .least_ranks = 2,
                               .most_ranks = 12,
                               .options = {.context = seed % 2 == 0 ? "static:1" : "static:2"},
                               .stages = static_cast<std::int32_t>(2 + seed % 3),
                               .has_wide_choice = false});
    Random random(seed);
    set_shape(random, question.topology.pipeline);
    if (random.below(2) == 0) question.options.pass = Pass::forward;
    if (random.below(2) == 0) question.options.sync = Sync::microbatch;
    question.options.oversize = Oversize::error;
    if (random.below(4) == 0) {
      question.topology.ranks = 2;
      for (std::size_t i = 0; i < question.batch.lengths.size(); i += 2) {
        question.batch.lengths[i] = 1;
      }
    }
    StepPlan asked;
    asked.batch = question.batch;
    asked.topology = question.topology;
    asked.cost = question.cost;
    asked.options = resolved(question.options, question.topology);
    const Problem problem(singles(question.batch.lengths), question.topology, question.cost,
                          asked.options);
    if (!are_all_held(problem)) continue;
    const RankRoom room = rank_room_of(problem);
    const auto naive = find_naive_slots(problem, asked, room, 0, max_total_cost);
    if (!naive) continue;
    const Nanoseconds time =
        naive_plan(question.batch, question.topology, question.cost, asked.options, 0)
            .predicted_step_ns;
    EXPECT_TRUE(find_naive_slots(problem, asked, room, 0, time + 1))
        << "seed " << seed << ": " << question;
    EXPECT_FALSE(find_naive_slots(problem, asked, room, 0, time));
    ++num_asked_for;
  }
  EXPECT_GE(num_asked_for, static_cast<int>(num_asked(300)) / 2);
}

}  // namespace
}  // namespace isochron
