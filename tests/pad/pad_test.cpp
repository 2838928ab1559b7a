#include "isochron/pad/pad.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "isochron/core/random.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

TEST(RequiredMultiple, GivesTheGoldenNumbers) {
  const PadMultipleOptions actor = {
      .actor_ranks = 2, .actor_ppo_mini_batch_size = 15, .rollout_n = 8};
  EXPECT_EQ(required_multiple(actor, 0), 120);
  PadMultipleOptions critic = actor;
  critic.critic_ppo_mini_batch_size = 9;
  EXPECT_EQ(required_multiple(critic, 0), 360);
  critic.critic_ppo_mini_batch_size = 7;
  EXPECT_EQ(required_multiple(critic, 0), 840);
  EXPECT_EQ(required_multiple({.actor_ranks = 8,
                               .actor_ppo_mini_batch_size = 3,
                               .rollout_n = 5,
                               .critic_ppo_mini_batch_size = 5},
                              0),
            600);
}

TEST(RequiredMultiple, LeavesTheActorOutWhileTheCriticWarmsUp) {
  const PadMultipleOptions options = {.actor_ranks = 2,
                                      .actor_ppo_mini_batch_size = 15,
                                      .rollout_n = 8,
                                      .critic_ppo_mini_batch_size = 7,
                                      .critic_warmup = 3};
  EXPECT_EQ(required_multiple(options, 2), 56);
  EXPECT_EQ(required_multiple(options, 3), 840);
}

TEST(RequiredMultiple, CountsTheRanksOfTheCritic) {
  const PadMultipleOptions options = {.actor_ranks = 2,
                                      .actor_ppo_mini_batch_size = 15,
                                      .rollout_n = 8,
                                      .critic_ppo_mini_batch_size = 15,
                                      .critic_ranks = 16};
  EXPECT_EQ(required_multiple(options, 0), 240);  // verl's 120 leaves 7.5 rows a rank
}

TEST(RequiredMultiple, NamesWhatItRejects) {
  EXPECT_EQ(message_of([] { (void)required_multiple({.actor_ranks = 0}, 0); }),
            "[required_multiple] actor_ranks is 0, must be at least 1");
  EXPECT_EQ(message_of([] { (void)required_multiple({.critic_ranks = 2}, 0); }),
            "[required_multiple] critic_ranks is 2, must not be given without a critic");
  EXPECT_EQ(message_of([] { (void)required_multiple({.critic_warmup = -1}, 0); }),
            "[required_multiple] critic_warmup is -1, must be at least 0");
  EXPECT_EQ(message_of([] {
              (void)required_multiple({.actor_ppo_mini_batch_size = 2147483647,
                                       .rollout_n = 2147483629,
                                       .critic_ppo_mini_batch_size = 2147483587},
                                      0);
            }),
            "[required_multiple] the least common multiple of 4611685846628697223 and "
            "4611685975477714963 is more than 2^63 - 1");
}

TEST(NumPaddingRows, IsTheFewest) {
  EXPECT_EQ(num_padding_rows(360, 120), 0);
  EXPECT_EQ(num_padding_rows(359, 120), 1);
  EXPECT_EQ(num_padding_rows(361, 120), 119);
  EXPECT_EQ(num_padding_rows(0, 120), 0);
  for (std::int64_t rows = 0; rows < 60; ++rows) {
    for (std::int64_t multiple = 1; multiple < 30; ++multiple) {
      std::int64_t fewest = 0;
      while ((rows + fewest) % multiple != 0) ++fewest;
      ASSERT_EQ(num_padding_rows(rows, multiple), fewest) << rows << " " << multiple;
    }
  }
  constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(num_padding_rows(1, highest), highest - 1);
  EXPECT_EQ(message_of([] { (void)num_padding_rows(highest, 2); }),
            "[num_padding_rows] 9223372036854775807 rows have no multiple of 2 below 2^63");
  EXPECT_EQ(message_of([] { (void)num_padding_rows(-1, 2); }),
            "[num_padding_rows] num_rows is -1, must be at least 0");
  EXPECT_EQ(message_of([] { (void)num_padding_rows(1, 0); }),
            "[num_padding_rows] multiple is 0, must be at least 1");
}

TEST(PadRows, SpreadsPaddingOverTheMinibatches) {
  const PadOptions options = {.pad = Pad::rows, .multiple = 120, .minibatch = 120};
  EXPECT_EQ(pad_rows(360, options).num_padding, 0);
  EXPECT_EQ(pad_rows(359, options).num_padding, 1);
  const PaddedRows padded = pad_rows(361, options);
  EXPECT_EQ(padded.status, Status::optimal);
  EXPECT_EQ(padded.num_padding, 119);
  ASSERT_EQ(padded.minibatches.size(), 4u);
  for (const PaddedMinibatch& minibatch : padded.minibatches) {
    EXPECT_EQ(minibatch.end - minibatch.begin, 120);
    EXPECT_GE(minibatch.num_real, 90);  // padding at the end leaves one real row in the last
    EXPECT_LE(minibatch.num_real, 91);
    EXPECT_TRUE(minibatch.is_run);
  }
  // With a critic of 56 rows the multiple is 840; padding at the end empties three of seven.
  for (const PaddedMinibatch& minibatch :
       pad_rows(361, {.pad = Pad::rows, .multiple = 840, .minibatch = 120}).minibatches) {
    EXPECT_GE(minibatch.num_real, 51);
    EXPECT_LE(minibatch.num_real, 52);
  }
}

TEST(PadRows, NumbersPaddingAfterTheRealRows) {
  const PaddedRows padded = pad_rows(5, {.pad = Pad::rows, .multiple = 8, .minibatch = 4});
  std::vector<std::int32_t> ids;
  for (const SequenceId id : padded.rows) ids.push_back(id.value());
  EXPECT_EQ(ids, (std::vector<std::int32_t>{5, 0, 6, 1, 2, 7, 3, 4}));
  EXPECT_FALSE(padded.is_real(0));
  EXPECT_TRUE(padded.is_real(1));
  EXPECT_EQ(padded.minibatches, (std::vector<PaddedMinibatch>{{0, 4, 2, true}, {4, 8, 3, true}}));
}

TEST(PadRows, DoesNotRunAMinibatchWithoutARealRow) {
  const PaddedRows padded = pad_rows(2, {.pad = Pad::rows, .multiple = 8, .minibatch = 2});
  EXPECT_EQ(padded.minibatches,
            (std::vector<PaddedMinibatch>{
                {0, 2, 0, false}, {2, 4, 1, true}, {4, 6, 0, false}, {6, 8, 1, true}}));
}

TEST(PadRows, RunsUnevenRowsInMinibatchesOfAboutEqualSize) {
  const PaddedRows padded = pad_rows(361, {.pad = Pad::uneven, .multiple = 120, .minibatch = 120});
  EXPECT_EQ(padded.status, Status::optimal);
  EXPECT_EQ(padded.num_padding, 0);
  ASSERT_EQ(padded.minibatches.size(), 4u);
  for (const PaddedMinibatch& minibatch : padded.minibatches) {
    EXPECT_GE(minibatch.num_real, 90);
    EXPECT_LE(minibatch.num_real, 91);
    EXPECT_EQ(minibatch.num_real, minibatch.end - minibatch.begin);
  }
  EXPECT_EQ(pad_rows(7).minibatches, (std::vector<PaddedMinibatch>{{0, 7, 7, true}}));
  EXPECT_TRUE(pad_rows(0).minibatches.empty());
  EXPECT_TRUE(pad_rows(0, {.pad = Pad::rows, .multiple = 8}).rows.empty());
}

TEST(PadRows, SaysWhyThereIsNoAnswer) {
  const PaddedRows padded = pad_rows(359, {.pad = Pad::error, .multiple = 120});
  EXPECT_EQ(padded.status, Status::infeasible);
  EXPECT_EQ(padded.reason, "359 rows are not a multiple of 120");
  EXPECT_TRUE(padded.rows.empty());
  EXPECT_EQ(pad_rows(360, {.pad = Pad::error, .multiple = 120}).status, Status::optimal);
}

TEST(PadRows, NamesWhatItRejects) {
  EXPECT_EQ(message_of([] { (void)pad_rows(-1); }),
            "[pad_rows] num_rows is -1, must be at least 0");
  EXPECT_EQ(message_of([] { (void)pad_rows(1, {.multiple = 0}); }),
            "[pad_rows] multiple is 0, must be at least 1");
  EXPECT_EQ(message_of([] { (void)pad_rows(1, {.minibatch = -2}); }),
            "[pad_rows] minibatch is -2, must be at least 0");
  EXPECT_EQ(
      message_of([] { (void)pad_rows(1, {.pad = Pad::rows, .multiple = 8, .minibatch = 3}); }),
      "[pad_rows] minibatch is 3, must divide the multiple 8");
  EXPECT_EQ(message_of([] { (void)pad_rows(1, {.pad = Pad::rows, .multiple = 2147483648}); }),
            "[pad_rows] 1 rows and 2147483647 of padding are more than 2^31 - 1");
}

TEST(PadRows, EqualCutsDifferByAtMostOneRealRow) {
  for (std::int32_t total = 1; total <= 60; ++total) {
    for (std::int32_t num_real = 0; num_real <= total; ++num_real) {
      // By the rule itself, in exact fractions: real where a multiple of M / N is passed.
      std::vector<bool> is_real;
      for (std::int32_t i = 0; i < total; ++i) {
        is_real.push_back((i + 1) * num_real / total > i * num_real / total);
      }
      ASSERT_EQ(std::count(is_real.begin(), is_real.end(), true), num_real);
      if (num_real > 0) {
        // As a multiple, `total` pads every number of rows up to it.
        const PaddedRows padded = pad_rows(num_real, {.pad = Pad::rows, .multiple = total});
        ASSERT_EQ(padded.rows.size(), is_real.size());
        for (std::size_t i = 0; i < is_real.size(); ++i) {
          ASSERT_EQ(padded.is_real(i), is_real[i]) << num_real << " of " << total << " at " << i;
        }
      }
      for (std::int32_t parts = 1; parts <= total; ++parts) {
        if (total % parts != 0) continue;
        std::int64_t fewest = total;
        std::int64_t most = 0;
        const std::int32_t width = total / parts;
        for (std::int32_t begin = 0; begin < total; begin += width) {
          const auto counted =
              std::count(is_real.begin() + begin, is_real.begin() + begin + width, true);
          ASSERT_EQ(num_real_between(num_real, total, begin, begin + width), counted);
          fewest = std::min<std::int64_t>(fewest, counted);
          most = std::max<std::int64_t>(most, counted);
        }
        ASSERT_LE(most - fewest, 1) << num_real << " of " << total << " in " << parts;
      }
    }
  }
}

TEST(PadRows, NoChoiceOfPositionsIsMoreEven) {
  // Every set of real positions, every equal cut: the smallest largest difference is what we have.
  for (std::int32_t total = 1; total <= 12; ++total) {
    std::vector<int> best(static_cast<std::size_t>(total) + 1, total);
    const auto worst_difference = [&](auto is_real) {
      int worst = 0;
      for (std::int32_t width = 1; width <= total; ++width) {
        if (total % width != 0) continue;
        int fewest = total;
        int most = 0;
        for (std::int32_t begin = 0; begin < total; begin += width) {
          int count = 0;
          for (std::int32_t i = begin; i < begin + width; ++i) count += is_real(i) ? 1 : 0;
          fewest = std::min(fewest, count);
          most = std::max(most, count);
        }
        worst = std::max(worst, most - fewest);
      }
      return worst;
    };
    for (std::uint32_t set = 0; set < (1u << total); ++set) {
      int num_real = 0;
      for (std::int32_t i = 0; i < total; ++i) num_real += static_cast<int>((set >> i) & 1);
      int& least = best[static_cast<std::size_t>(num_real)];
      least = std::min(least, worst_difference([&](std::int32_t i) { return (set >> i) & 1; }));
    }
    for (std::int32_t num_real = 1; num_real <= total; ++num_real) {
      const PaddedRows padded = pad_rows(num_real, {.pad = Pad::rows, .multiple = total});
      EXPECT_EQ(worst_difference(
                    [&](std::int32_t i) { return padded.is_real(static_cast<std::size_t>(i)); }),
                best[static_cast<std::size_t>(num_real)])
          << num_real << " of " << total;
    }
  }
}

TEST(PadRows, HoldsEveryRowOnceInOrder) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const auto num_rows = static_cast<std::int32_t>(random.below(5000));
    const auto minibatch = static_cast<std::int32_t>(1 + random.below(40));
    const std::int64_t multiple = minibatch * random.between(1, 40);
    const PaddedRows padded =
        pad_rows(num_rows, {.pad = Pad::rows, .multiple = multiple, .minibatch = minibatch});
    std::int32_t next_real = 0;
    std::int32_t next_padding = num_rows;
    for (const SequenceId id : padded.rows) {
      ASSERT_EQ(id.value(), id.value() < num_rows ? next_real++ : next_padding++);
    }
    EXPECT_EQ(next_real, num_rows);
    EXPECT_EQ(next_padding, num_rows + padded.num_padding);
    std::int32_t position = 0;
    std::int32_t num_real = 0;
    for (const PaddedMinibatch& part : padded.minibatches) {
      EXPECT_EQ(part.begin, position);
      EXPECT_EQ(part.end - part.begin, minibatch);
      position = part.end;
      num_real += part.num_real;
    }
    EXPECT_EQ(num_real, num_rows);
  }
}

TEST(NumRealBetween, DoesNotOverflow) {
  constexpr std::int32_t highest = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(num_real_between(highest, highest, 0, highest), highest);
  EXPECT_EQ(num_real_between(highest - 1, highest, 0, 1), 0);
  EXPECT_EQ(num_real_between(highest - 1, highest, 1, highest), highest - 1);
  EXPECT_EQ(num_real_between(0, 0, 0, 0), 0);
  EXPECT_EQ(message_of([] { (void)num_real_between(2, 4, 3, 5); }),
            "[num_real_between] positions 3 to 5, must be ascending and from 0 to 4");
  EXPECT_EQ(message_of([] { (void)num_real_between(5, 4, 0, 1); }),
            "[num_real_between] num_real is 5, must be from 0 to 4");
}

}  // namespace
}  // namespace isochron
