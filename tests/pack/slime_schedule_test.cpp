#include "isochron/pack/slime_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "isochron/balance/karmarkar_karp.h"
#include "isochron/core/random.h"
#include "tests/support/ids_of.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

using Lists = std::vector<std::vector<std::int32_t>>;
using Lengths = std::vector<Tokens>;
using Rollouts = std::vector<std::int64_t>;

const SlimeShape tiny = {.hidden_size = 16,
                         .num_attention_heads = 2,
                         .kv_channels = 8,
                         .num_query_groups = 2,
                         .ffn_hidden_size = 64,
                         .vocab_size = 32,
                         .num_layers = 2};

Rollouts one_each(std::size_t count) {
  Rollouts rollouts(count);
  std::iota(rollouts.begin(), rollouts.end(), 0);
  return rollouts;
}

// All samples in one step, each its own rollout.
SlimeSchedule one_step(const Lengths& lengths, SlimeScheduleOptions options) {
  options.global_batch_size = static_cast<std::int32_t>(lengths.size());
  return slime_schedule(lengths, one_each(lengths.size()), tiny, options);
}

template <class Call>
std::string assertion_of(Call call) {
  try {
    call();
  } catch (const PeerAssertionError& error) {
    return error.what();
  }
  return "no assertion";
}

std::vector<std::vector<SequenceId>> bins_of(const Lists& lists) {
  std::vector<std::vector<SequenceId>> bins;
  for (const auto& list : lists) {
    bins.emplace_back();
    for (const std::int32_t id : list) bins.back().push_back(SequenceId(id));
  }
  return bins;
}

TEST(SlimeFirstFitPack, GivesAnOversizeSampleABinOfItsOwn) {
  EXPECT_EQ(ids_of(slime_first_fit_pack(Lengths{100, 200, 300}, 300)), (Lists{{0, 1}, {2}}));
  EXPECT_EQ(ids_of(slime_first_fit_pack(Lengths{3, 15, 3, 0, 5}, 10)),
            (Lists{{0, 2, 3}, {1}, {4}}));
  EXPECT_EQ(ids_of(slime_first_fit_pack(Lengths{15, 0}, 10)), (Lists{{0}, {1}}));
  EXPECT_TRUE(slime_first_fit_pack(Lengths{}, 10).empty());
  EXPECT_EQ(slime_min_microbatches(Lengths{5, 3, 7, 2, 6}, 10), 3);
  EXPECT_EQ(slime_min_microbatches(Lengths{15, 3, 3}, 10), 2);
}

TEST(SlimeFirstFitPack, EqualsTheScanOverAllBins) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    Lengths lengths(random.below(60));
    for (Tokens& length : lengths) length = random.between(0, 12);
    Lists bins;
    Lengths sums;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      std::size_t bin = 0;
      while (bin < bins.size() && sums[bin] + lengths[i] > 10) ++bin;
      if (bin == bins.size()) {
        bins.emplace_back();
        sums.push_back(0);
      }
      bins[bin].push_back(static_cast<std::int32_t>(i));
      sums[bin] += lengths[i];
    }
    ASSERT_EQ(ids_of(slime_first_fit_pack(lengths, 10)), bins);
  }
}

TEST(SlimeExpandBins, SplitsTheLargestAndTheLastOfEqualOnes) {
  const Lengths lengths = {5, 4, 3, 2, 1};
  EXPECT_EQ(ids_of(slime_expand_bins(bins_of({{0, 1, 2}, {3, 4}}), 4, lengths)),
            (Lists{{0}, {3, 4}, {1}, {2}}));
  EXPECT_EQ(ids_of(slime_expand_bins(bins_of({{0, 1}, {2, 3}}), 3, Lengths{2, 2, 2, 2})),
            (Lists{{0, 1}, {2}, {3}}));
  EXPECT_EQ(ids_of(slime_expand_bins(bins_of({{0}, {1}}), 9, lengths)), (Lists{{0}, {1}}));
}

TEST(SlimeExpandBins, MakesEmptyBinsOfZeroLengths) {
  EXPECT_EQ(ids_of(slime_expand_bins(bins_of({{0, 1}}), 3, Lengths{0, 0})),
            (Lists{{0, 1}, {}, {}}));
}

TEST(SlimeForwardFlops, FollowsTheFormula) {
  // qkv 2*3*16*16 + 4*3*16*16, attention 2*16*9, out 2*3*256, mlp 6*3*16*64; head 2*3*16*32.
  EXPECT_EQ(slime_forward_flops(3, tiny), 2.0 * (1536 + 3072 + 288 + 1536 + 18432) + 3072);
  EXPECT_EQ(message_of([] { (void)slime_forward_flops(3, {}); }),
            "[slime_forward_flops] hidden_size is 0, must be from 1 to 2^31 - 1");
}

TEST(SlimeSchedule, GivesTheGoldenAnswers) {
  const SlimeSchedule oversize =
      one_step({15, 3, 3, 3, 3, 3, 3, 3},
               {.dp_size = 2, .use_dynamic_batch_size = true, .max_tokens_per_gpu = 10});
  EXPECT_EQ(ids_of(oversize.partitions), (Lists{{0, 4, 5, 6}, {1, 2, 3, 7}}));
  EXPECT_EQ(oversize.micro_batch_indices, (std::vector<Lists>{{{0}, {1, 2, 3}}, {{0, 1, 2}, {3}}}));
  EXPECT_EQ(oversize.num_microbatches, (std::vector<std::int32_t>{2}));
  EXPECT_EQ(oversize.global_batch_sizes, (std::vector<std::int32_t>{8}));

  EXPECT_EQ(
      ids_of(one_step(Lengths(8, 5),
                      {.dp_size = 2, .use_dynamic_batch_size = true, .max_tokens_per_gpu = 10})
                 .partitions),
      (Lists{{0, 1, 4, 5}, {2, 3, 6, 7}}));

  const SlimeSchedule two_steps = slime_schedule(Lengths(32, 4), one_each(32), tiny,
                                                 {.global_batch_size = 16,
                                                  .dp_size = 2,
                                                  .vpp_size = 2,
                                                  .microbatch_group_size_per_vp_stage = 2,
                                                  .use_dynamic_batch_size = true,
                                                  .max_tokens_per_gpu = 8});
  EXPECT_EQ(two_steps.num_microbatches, (std::vector<std::int32_t>{4, 4}));
  EXPECT_EQ(two_steps.global_batch_sizes, (std::vector<std::int32_t>{16, 16}));

  const SlimeSchedule dropped = slime_schedule(
      Lengths(8, 3), Rollouts{0, 0, 1, 2, 2, 3, 4, 4}, tiny,
      {.global_batch_size = 2, .use_dynamic_batch_size = true, .max_tokens_per_gpu = 12});
  EXPECT_EQ(ids_of(dropped.partitions), (Lists{{0, 1, 2, 3, 4, 5}}));

  EXPECT_EQ(ids_of(one_step({1, 2, 3, 4, 5, 7, 9, 10},
                            {.dp_size = 2, .micro_batch_size = 1, .balance_data = true})
                       .partitions),
            (Lists{{1, 2, 5, 6}, {0, 3, 4, 7}}));

  const SlimeSchedule pipeline = one_step({6933, 3171, 6225, 7308, 3461, 347, 2137, 7925, 4204,
                                           3996, 3333, 7538, 6436, 6814, 2500, 7944},
                                          {.dp_size = 2,
                                           .cp_size = 2,
                                           .vpp_size = 2,
                                           .microbatch_group_size_per_vp_stage = 2,
                                           .use_dynamic_batch_size = true,
                                           .max_tokens_per_gpu = 4096});
  EXPECT_EQ(pipeline.num_microbatches, (std::vector<std::int32_t>{6}));
  EXPECT_EQ(ids_of(pipeline.partitions),
            (Lists{{0, 5, 2, 6, 8, 9, 10, 12, 14}, {1, 4, 3, 7, 11, 13, 15}}));
}

TEST(SlimeSchedule, FailsWhereBinsCannotBeAligned) {
  // 5 micro-batches are possible, 2 ranks need 6.
  EXPECT_EQ(assertion_of([] {
              (void)one_step(
                  Lengths(5, 9),
                  {.dp_size = 2, .use_dynamic_batch_size = true, .max_tokens_per_gpu = 10});
            }),
            "dynamic path: could only produce 5 mbs after maximal splitting; need 6. step 0 has 5 "
            "samples, below the alignment threshold (2).");
  EXPECT_EQ(assertion_of([] {
              (void)one_step({1, 2, 3, 4, 5}, {.dp_size = 2,
                                               .vpp_size = 2,
                                               .microbatch_group_size_per_vp_stage = 4,
                                               .use_dynamic_batch_size = true,
                                               .max_tokens_per_gpu = 100});
            }),
            "dynamic path: could only produce 5 mbs after maximal splitting; need 8. step 0 has 5 "
            "samples, below the alignment threshold (8).");
  EXPECT_EQ(
      assertion_of([] { (void)one_step(Lengths(18, 10), {.dp_size = 4, .micro_batch_size = 2}); }),
      "static path: num_mbs (9) is not a multiple of dp_size * mb_group (4); got "
      "step_size=18, micro_batch_size=2, dp_size=4, mb_group=1. Splitting static mbs would "
      "break the fixed-size invariant; adjust the config so step_size % (dp_size * "
      "micro_batch_size * mb_group) == 0.");
}

TEST(SlimeSchedule, FailsOnTooFewRolloutsOrSamples) {
  const SlimeScheduleOptions options = {
      .global_batch_size = 3, .dp_size = 4, .micro_batch_size = 1};
  EXPECT_EQ(assertion_of([&] {
              (void)slime_schedule(Lengths{1, 1}, Rollouts{0, 1}, tiny, options);
            }),
            "num_rollouts (2) < global_batch_size (3); need at least one rollout per step.");
  EXPECT_EQ(assertion_of([&] {
              (void)slime_schedule(Lengths{1, 1, 1}, Rollouts{0, 1, 2}, tiny, options);
            }),
            "step 0: 3 samples < dp_size 4; each step needs at least one sample per rank.");
}

TEST(SlimeSchedule, NamesWhatItRejects) {
  EXPECT_EQ(message_of([] { (void)slime_schedule(Lengths{1}, {}, tiny, {}); }),
            "[slime_schedule] 1 lengths and 0 rollouts differ");
  EXPECT_EQ(message_of([] { (void)slime_schedule(Lengths{1}, Rollouts{0}, tiny, {}); }),
            "[slime_schedule] global_batch_size is 0, must be at least 1");
  EXPECT_EQ(message_of([] { (void)one_step({1}, {}); }),
            "[slime_schedule] micro_batch_size is not given, a static batch size needs it");
  EXPECT_EQ(message_of([] { (void)one_step({1}, {.use_dynamic_batch_size = true}); }),
            "[slime_schedule] max_tokens_per_gpu is not given, a dynamic batch size needs it");
  EXPECT_EQ(message_of([] { (void)one_step({-1}, {}); }),
            "[slime_schedule] lengths[0] is -1, must be from 0 to 2^31 - 1");
  EXPECT_EQ(message_of([] {
              (void)one_step({1}, {.cp_size = 2,
                                   .use_dynamic_batch_size = true,
                                   .max_tokens_per_gpu = max_total_cost});
            }),
            "[slime_schedule] max_tokens_per_gpu 4611686018427387904 times cp_size 2 is more than "
            "2^62");
}

TEST(SlimeSchedule, OverrunsTheCapWhenItBalancesByFlops) {
  const Lengths lengths = {7, 7, 7, 7, 7, 7, 7, 7};
  const SlimeSchedule schedule = one_step(lengths, {.use_dynamic_batch_size = true,
                                                    .max_tokens_per_gpu = 8,
                                                    .balance_data = true,
                                                    .balance_by_flops = true});
  std::size_t most = 0;
  for (const auto& microbatch : schedule.micro_batch_indices[0]) {
    most = std::max(most, microbatch.size());
  }
  EXPECT_EQ(schedule.num_microbatches, (std::vector<std::int32_t>{7}));
  EXPECT_EQ(most, 2u);  // 14 tokens
}

TEST(SlimeSchedule, PlacesEverySampleOnceUnderTheCap) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    Lengths lengths(20 + random.below(40));
    for (Tokens& length : lengths) length = random.between(1, 30);
    const SlimeScheduleOptions options = {
        .dp_size = static_cast<std::int32_t>(1 + random.below(4)),
        .vpp_size = 2,
        .microbatch_group_size_per_vp_stage = static_cast<std::int32_t>(1 + random.below(3)),
        .use_dynamic_batch_size = true,
        .max_tokens_per_gpu = 60,
        .balance_data = random.below(2) == 0};
    const SlimeSchedule schedule = one_step(lengths, options);
    std::vector<std::int32_t> placed;
    for (std::size_t rank = 0; rank < schedule.partitions.size(); ++rank) {
      ASSERT_EQ(schedule.micro_batch_indices[rank].size(),
                static_cast<std::size_t>(schedule.num_microbatches[0]));
      std::int32_t next = 0;
      for (const auto& microbatch : schedule.micro_batch_indices[rank]) {
        Tokens tokens = 0;
        for (const std::int32_t position : microbatch) {
          ASSERT_EQ(position, next++);
          const SequenceId sample = schedule.partitions[rank][static_cast<std::size_t>(position)];
          placed.push_back(sample.value());
          tokens += lengths[sample.index()];
        }
        EXPECT_LE(tokens, 60);
      }
    }
    EXPECT_EQ(schedule.num_microbatches[0] % options.microbatch_group_size_per_vp_stage, 0);
    std::sort(placed.begin(), placed.end());
    ASSERT_EQ(placed.size(), lengths.size());
    for (std::size_t i = 0; i < placed.size(); ++i) {
      ASSERT_EQ(placed[i], static_cast<std::int32_t>(i));
    }
  }
}

TEST(SlimeCappedPartitions, RepairsWhatDifferencingOverfills) {
  const Lengths lengths = {3, 3, 5, 5, 3};
  const auto balanced = balanced_partitions(lengths, 2, PartSizes::free);
  Lengths sums;
  for (const auto& part : balanced) {
    sums.push_back(0);
    for (const SequenceId id : part) sums.back() += lengths[id.index()];
  }
  EXPECT_THAT(sums, testing::ElementsAre(11, 8));
  EXPECT_EQ(slime_min_microbatches(lengths, 10), 2);
  EXPECT_EQ(ids_of(slime_capped_partitions(lengths, 2, 10)), (Lists{{0, 1, 4}, {2, 3}}));
}

TEST(SlimeCappedPartitions, CrashesOnAnOversizeSample) {
  EXPECT_EQ(assertion_of([] {
              (void)slime_capped_partitions(Lengths{15, 3, 3}, 2, 10);
            }),
            "This should never happen.");
  EXPECT_EQ(assertion_of([] {
              (void)slime_capped_partitions(Lengths{9, 9, 9}, 2, 10);
            }),
            "This should never happen.");
}

TEST(SlimeCappedPartitions, LeavesPartitionsEmpty) {
  EXPECT_EQ(ids_of(slime_capped_partitions(Lengths{3, 3}, 3, 10)), (Lists{{0, 1}, {}, {}}));
}

}  // namespace
}  // namespace isochron
