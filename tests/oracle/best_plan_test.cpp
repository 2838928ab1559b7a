#include "tests/oracle/best_plan.h"

#include <gtest/gtest.h>

#include <functional>

#include "isochron/core/random.h"
#include "tests/oracle/schedules.h"
#include "tests/support/message_of.h"
#include "tests/support/random_plan.h"

namespace isochron::oracle {
namespace {

// A token costs 1 ns and holds 1 byte, a micro-batch `microbatch_ns`, a group of several ranks 1000
// ns.
CostModel one_per_token(double microbatch_ns = 0) {
  const ContextLink link{.max_ranks = 64, .gb_per_s = 1, .latency_us = 1};
  return {.name = "one",
          .linear_ns = 1,
          .microbatch_ns = microbatch_ns,
          .forward_share = 0.5,
          .context = {{.kind = ContextKind::all_gather_kv, .links = {link}}},
          .activation_bytes_per_token = 1};
}

std::optional<Nanoseconds> best_of(const Batch& batch, const Topology& topology,
                                   const PlanOptions& options, double microbatch_ns = 0) {
  return best_step_time(batch, topology, one_per_token(microbatch_ns), resolved(options, topology));
}

Batch lengths(std::vector<Tokens> values) {
  Batch batch;
  batch.lengths = std::move(values);
  return batch;
}

TEST(BestPlan, PacksUnderTheCapOnEachRank) {
  const Batch batch = lengths({4, 3, 3});
  EXPECT_EQ(best_of(batch, {.ranks = 2, .capacity = 10}, {}, 1), 7);  // 4 | 3+3
  EXPECT_EQ(best_of(batch, {.ranks = 2, .capacity = 4}, {}, 1), 8);   // 4 | 3, 3
  EXPECT_EQ(best_of(batch, {.ranks = 2, .capacity = 3}, {}, 1), std::nullopt);
  EXPECT_EQ(best_of(batch, {.ranks = 2, .capacity = 10}, {.max_sequences = 1}, 1), 8);
}

TEST(BestPlan, PadsToWhatTheGroupDivides) {
  const Batch batch = lengths({5, 5});
  EXPECT_EQ(best_of(batch, {.ranks = 1, .capacity = 10}, {}, 1), 11);
  EXPECT_EQ(best_of(batch, {.ranks = 1, .capacity = 10}, {.tensor_parallel = 4}, 1), 12);  // 8 + 8
  // On two ranks 5 becomes 8, and 4 stays: 6 a rank.
  const Topology two{.ranks = 2, .capacity = 6};
  EXPECT_EQ(best_of(lengths({5, 4}), two, {.context = "static:2"}), 3 + 2 + 1000);
  EXPECT_EQ(best_of(lengths({5, 5}), two, {.context = "static:2"}), 2 * (3 + 1000));
}

TEST(BestPlan, WaitsForTheSlowestGroupOfASlot) {
  const PlanOptions options{.sync = Sync::microbatch};
  const Batch batch = lengths({4, 3, 3});
  EXPECT_EQ(best_of(batch, {.ranks = 2, .capacity = 10}, options, 1), 7);
  EXPECT_EQ(best_of(batch, {.ranks = 2, .capacity = 4}, options, 1), 5 + 4);
}

TEST(BestPlan, HasPlaceholdersOnlyWhereNoGroupCouldBeSplit) {
  // 6 beside 3+3, then 2 beside nothing would take 8.
  const Batch batch = lengths({6, 3, 3, 2});
  const Topology topology{.ranks = 2, .capacity = 6};
  EXPECT_EQ(best_of(batch, topology, {.sync = Sync::microbatch}), 6 + 3);
  // All apart, the rank of 5 sits out one of two slots.
  const Topology five{.ranks = 2, .capacity = 5};
  EXPECT_EQ(best_of(lengths({5, 1, 1}), five, {.max_sequences = 1}, 1), 6);
  EXPECT_EQ(best_of(lengths({5, 1, 1}), five, {.counts = Counts::equal, .max_sequences = 1}, 1), 7);
  EXPECT_EQ(best_of(lengths({5}), five, {.sync = Sync::microbatch}, 7), 12);
}

TEST(BestPlan, FollowsThePolicyForTooFewSequences) {
  const Topology topology{.ranks = 2, .capacity = 5};
  PlanOptions options{.counts = Counts::equal, .short_ = Short::error};
  EXPECT_EQ(best_of(lengths({5, 5, 4}), topology, options, 1), std::nullopt);
  EXPECT_EQ(best_of(lengths({5, 5, 4, 3}), topology, options, 1), 6 + 5);
  options.short_ = Short::drop;
  EXPECT_EQ(best_of(lengths({5, 4, 5}), topology, options, 1), 6);  // without the last
  EXPECT_EQ(best_of(lengths({5}), topology, options, 1), std::nullopt);
}

TEST(BestPlan, ChoosesTheSizeAndPlaceOfGroups) {
  const Batch batch = lengths({9000, 4000});
  const Topology topology{.ranks = 4, .capacity = 100'000};
  EXPECT_EQ(best_of(batch, topology, {.context = "dynamic:any"}), 4000);  // 3 ranks, 1 rank
  EXPECT_EQ(best_of(batch, topology, {.context = "dynamic"}), 13000 / 4 + 1000);
  EXPECT_EQ(best_of(batch, topology, {.context = "dynamic", .max_context_size = 2}), 5500);
  EXPECT_EQ(best_of(batch, topology, {.context = "dynamic", .min_context_size = 4}), 4250);
  EXPECT_EQ(best_of(batch, topology, {.context = "static:2"}), 5500);
  EXPECT_EQ(best_of(batch, topology, {.context = "static:1"}), 9000);
}

TEST(BestPlan, LetsCrossingGroupsWait) {
  // Two groups of two out of three ranks share a rank, and do not fit one micro-batch.
  const PlanOptions options{.context = "dynamic:any", .min_context_size = 2, .max_context_size = 2};
  const Topology topology{.ranks = 3, .capacity = 4000};
  EXPECT_EQ(best_of(lengths({8000, 8000}), topology, options), 2 * 5000);
  // Divisors and powers of two of six ranks: 0-3 or 0-2, 3-5 or 4-5.
  EXPECT_EQ(best_of(lengths({8000, 4000}), {.ranks = 6, .capacity = 2000}, {.context = "dynamic"}),
            3000);
}

TEST(BestPlan, KnowsExtraCostsAndSlowRanks) {
  Batch batch = lengths({4, 2});
  const Topology topology{.ranks = 2, .capacity = 10, .rank_speed = {0.5, 1}};
  EXPECT_EQ(best_of(batch, topology, {}), 4);  // 2 on the slow one
  batch.extra_cost_ns = {0, 3};
  EXPECT_EQ(best_of(batch, topology, {}), 8);  // 4 on the slow one, 2+3 on the other
  EXPECT_EQ(best_of(batch, topology, {.pass = Pass::forward}), 4);
}

TEST(BestPlan, KeepsPromptGroups) {
  Batch batch = lengths({4, 3, 4, 3});
  batch.groups = {PromptGroupId(0), PromptGroupId(1), PromptGroupId(0), PromptGroupId(1)};
  const Topology topology{.ranks = 2, .capacity = 7};
  EXPECT_EQ(best_of(batch, topology, {}, 1), 8);                                  // 4+3 | 4+3
  EXPECT_EQ(best_of(batch, topology, {.keep_groups = KeepGroups::rank}, 1), 10);  // 4, 4 | 3+3
  EXPECT_EQ(best_of(batch, topology, {.keep_groups = KeepGroups::microbatch}, 1), std::nullopt);
  EXPECT_EQ(best_of(batch, {.ranks = 2, .capacity = 8}, {.keep_groups = KeepGroups::microbatch}, 1),
            9);
  const PlanOptions alone{.oversize = Oversize::alone, .keep_groups = KeepGroups::microbatch};
  EXPECT_EQ(best_of(batch, topology, alone, 1), 9);
}

TEST(BestPlan, LeavesAnOversizedSequenceAlone) {
  const Topology topology{.ranks = 2, .capacity = 2000};
  PlanOptions options{.oversize = Oversize::alone};
  EXPECT_EQ(best_of(lengths({5000, 1, 1}), topology, options, 1), 5001);
  options.context = "dynamic";
  EXPECT_EQ(best_of(lengths({5000, 1, 1}), topology, options, 1), 3501 + 2);
  options.oversize = Oversize::widen;
  EXPECT_EQ(best_of(lengths({5000, 1, 1}), topology, options, 1), std::nullopt);
}

TEST(BestPlan, PlaysOneForwardOneBackward) {
  Topology topology{.ranks = 1, .capacity = 8, .pipeline = {.stages = 2}};
  EXPECT_EQ(best_of(lengths({8, 8}), topology, {}), 12);  // (2 slots + 1) * (2 + 2)
  EXPECT_EQ(best_of(lengths({8, 8}), topology, {.sync = Sync::microbatch}), 12);
  topology.pipeline.transfer_ns = 1;
  EXPECT_EQ(best_of(lengths({8}), topology, {}), 8 + 2);
  EXPECT_EQ(best_of(lengths({8, 8}), topology, {.pass = Pass::forward}), 2 + 2 + 1 + 2);
  topology.pipeline.shares = {0.25, 0.75};  // the first waits for the second, or before it
  EXPECT_EQ(best_of(lengths({8, 8}), topology, {}), 1 + 2 * (3 + 3) + 1 + 2);
  topology.pipeline.shares.clear();
  // With 4 first the last stage starts at 1, idles 0 and ends at 15; the first ends 2 later.
  topology.pipeline.transfer_ns = 0;
  EXPECT_EQ(best_of(lengths({8, 8, 4, 8}), topology, {.max_sequences = 1}), 17);
}

TEST(BestPlan, RunsRanksOfAPipelineApart) {
  // Slots of a rank that others do not share: 8 and 4 on one, 4 and 8 on the other.
  const Topology topology{.ranks = 2, .capacity = 8, .pipeline = {.stages = 2}};
  const PlanOptions options{.max_sequences = 1};
  const auto step = best_of(lengths({8, 8, 4, 4}), topology, options);
  EXPECT_EQ(step, best_of(lengths({8, 4}), {.ranks = 1, .capacity = 8, .pipeline = {.stages = 2}},
                          options));
  EXPECT_EQ(step, 9);  // one after the other the stages work 6, and idle 1 + 1 + 1
}

TEST(BestPlan, PlaysInterleavedStages) {
  const PipelineShape interleaved{.stages = 2, .virtual_ = 2, .group = 2};
  Topology topology{.ranks = 1, .capacity = 8, .pipeline = interleaved};
  // Chunks of 1 + 1: a stage works 2 slots * 2 chunks * 2, and idles half as long as without.
  EXPECT_EQ(best_of(lengths({8, 8}), topology, {}), 8 + 2);
  EXPECT_EQ(best_of(lengths({8, 8}), topology, {.sync = Sync::microbatch}), 8 + 2);
  EXPECT_EQ(best_of(lengths({8, 8}), topology, {.pass = Pass::forward}), 4 + 1);
  topology.pipeline.transfer_ns = 1;
  EXPECT_EQ(best_of(lengths({8}), topology, {}), 8 + 6);  // a slot of a placeholder beside it
  EXPECT_EQ(best_of(lengths({8}), topology, {.short_ = Short::error}), std::nullopt);
  topology.pipeline.transfer_ns = 0;
  topology.pipeline.shares = {0.125, 0.125, 0.125, 0.625};  // chunks of 1, 1, 1 and 3
  EXPECT_EQ(best_of(lengths({8}), topology, {}), 2 * (1 + 1 + 1 + 3));
}

TEST(BestPlan, FillsWholeGroupsOfInterleavedSlots) {
  const PipelineShape three{.stages = 2, .virtual_ = 2, .group = 3};
  const Topology topology{.ranks = 1, .capacity = 8, .pipeline = three};
  // Chunks of 1 + 1 again: three slots, and never four.
  EXPECT_EQ(best_of(lengths({8, 8, 8}), topology, {}), 12 + 2);
  EXPECT_EQ(best_of(lengths({8, 4, 4}), topology, {.short_ = Short::error}),
            best_of(lengths({8, 4, 4}), topology, {.max_sequences = 1}));
  EXPECT_EQ(best_of(lengths({8, 8, 8, 8}), topology, {.short_ = Short::drop}), 12 + 2);
  // Both ranks share two slots, or one passes all chunks on its own.
  const Topology two{
      .ranks = 2, .capacity = 8000, .pipeline = {.stages = 2, .virtual_ = 2, .group = 2}};
  EXPECT_EQ(best_of(lengths({8000, 8000}), two, {.context = "dynamic"}), 5000 + 5000 / 4);
  EXPECT_EQ(best_of(lengths({8000, 8000}), two, {}), 8000);
}

TEST(BestPlan, KeepsALimitOnActivations) {
  // The first of two stages holds two slots at a time, half of their layers.
  Topology topology{.ranks = 1, .capacity = 8, .pipeline = {.stages = 2}};
  EXPECT_EQ(best_of(lengths({8, 8, 4, 4}), topology, {.max_activation_bytes = 8}), 14);
  EXPECT_EQ(best_of(lengths({8, 8, 4, 4}), topology, {.max_activation_bytes = 7}), 17);  // by turns
  EXPECT_EQ(best_of(lengths({8, 8, 4, 4}), topology, {.max_activation_bytes = 5}), std::nullopt);
  EXPECT_EQ(best_of(lengths({8, 4, 4}), topology, {.max_activation_bytes = 6}),
            best_of(lengths({8, 4, 4}), topology, {.max_sequences = 1}));
  EXPECT_EQ(best_of(lengths({8, 4, 4}), topology, {.max_activation_bytes = 5}), std::nullopt);
  const PlanOptions forward{.pass = Pass::forward, .max_activation_bytes = 4};
  EXPECT_EQ(best_of(lengths({8, 8}), topology, forward), 2 + 2 + 2);
  // A rank that sits out a slot holds less: each runs two sequences, one after the other.
  topology.ranks = 2;
  EXPECT_EQ(best_of(lengths({8, 8, 8, 8}), topology, {.max_activation_bytes = 8}), 12);
  EXPECT_EQ(best_of(lengths({8, 8, 8, 8}), topology, {.max_activation_bytes = 7}), 16);
  EXPECT_EQ(
      best_of(lengths({8, 8, 8, 8}), topology, {.short_ = Short::error, .max_activation_bytes = 7}),
      std::nullopt);
  EXPECT_EQ(best_of(lengths({8, 8, 8, 8}), topology,
                    {.sync = Sync::microbatch, .max_activation_bytes = 7}),
            20);
}

TEST(BestPlan, SaysWhatItDoesNotKnow) {
  EXPECT_EQ(message_of([] {
              (void)best_of(lengths({1}), {.ranks = 1, .capacity = 1}, {.pad_multiple = 2});
            }),
            "[best_step_time] padding rows and dealing in order are not known");
  EXPECT_EQ(message_of([] {
              (void)best_of(lengths({1}), {.ranks = 1, .capacity = 1}, {.max_activation_bytes = 2});
            }),
            "[best_step_time] limits on activations are known with stages only");
}

GroupTable random_table(Random& random, std::size_t num_units, const std::string& context) {
  Batch batch;
  for (std::size_t i = 0; i < num_units; ++i) {
    batch.lengths.push_back(random.between(1, random.below(2) == 0 ? 2000 : 12'000));
  }
  const Topology topology{.ranks = std::int32_t{1} << random.below(3), .capacity = 12'000};
  return group_table(batch, topology, one_per_token(500), resolved({.context = context}, topology))
      .value();
}

TEST(BestPlan, TwoSearchesAgreeWhereRangesNest) {
  Random random(1);
  for (int i = 0; i < 60; ++i) {
    const GroupTable table = random_table(random, 1 + random.below(5), "dynamic");
    ASSERT_TRUE(has_nested_ranges(table));
    EXPECT_EQ(best_nested(table, never), best_free(table, never)) << i;
  }
}

TEST(BestPlan, MoreRulesNeverMakeAStepShorter) {
  Random random(2);
  for (int i = 0; i < 60; ++i) {
    const GroupTable table = random_table(random, 1 + random.below(4), "dynamic:any");
    for (const GroupTable& way : tables_for_equal_counts(table, PlanOptions{})) {
      const auto lockstep = best_lockstep(way, never);
      const auto equal = best_equal(way, never);
      const auto piped =
          best_pipelined(way, {.stages = 1, .forward_share = 0.5}, Sync::step, never);
      EXPECT_EQ(equal.has_value(), lockstep.has_value()) << i;
      EXPECT_EQ(equal, piped) << i;  // a pipeline of one stage is none
      if (!equal) continue;
      EXPECT_LE(*equal, *lockstep) << i;
      EXPECT_LE(*best_free(table, never), *equal) << i;
    }
  }
}

// How many random plans of up to this many sequences were held against the best.
int num_compared_plans(std::uint64_t num_seeds, std::size_t most_sequences,
                       const std::function<RandomPlanShape(std::uint64_t)>& shape_of) {
  int num_compared = 0;
  for (std::uint64_t seed = 0; seed < num_seeds; ++seed) {
    const StepPlan plan = random_plan(seed, shape_of(seed));
    const PlanOptions& options = plan.options;
    const bool is_known = plan.batch.lengths.size() <= most_sequences && plan.padding_rows == 0 &&
                          options.pad_multiple == 1 && options.balance &&
                          (options.max_activation_bytes == 0 || plan.topology.pipeline.stages > 1);
    if (!is_known) continue;
    const auto best = best_step_time(plan.batch, plan.topology, plan.cost, options);
    EXPECT_TRUE(best.has_value()) << to_json(plan);
    if (!best) continue;
    EXPECT_LE(*best, plan.predicted_step_ns) << to_json(plan);
    ++num_compared;
  }
  return num_compared;
}

TEST(BestPlan, NoValidPlanIsFaster) {
  const auto shape_of = [](std::uint64_t seed) {
    return RandomPlanShape{.ranks = static_cast<std::int32_t>(1 + seed % 5),
                           .short_ = Short::empty,
                           .stages = static_cast<std::int32_t>(1 + seed % 3 / 2),
                           .virtual_ = 1,
                           .num_sequences = 4};
  };
  EXPECT_GT(num_compared_plans(2000, 5, shape_of), 600);
}

TEST(BestPlan, NoValidPlanWithVirtualStagesIsFaster) {
  const auto shape_of = [](std::uint64_t seed) {
    return RandomPlanShape{.ranks = static_cast<std::int32_t>(1 + seed % 3),
                           .short_ = seed % 4 == 0 ? Short::error : Short::empty,
                           .stages = static_cast<std::int32_t>(2 + seed % 5 / 4),
                           .virtual_ = 2,
                           .num_sequences = 4};
  };
  EXPECT_GT(num_compared_plans(1000, 4, shape_of), 300);
}

}  // namespace
}  // namespace isochron::oracle
