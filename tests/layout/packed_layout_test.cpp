#include "isochron/layout/packed_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "isochron/core/random.h"
#include "isochron/step/step_plan.h"

namespace isochron {
namespace {

using testing::ElementsAre;
using testing::ThrowsMessage;

// The example of three sequences, as ids: A = 10..14, B = 20..27, C = 30..32; 0 is padding.
const std::vector<Tokens> example_lengths = {5, 8, 3};
const std::vector<int> example_ids = {10, 11, 12, 13, 14, 20, 21, 22,
                                      23, 24, 25, 26, 27, 30, 31, 32};

std::vector<int> ids_at(const std::vector<std::int64_t>& indices) {
  std::vector<int> ids;
  for (const std::int64_t index : indices) {
    ids.push_back(index < 0 ? 0 : example_ids.at(static_cast<std::size_t>(index)));
  }
  return ids;
}

TEST(PackedLayout, OneRankHoldsWholeSequencesOneBehindTheOther) {
  const PackedLayout layout = packed_layout(example_lengths);
  EXPECT_THAT(layout.cu_seqlens, ElementsAre(0, 5, 13, 16));
  EXPECT_EQ(ids_at(layout.source), example_ids);
  EXPECT_THAT(ids_at(layout.target),
              ElementsAre(11, 12, 13, 14, 0, 21, 22, 23, 24, 25, 26, 27, 0, 31, 32, 0));
  EXPECT_THAT(layout.positions, ElementsAre(0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2));
}

TEST(PackedLayout, TwoRanksHoldAZigzag) {
  const PackedLayout first = packed_layout(example_lengths, {.context_size = 2, .context_rank = 0});
  EXPECT_THAT(first.cu_seqlens, ElementsAre(0, 8, 16, 20));
  EXPECT_THAT(ids_at(first.source), ElementsAre(10, 11, 0, 0, 20, 21, 26, 27, 30, 0));
  EXPECT_THAT(ids_at(first.target), ElementsAre(11, 12, 0, 0, 21, 22, 27, 0, 31, 0));
  EXPECT_THAT(first.positions, ElementsAre(0, 1, 0, 0, 0, 1, 6, 7, 0, 0));

  const PackedLayout last = packed_layout(example_lengths, {.context_size = 2, .context_rank = 1});
  EXPECT_EQ(last.cu_seqlens, first.cu_seqlens);
  EXPECT_THAT(ids_at(last.source), ElementsAre(12, 13, 14, 0, 22, 23, 24, 25, 31, 32));
  EXPECT_THAT(ids_at(last.target), ElementsAre(13, 14, 0, 0, 23, 24, 25, 26, 32, 0));
}

TEST(PackedLayout, TheLastOfFourRanksHoldsTheMiddle) {
  const PackedLayout layout =
      packed_layout(example_lengths, {.context_size = 4, .context_rank = 3});
  EXPECT_THAT(layout.cu_seqlens, ElementsAre(0, 8, 16, 24));
  EXPECT_THAT(ids_at(layout.source), ElementsAre(13, 14, 23, 24, 0, 0));
}

// verl 0.9.1 gave the second chunk of rank 1 the positions 2402..4803.
TEST(PackedLayout, PositionsAreOriginalIndicesInBothChunks) {
  const std::vector<Tokens> lengths = {4803};
  const PackedLayout layout = packed_layout(lengths, {.context_size = 2, .context_rank = 1});
  EXPECT_EQ(layout.positions.front(), 1201);
  EXPECT_EQ(layout.positions.back(), 3602);
  EXPECT_TRUE(std::ranges::is_sorted(layout.positions));
}

TEST(PackedLayout, NothingGivesNothing) {
  const PackedLayout layout = packed_layout({}, {.context_size = 3, .context_rank = 2});
  EXPECT_THAT(layout.cu_seqlens, ElementsAre(0));
  EXPECT_TRUE(layout.source.empty());
}

TEST(PackedLayout, TensorParallelPadsAlsoOnOneRank) {
  const std::vector<Tokens> lengths = {5};
  const PackedLayout layout = packed_layout(lengths, {.tensor_parallel = 4});
  EXPECT_THAT(layout.cu_seqlens, ElementsAre(0, 8));
  EXPECT_THAT(layout.source, ElementsAre(0, 1, 2, 3, 4, -1, -1, -1));
}

TEST(PackedLayout, RejectsWhatItCannotLayOut) {
  const std::vector<Tokens> empty_one = {3, 0};
  EXPECT_THAT([&] { (void)packed_layout(empty_one); },
              ThrowsMessage<std::invalid_argument>(
                  "[packed_layout] lengths[1] is 0, must be from 1 to 2147483647"));
  const std::vector<Tokens> huge = {max_length, 2};
  EXPECT_THAT([&] { (void)packed_layout(huge); },
              ThrowsMessage<std::invalid_argument>("[packed_layout] lengths[1] brings the padded "
                                                   "tokens to 2147483649, allowed are 2147483647"));
  EXPECT_THAT([&] { (void)packed_layout({}, {.context_size = 2, .context_rank = 2}); },
              ThrowsMessage<std::invalid_argument>(
                  "[packed_layout] context_rank is 2, must be from 0 to 1"));
  EXPECT_THAT([&] { (void)packed_layout({}, {.context_size = 0}); },
              ThrowsMessage<std::invalid_argument>(
                  "[packed_layout] context_size is 0, must be from 1 to 1048576"));
  EXPECT_THAT([&] { (void)packed_layout({}, {.tensor_parallel = 0}); },
              ThrowsMessage<std::invalid_argument>(
                  "[packed_layout] tensor_parallel is 0, must be from 1 to 1048576"));
}

TEST(PackedLayout, TheRanksOfAGroupHoldEveryTokenOnce) {
  Random random(1);
  for (int round = 0; round < 2000; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    std::vector<Tokens> lengths(random.below(6));
    for (Tokens& length : lengths) length = random.between(1, 40);
    const auto size = static_cast<std::int32_t>(random.between(1, 9));
    const auto tensor_parallel = static_cast<std::int32_t>(random.between(1, 3));
    Tokens num_tokens = 0;
    Tokens num_padded = 0;
    for (const Tokens length : lengths) {
      num_tokens += length;
      num_padded += padded_length(length, size, tensor_parallel);
    }
    std::vector<int> times_held(static_cast<std::size_t>(num_tokens), 0);
    std::vector<int> times_target(static_cast<std::size_t>(num_tokens), 0);
    for (std::int32_t rank = 0; rank < size; ++rank) {
      const PackedLayout layout = packed_layout(
          lengths,
          {.context_size = size, .context_rank = rank, .tensor_parallel = tensor_parallel});
      ASSERT_EQ(layout.cu_seqlens.back(), num_padded);
      ASSERT_EQ(static_cast<Tokens>(layout.source.size()) * size, num_padded);
      ASSERT_EQ(layout.target.size(), layout.source.size());
      ASSERT_EQ(layout.positions.size(), layout.source.size());
      for (std::size_t i = 0; i < layout.source.size(); ++i) {
        if (layout.target[i] >= 0) {
          ASSERT_EQ(layout.target[i], layout.source[i] + 1);
          ++times_target[static_cast<std::size_t>(layout.target[i])];
        }
        if (layout.source[i] < 0) {
          ASSERT_EQ(layout.positions[i], 0);
        } else {
          ++times_held[static_cast<std::size_t>(layout.source[i])];
        }
      }
    }
    // Every token is predicted once, but for the first of each sequence.
    std::vector<int> expected(static_cast<std::size_t>(num_tokens), 1);
    Tokens start = 0;
    for (const Tokens length : lengths) {
      expected[static_cast<std::size_t>(start)] = 0;
      start += length;
    }
    ASSERT_EQ(times_target, expected);
    ASSERT_TRUE(std::ranges::all_of(times_held, [](int times) { return times == 1; }));
  }
}

// 3 and 5 tokens on two ranks: chunks of 1 and 2. Rank 0 holds a0 a3 b01 b67, rank 1 a1 a2 b23 b45.
TEST(ShardOrder, SaysWhereEachTokenLiesAmongTheShards) {
  EXPECT_EQ(shard_order(std::vector<std::int32_t>{0, 4, 12}, 2),
            (std::vector<std::int64_t>{0, 6, 7, 1, 2, 3, 8, 9, 10, 11, 4, 5}));
  EXPECT_EQ(shard_order(std::vector<std::int32_t>{0, 2, 3}, 1),
            (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_THROW((void)shard_order(std::vector<std::int32_t>{0, 6}, 2), std::invalid_argument);
}

TEST(ShardOrder, LeadsToEveryTokenOfRandomLayouts) {
  Random random(5);
  for (int round = 0; round < 500; ++round) {
    const auto size = static_cast<std::int32_t>(random.between(1, 9));
    std::vector<Tokens> lengths(static_cast<std::size_t>(random.between(1, 5)));
    for (Tokens& length : lengths) length = random.between(1, 60);
    std::vector<std::int64_t> sources;  // of the shards, one behind the other
    std::vector<std::int32_t> cu_seqlens;
    for (std::int32_t rank = 0; rank < size; ++rank) {
      const PackedLayout layout =
          packed_layout(lengths, {.context_size = size, .context_rank = rank});
      sources.insert(sources.end(), layout.source.begin(), layout.source.end());
      cu_seqlens = layout.cu_seqlens;
    }
    const std::vector<std::int64_t> order = shard_order(cu_seqlens, size);
    ASSERT_EQ(order.size(), sources.size());
    std::int64_t start = 0;
    for (std::size_t i = 0; i < lengths.size(); start += lengths[i++]) {
      for (std::int32_t k = cu_seqlens[i]; k < cu_seqlens[i + 1]; ++k) {
        const Tokens position = k - cu_seqlens[i];
        ASSERT_EQ(sources[static_cast<std::size_t>(order[static_cast<std::size_t>(k)])],
                  position < lengths[i] ? start + position : -1);
      }
    }
  }
}

}  // namespace
}  // namespace isochron
