#include "isochron/pack/rank_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "isochron/core/random.h"
#include "isochron/pack/slime_schedule.h"
#include "isochron/pack/verl_microbatches.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

std::vector<Nanoseconds> workloads(std::span<const Tokens> lengths) {
  std::vector<Nanoseconds> costs;
  for (const Tokens length : lengths) costs.push_back(verl_workload(length));
  return costs;
}

RankSchedule schedule_of(std::span<const Tokens> lengths, std::int32_t ranks,
                         const PackOptions& options) {
  const std::vector<Nanoseconds> costs = workloads(lengths);
  return schedule_ranks({.lengths = lengths, .costs = costs}, ranks, options);
}

// Every rule of a schedule, stated once more.
void expect_valid(const RankSchedule& schedule, std::span<const Tokens> lengths, std::int32_t ranks,
                  const PackOptions& options) {
  std::vector<bool> is_seen(lengths.size(), false);
  for (const SequenceId id : schedule.packing.dropped) is_seen[id.index()] = true;
  std::vector<bool> is_dealt(schedule.packing.microbatches.size(), false);
  ASSERT_THAT(schedule.microbatches_of_rank, SizeIs(static_cast<std::size_t>(ranks)));
  Nanoseconds max_cost = 0;
  for (const auto& places : schedule.microbatches_of_rank) {
    EXPECT_EQ(places.size(), schedule.microbatches_of_rank.front().size());
    EXPECT_EQ(places.size() % static_cast<std::size_t>(options.multiple), 0u);
    EXPECT_GE(static_cast<std::int32_t>(places.size()), options.min_count);
    Nanoseconds cost = 0;
    bool is_empty_seen = false;
    for (const std::int32_t place : places) {
      const auto& microbatch = schedule.packing.microbatches[static_cast<std::size_t>(place)];
      EXPECT_FALSE(is_dealt[static_cast<std::size_t>(place)]);
      is_dealt[static_cast<std::size_t>(place)] = true;
      EXPECT_FALSE(is_empty_seen && !microbatch.empty()) << "an empty micro-batch is not last";
      is_empty_seen |= microbatch.empty();
      Tokens tokens = 0;
      for (const SequenceId id : microbatch) {
        EXPECT_FALSE(is_seen[id.index()]);
        is_seen[id.index()] = true;
        tokens += lengths[id.index()];
        cost += verl_workload(lengths[id.index()]);
      }
      EXPECT_TRUE(tokens <= options.capacity || microbatch.size() == 1);
    }
    max_cost = std::max(max_cost, cost);
  }
  EXPECT_TRUE(std::all_of(is_seen.begin(), is_seen.end(), [](bool seen) { return seen; }));
  EXPECT_TRUE(std::all_of(is_dealt.begin(), is_dealt.end(), [](bool dealt) { return dealt; }));
  EXPECT_EQ(schedule.max_cost, max_cost);
  EXPECT_LE(schedule.lower_bound, schedule.max_cost);
}

TEST(ScheduleRanks, DealsEquallyManyMicrobatchesOfEqualCost) {
  const std::vector<Tokens> lengths(8, 5);
  const RankSchedule schedule = schedule_of(lengths, 2, {.capacity = 10});
  expect_valid(schedule, lengths, 2, {.capacity = 10});
  EXPECT_THAT(schedule.packing.microbatches, SizeIs(4));
  EXPECT_EQ(schedule.max_cost, schedule.lower_bound);
}

TEST(ScheduleRanks, GivesFiveSamplesOfNineTokensAnAnswerForEveryPolicy) {
  // slime's alignment fails here: five micro-batches are possible, two ranks need six.
  const std::vector<Tokens> lengths(5, 9);
  PackOptions options{.capacity = 10};
  const RankSchedule with_empty = schedule_of(lengths, 2, options);
  expect_valid(with_empty, lengths, 2, options);
  EXPECT_THAT(with_empty.packing.microbatches, SizeIs(6));
  EXPECT_TRUE(with_empty.packing.microbatches.back().empty());

  options.short_ = Short::error;
  const RankSchedule refused = schedule_of(lengths, 2, options);
  EXPECT_EQ(refused.packing.status, Status::infeasible);
  EXPECT_EQ(refused.packing.reason, "5 sequences cannot fill 6 micro-batches");
  EXPECT_TRUE(refused.microbatches_of_rank.empty());

  options.short_ = Short::drop;
  const RankSchedule dropped = schedule_of(lengths, 2, options);
  expect_valid(dropped, lengths, 2, options);
  EXPECT_THAT(dropped.packing.dropped, ElementsAre(SequenceId(4)));
}

TEST(ScheduleRanks, NamesTheSampleThatMadeSlimeAssert) {
  const std::vector<Tokens> lengths = {15, 3, 3, 3, 3, 3, 3, 3};
  const RankSchedule refused = schedule_of(lengths, 2, {.capacity = 10});
  EXPECT_EQ(refused.packing.reason, "sequence 0 has 15 tokens, a micro-batch may hold 10");
  const PackOptions alone{.capacity = 10, .oversize = Oversize::alone};
  expect_valid(schedule_of(lengths, 2, alone), lengths, 2, alone);
}

TEST(ScheduleRanks, ChecksItsOwnArguments) {
  const std::vector<Tokens> lengths = {1};
  EXPECT_EQ(message_of([&] { (void)schedule_of(lengths, 0, {.capacity = 1}); }),
            "[schedule_ranks] ranks is 0, must be at least 1");
  EXPECT_EQ(message_of(
                [&] { (void)schedule_of(lengths, 1 << 12, {.capacity = 1, .multiple = 1 << 13}); }),
            "[schedule_ranks] multiple is 8192 on 4096 ranks, must be at most 16777216 on all");
  EXPECT_EQ(message_of([&] { (void)schedule_of(lengths, 2, {.capacity = 0}); }),
            "[pack] capacity is 0, must be at least 1");
}

TEST(ScheduleRanks, NeedsNoMoreMicrobatchesThanSlimeAndKeepsTheCap) {
  double ours = 0;
  double theirs = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    std::vector<Tokens> lengths(static_cast<std::size_t>(random.between(40, 120)));
    for (Tokens& length : lengths) length = random.between(1, 4096) * random.between(1, 2);
    std::vector<std::int64_t> rollouts(lengths.size());
    std::iota(rollouts.begin(), rollouts.end(), 0);
    const auto ranks = static_cast<std::int32_t>(random.between(1, 6));
    const auto group = static_cast<std::int32_t>(random.between(1, 3));
    const SlimeShape shape{16, 2, 8, 2, 64, 32, 2};
    const SlimeSchedule slime =
        slime_schedule(lengths, rollouts, shape,
                       {.global_batch_size = static_cast<std::int32_t>(lengths.size()),
                        .dp_size = ranks,
                        .vpp_size = 2,
                        .microbatch_group_size_per_vp_stage = group,
                        .use_dynamic_batch_size = true,
                        .max_tokens_per_gpu = 16384,
                        .balance_data = true});
    const PackOptions options{.capacity = 16384, .multiple = group};
    const RankSchedule schedule = schedule_of(lengths, ranks, options);
    expect_valid(schedule, lengths, ranks, options);
    EXPECT_LE(schedule.microbatches_of_rank.front().size(),
              slime.micro_batch_indices.front().size());
    Nanoseconds slime_max = 0;
    for (const auto& samples : slime.partitions) {
      Nanoseconds cost = 0;
      for (const SequenceId id : samples) cost += verl_workload(lengths[id.index()]);
      slime_max = std::max(slime_max, cost);
    }
    ours += static_cast<double>(schedule.max_cost) / static_cast<double>(schedule.lower_bound);
    theirs += static_cast<double>(slime_max) / static_cast<double>(schedule.lower_bound);
  }
  EXPECT_LT(ours, theirs);
}

}  // namespace
}  // namespace isochron
