// Plans of pipelines with several stages: what a user without the planner has is never faster, and
// the limits of the stages are kept.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "isochron/plan/baselines.h"
#include "isochron/plan/plan.h"
#include "isochron/plan/plan_slots.h"
#include "tests/plan/pipeline_question.h"
#include "tests/plan/singles.h"
#include "tests/plan/tiny_question.h"
#include "tests/support/num_instances.h"
#include "tests/support/print_question.h"

namespace isochron {
namespace {

using testing::HasSubstr;

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

// So many ranks that wait for each other look at less, with and without a very long sequence.
TEST(PipelinePlan, OfManyRanksThatWaitForEachOtherIsNeverSlowerThanTheInputDealtInOrder) {
  for (std::uint64_t seed = 0; seed < num_asked(6); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const Topology topology{.ranks = 128, .capacity = 4000, .pipeline = {.stages = 4}};
    Batch batch;
    for (int i = 0; i < 1500; ++i) {
      const auto length = random.between(10, random.below(8) == 0 ? 3000 : 300);
      batch.lengths.push_back(static_cast<Tokens>(length));
    }
    if (seed % 2 == 1) batch.lengths.front() = 40'000;
    const PlanOptions options{.context = "dynamic", .sync = Sync::microbatch};
    const CostModel cost = plain_cost(10);
    const StepPlan plan = checked_plan(batch, topology, cost, options);
    ASSERT_TRUE(has_plan(plan));
    const StepPlan naive = naive_plan(batch, topology, cost, options, plan.lower_bound_ns);
    if (!find_violation(to_json(naive), &batch)) {
      EXPECT_LE(plan.predicted_step_ns, naive.predicted_step_ns);
    }
    EXPECT_LE(plan.predicted_step_ns, 2 * plan.lower_bound_ns);
  }
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

// What may be faster is asked for at the default effort too, of few and many sequences, kept or
// not.
TEST(PipelinePlan, OfLongTailsIsNeverSlowerThanAStaticSize) {
  int num_pairs = 0;
  for (std::uint64_t seed = 0; seed < num_asked(36); ++seed) {
    Random random(seed);
    const std::int32_t counts[] = {30, 64, 128, 300};
    const std::int32_t ranks[] = {12, 16, 64, 256};
    const auto count = counts[random.below(4)];
    Topology topology{.ranks = ranks[random.below(4)],
                      .capacity = 16'384,
                      .pipeline = {.stages = 2 << random.below(3)}};
    set_shape(random, topology.pipeline);
    StepQuestion question{.batch = batch_of(long_tailed_lengths(count, seed)),
                          .topology = topology,
                          .cost = cost_7b_h100(),
                          .options = {.context = "dynamic"}};
    for (Tokens& length : question.batch.lengths) {
      length = std::min(length, topology.capacity * topology.ranks / 4);
    }
    if (random.below(2) == 0) question.options.pass = Pass::forward;
    if (random.below(2) == 0) question.options.sync = Sync::microbatch;
    if (random.below(3) == 0) {
      question.options.keep_groups = KeepGroups::rank;
      for (std::int32_t i = 0; i < count; ++i) {
        question.batch.groups.emplace_back(i / 4);
        if (i % 4 == 0) question.batch.group_names.push_back(std::to_string(i / 4));
      }
    }
    const StepPlan plan =
        plan_step(question.batch, question.topology, question.cost, question.options);
    for (std::int32_t size = 1; size <= topology.ranks; size *= 2) {
      if (topology.ranks % size != 0) continue;
      question.options.context = "static:" + std::to_string(size);
      const StepPlan fixed =
          plan_step(question.batch, question.topology, question.cost, question.options);
      if (!has_plan(fixed)) continue;
      ++num_pairs;
      // Of kept prompts a size alone may get further with other questions.
      const bool is_kept = question.options.keep_groups != KeepGroups::none;
      const Nanoseconds more = fixed.predicted_step_ns / (is_kept ? 25 : 250);
      EXPECT_LE(plan.predicted_step_ns, fixed.predicted_step_ns + more)
          << "seed " << seed << ": " << question;
    }
  }
  EXPECT_GE(num_pairs, num_asked(36));
}

// A sample of the ranks does not have the longest sequence, and grids that suit it suit the whole
// badly, which cells do not.
TEST(PipelinePlan, ASampleWithoutTheLongestSequenceIsNotTrusted) {
  std::vector<Tokens> lengths;
  for (std::int64_t i = 0; i < 1024; ++i) {
    lengths.push_back(i == 500 ? 10'000 : 100 + (i * i * 7919 + i * 104'729) % 1400);
  }
  const StepPlan plan =
      checked_plan(batch_of(lengths), {.ranks = 256, .capacity = 16'384, .pipeline = {.stages = 2}},
                   cost_7b_h100(), {.context = "dynamic"});
  EXPECT_LE(plan.predicted_step_ns * 10, plan.lower_bound_ns * 12);
}

TEST(PipelinePlan, RanksOfSpeedOneChangeNothing) {
  Topology topology{.ranks = 8, .capacity = 4096, .pipeline = {.stages = 4}};
  const Batch batch = batch_of(long_tailed_lengths(200, 1));
  const StepPlan even = plan_step(batch, topology, cost_7b_h100(), {.context = "dynamic"});
  topology.rank_speed.assign(8, 1);
  const StepPlan same = plan_step(batch, topology, cost_7b_h100(), {.context = "dynamic"});
  EXPECT_EQ(same.predicted_step_ns, even.predicted_step_ns);
  EXPECT_EQ(same.lower_bound_ns, even.lower_bound_ns);
}

TEST(PipelinePlan, SlowRanksGetLess) {
  const Batch batch = batch_of(long_tailed_lengths(2000, 2));
  for (const Sync sync : {Sync::step, Sync::microbatch}) {
    for (const char* context : {"static:1", "dynamic"}) {
      Topology topology{.ranks = 8, .capacity = 131'072, .pipeline = {.stages = 4}};
      const PlanOptions options{.context = context, .sync = sync};
      StepPlan unaware = plan_step(batch, topology, cost_7b_h100(), options);
      topology.rank_speed = {1, 1, 1, 0.5, 1, 1, 1, 1};
      unaware.topology = topology;
      set_prediction(unaware);
      const StepPlan plan = checked_plan(batch, topology, cost_7b_h100(), options);
      EXPECT_LE(plan.predicted_step_ns * 10, unaware.predicted_step_ns * 8)
          << context << ", " << name_of(sync);
    }
  }
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

// Of the slots that a chunk runs one after the other it gets the one with which all end first.
TEST(PipelinePlan, OneSequenceOfVirtualStagesHasTheBestOfItsSlots) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    CostModel cost = simple_cost();
    cost.microbatch_ns = static_cast<double>(random.between(0, 40));
    Topology topology{.ranks = static_cast<std::int32_t>(random.between(1, 4)), .capacity = 100};
    topology.pipeline.stages = static_cast<std::int32_t>(random.between(2, 3));
    set_shape(random, topology.pipeline);
    PipelineShape& shape = topology.pipeline;
    if (shape.virtual_ == 1) continue;
    shape.group += static_cast<std::int32_t>(random.below(2));
    const Batch batch = batch_of({random.between(1, 100)});
    const StepPlan plan = checked_plan(batch, topology, cost, {.context = "dynamic"});
    const Problem problem(singles(batch.lengths), topology, plan.cost, plan.options);
    Nanoseconds least = max_total_cost;
    for (const RankRange ranks : admitted_ranges(problem)) {
      for (std::int32_t place = 0; place < shape.group; ++place) {
        DraftSlots slots(static_cast<std::size_t>(shape.group));
        slots[static_cast<std::size_t>(place)] = {{.ranks = ranks, .items = {0}}};
        equalize(problem, shape.group, slots);
        least = std::min(least, predicted_time(problem, slots));
      }
    }
    EXPECT_EQ(plan.predicted_step_ns, least) << "seed " << seed;
  }
}

// A prompt that stays on a rank is cut into as many micro-batches there as suit its stages, however
// many ranks have nothing to do.
// Long sequences run elsewhere, and the slow rank gets a part of what others have. Cells that do
// not know of it make steps three tenths longer.
TEST(PipelinePlan, OneSlowRankCostsLittle) {
  double sum = 0;
  int num_asked = 0;
  for (const std::int32_t ranks : {16, 64}) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      Batch batch = batch_of(long_tailed_lengths(16 * ranks, seed));
      Topology topology{.ranks = ranks, .capacity = 16'384, .pipeline = {.stages = 4}};
      const PlanOptions options{.context = "dynamic"};
      const StepPlan even = plan_step(batch, topology, cost_7b_h100(), options);
      topology.rank_speed.assign(static_cast<std::size_t>(ranks), 1);
      topology.rank_speed[static_cast<std::size_t>(ranks / 3)] = 0.7;
      const StepPlan plan = checked_plan(batch, topology, cost_7b_h100(), options);
      sum +=
          static_cast<double>(plan.predicted_step_ns) / static_cast<double>(even.predicted_step_ns);
      ++num_asked;
    }
  }
  EXPECT_LE(sum / num_asked, 1.1);
}

// What is faster than the slowest rank is of use on average, and seldom in the way.
TEST(PipelinePlan, FasterRanksAreSeldomInTheWay) {
  double sum = 0;
  int num_asked = 0;
  for (std::uint64_t seed = 0; seed < num_instances(24); ++seed) {
    Random random(seed);
    const auto ranks = static_cast<std::int32_t>(random.between(4, 140));
    const Batch batch = batch_of(
        long_tailed_lengths(ranks * static_cast<std::int32_t>(random.between(1, 8)), seed));
    Topology topology{.ranks = ranks, .capacity = 16'384, .pipeline = {.stages = 4}};
    const double slow = 0.6 + 0.3 * random.unit();
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      topology.rank_speed.push_back(random.below(4) == 0 ? slow : 1);
    }
    topology.rank_speed.front() = slow;
    const PlanOptions options{.context = "dynamic",
                              .sync = random.below(2) == 0 ? Sync::microbatch : Sync::step};
    const StepPlan plan = checked_plan(batch, topology, cost_7b_h100(), options);
    topology.rank_speed.assign(topology.rank_speed.size(), slow);
    const StepPlan all_slow = plan_step(batch, topology, cost_7b_h100(), options);
    const double part = static_cast<double>(plan.predicted_step_ns) /
                        static_cast<double>(all_slow.predicted_step_ns);
    EXPECT_LE(part, 1.15) << "seed " << seed << ", " << ranks << " ranks";
    sum += part;
    ++num_asked;
  }
  EXPECT_LE(sum / num_asked, 1);
}

TEST(PipelinePlan, KeptPromptsAreNoSlowerOnMoreRanks) {
  Batch batch = batch_of({906, 154, 95, 181, 1253, 747, 385, 812, 301, 910});
  for (const std::int32_t prompt : {0, 0, 0, 0, 0, 0, 0, 0, 1, 1}) {
    batch.groups.emplace_back(prompt);
  }
  batch.group_names = {"long", "short"};
  for (const Sync sync : {Sync::step, Sync::microbatch}) {
    const auto time = [&](std::int32_t ranks) {
      const PlanOptions options{
          .context = "static:1", .sync = sync, .keep_groups = KeepGroups::rank};
      const Topology topology{.ranks = ranks, .capacity = 32'768, .pipeline = {.stages = 4}};
      return static_cast<double>(
          checked_plan(batch, topology, cost_7b_h100(), options).predicted_step_ns);
    };
    const double on_two = time(2);
    for (const std::int32_t ranks : {3, 4, 8, 50, 100}) {
      EXPECT_LE(time(ranks), 1.01 * on_two) << ranks << " ranks";
    }
  }
}

// Prompts of many answers stay on ranks of two speeds: the search of its own mode ends 1.9 times as
// late as the bound, and narrower questions are asked for as much as that may save.
TEST(PipelinePlan, KeptPromptsOnSlowRanksEndNearTheirBound) {
  Topology topology{.ranks = 100, .capacity = 4096, .pipeline = {.stages = 2}};
  for (std::int32_t rank = 0; rank < topology.ranks; ++rank) {
    topology.rank_speed.push_back(rank % 3 == 0 ? 1 : 0.8);
  }
  double mean = 0;
  const std::vector<std::uint64_t> seeds = {6, 7, 8, 10};
  for (const std::uint64_t seed : seeds) {
    Batch batch = batch_of(long_tailed_lengths(512, seed));
    for (std::int32_t i = 0; i < 512; ++i) {
      batch.groups.emplace_back(i / 16);
      if (i % 16 == 0) batch.group_names.push_back(std::to_string(i / 16));
    }
    for (Tokens& length : batch.lengths) length = std::min<Tokens>(length, 50 * 4096);
    const StepPlan plan = checked_plan(batch, topology, cost_7b_h100(),
                                       {.context = "dynamic", .keep_groups = KeepGroups::rank});
    mean += static_cast<double>(plan.predicted_step_ns) / static_cast<double>(plan.lower_bound_ns);
  }
  EXPECT_LE(mean / static_cast<double>(seeds.size()), 1.35);
}

// Beside cells of four and eight ranks two are left over, which have to run something in every
// slot: cells leave them what they have time for. Unequal stages take longer than equal ones.
TEST(PipelinePlan, ForwardPassesOfManyRanksHaveUseForAllOfThem) {
  for (const bool is_even : {true, false}) {
    double mean = 0;
    for (const std::size_t count : {400, 430, 460, 490}) {
      Random random(count);
      Batch batch = batch_of(std::vector<Tokens>(count));
      for (Tokens& length : batch.lengths) length = random.between(8, 4800);
      Topology topology{.ranks = 250, .capacity = 4096, .pipeline = {.stages = 4}};
      if (!is_even) topology.pipeline.shares = {0.2, 0.33, 0.21, 0.26};
      const StepPlan plan = checked_plan(batch, topology, cost_7b_h100(),
                                         {.context = "dynamic", .pass = Pass::forward});
      mean += static_cast<double>(plan.predicted_step_ns) /
              static_cast<double>(plan.lower_bound_ns) / 4;
    }
    EXPECT_LT(mean, is_even ? 1.12 : 1.55);
  }
}

// Stages of 1F1B wait for a transfer in every slot.
TEST(PipelinePlan, SlowTransfersMakeFewerSlots) {
  Batch batch = batch_of(long_tailed_lengths(1024, 3));
  for (Tokens& length : batch.lengths) length = std::min<Tokens>(length, 8192);
  const auto plan = [&](Nanoseconds transfer_ns) {
    const Topology topology{
        .ranks = 8, .capacity = 32'768, .pipeline = {.stages = 8, .transfer_ns = transfer_ns}};
    return checked_plan(batch, topology, cost_7b_h100(), {.context = "static:2"});
  };
  const StepPlan fast = plan(1);
  const StepPlan slow = plan(5'000'000);
  EXPECT_LT(4 * slow.microbatches.size(), 3 * fast.microbatches.size());
  // What the slots of the other take with such transfers.
  StepPlan other = fast;
  other.topology = slow.topology;
  set_prediction(other);
  EXPECT_LT(slow.predicted_step_ns, other.predicted_step_ns - other.predicted_step_ns / 20);
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

std::int64_t peak_of(const StepPlan& plan) {
  return *std::max_element(plan.peak_activation_bytes.begin(), plan.peak_activation_bytes.end());
}

// Stages that are not equal; the first holds 0.4 of four micro-batches.
const PipelineShape uneven{.stages = 4, .shares = {0.4, 0.2, 0.2, 0.2}};

TEST(PipelinePlan, AnOrderThatKeepsLongSequencesApartKeepsALimitOnActivations) {
  std::vector<Tokens> lengths(16, 8000);
  lengths.resize(64, 100);
  // Two long ones and six short ones for each rank: a long one, three short ones, and again.
  const Topology topology{.ranks = 8, .capacity = 16'384, .pipeline = uneven};
  const StepPlan plan =
      checked_plan(batch_of(lengths), topology, simple_cost(), {.max_activation_bytes = 3300});
  ASSERT_TRUE(has_plan(plan)) << plan.reason;
  EXPECT_LE(peak_of(plan), 3300);
}

TEST(PipelinePlan, RanksSitSlotsOutToKeepALimitOnActivations) {
  // No two of a rank may be in flight at a time.
  const Topology topology{.ranks = 8, .capacity = 16'384, .pipeline = uneven};
  for (const Sync sync : {Sync::step, Sync::microbatch}) {
    const StepPlan plan = checked_plan(batch_of(std::vector<Tokens>(24, 8000)), topology,
                                       simple_cost(), {.sync = sync, .max_activation_bytes = 3200});
    ASSERT_TRUE(has_plan(plan)) << plan.reason;
    EXPECT_EQ(peak_of(plan), 3200);
  }
}

TEST(PipelinePlan, WiderGroupsKeepALimitOnActivationsInFlight) {
  // On all eight ranks a sequence of 8000 leaves 1000 on each, of which four are in flight.
  const Topology topology{.ranks = 8, .capacity = 16'384, .pipeline = uneven};
  const StepPlan plan =
      checked_plan(batch_of(std::vector<Tokens>(24, 8000)), topology, simple_cost(),
                   {.context = "dynamic", .max_activation_bytes = 1600});
  ASSERT_TRUE(has_plan(plan)) << plan.reason;
  EXPECT_EQ(peak_of(plan), 1600);
}

TEST(PipelinePlan, SaysThatSoManyInFlightExceedAnyLimitOnActivations) {
  const Topology topology{.ranks = 8, .capacity = 16'384, .pipeline = uneven};
  const StepPlan plan =
      checked_plan(batch_of(std::vector<Tokens>(24, 8000)), topology, simple_cost(),
                   {.context = "dynamic", .max_activation_bytes = 1596});
  EXPECT_EQ(plan.status, Status::infeasible);
  EXPECT_EQ(plan.reason,
            "4 micro-batches in flight hold at least 1597 activation bytes on a stage of some "
            "rank, max_activation_bytes is 1596");
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

TEST(PipelinePlan, TakesEqualSharesForNone) {
  Topology topology{.ranks = 4, .capacity = 4000, .pipeline = {.stages = 4}};
  const Batch batch = batch_of({3000, 200, 1500, 700, 2500, 90, 4000, 1200, 330, 2100});
  const StepPlan none = checked_plan(batch, topology, simple_cost(), {.context = "dynamic"});
  topology.pipeline.shares.assign(4, 0.25);
  EXPECT_EQ(checked_plan(batch, topology, simple_cost(), {.context = "dynamic"}), none);
}

}  // namespace
}  // namespace isochron
