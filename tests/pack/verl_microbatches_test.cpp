#include "isochron/pack/verl_microbatches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "isochron/core/random.h"
#include "tests/support/ids_of.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

using Lists = std::vector<std::vector<std::int32_t>>;
using Lengths = std::vector<Tokens>;

const Lengths lc = {6933, 3171, 6225, 7308, 3461, 347,  2137, 7925,
                    4204, 3996, 3333, 7538, 6436, 6814, 2500, 7944};
const Lengths ld = {8192, 128, 64, 64, 4096, 4096, 2048, 100, 50, 50, 6000, 10};

Lists microbatches(const Lengths& lengths, const VerlMicrobatchOptions& options) {
  return ids_of(verl_microbatches(lengths, options));
}

Lists before_7553(const Lengths& lengths, VerlMicrobatchOptions options) {
  options.rule = VerlRule::before_7553;
  return ids_of(verl_microbatches(lengths, options));
}

Lengths tokens_of(const Lists& lists, const Lengths& lengths) {
  Lengths tokens;
  for (const std::vector<std::int32_t>& list : lists) {
    tokens.push_back(0);
    for (const std::int32_t id : list) tokens.back() += lengths[static_cast<std::size_t>(id)];
  }
  return tokens;
}

template <class Error, class Call>
std::string text_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no such error";
}

TEST(VerlMicrobatches, GiveTheGoldenAnswersOf0_9_1) {
  EXPECT_EQ(microbatches(ld, {.max_token_len = 8192}),
            (Lists{{4, 6}, {0}, {10}, {1, 2, 3, 5, 7, 8, 9, 11}}));
  const Lists answer = microbatches(lc, {.max_token_len = 16384});
  EXPECT_EQ(answer, (Lists{{0, 2}, {12, 13}, {4, 7, 14}, {1, 3, 10}, {6, 9, 11}, {5, 8, 15}}));
  EXPECT_EQ(tokens_of(answer, lc), (Lengths{13158, 13250, 13886, 13812, 13671, 12495}));
  EXPECT_EQ(microbatches(lc, {.max_token_len = 16384, .num_batches_divided_by = 4}),
            (Lists{{11, 14}, {0, 10}, {9, 12}, {1, 3}, {6, 7}, {2, 8}, {4, 13}, {5, 15}}));
  EXPECT_EQ(microbatches({6295, 3017, 5272}, {.max_token_len = 8192}), (Lists{{1}, {0}, {2}}));
  EXPECT_EQ(microbatches({5, 6, 6}, {.max_token_len = 10}), (Lists{{0}, {2}, {1}}));
  EXPECT_EQ(microbatches(Lengths(8, 7), {.max_token_len = 8}),
            (Lists{{1}, {3}, {5}, {7}, {6}, {4}, {2}, {0}}));
}

TEST(VerlMicrobatches, OverrunTheCapByTheOlderRule) {
  EXPECT_EQ(before_7553(ld, {.max_token_len = 8192}),
            (Lists{{4, 6}, {0}, {10}, {1, 2, 3, 5, 7, 8, 9, 11}}));
  const Lists answer = before_7553(lc, {.max_token_len = 16384});
  EXPECT_EQ(answer, (Lists{{13, 15}, {0, 1, 2}, {4, 6, 9, 11}, {3, 12, 14}, {5, 7, 8, 10}}));
  EXPECT_EQ(tokens_of(answer, lc), (Lengths{14758, 16329, 17132, 16244, 15809}));
  EXPECT_EQ(before_7553(lc, {.max_token_len = 16384, .num_batches_divided_by = 4}),
            (Lists{{11, 14}, {0, 10}, {9, 12}, {1, 3}, {6, 7}, {2, 8}, {4, 13}, {5, 15}}));
  EXPECT_EQ(before_7553({6295, 3017, 5272}, {.max_token_len = 8192}), (Lists{{1, 2}, {0}}));
  EXPECT_EQ(before_7553({5, 6, 6}, {.max_token_len = 10}), (Lists{{0, 1}, {2}}));
  EXPECT_EQ(before_7553(Lengths(8, 7), {.max_token_len = 8}),
            (Lists{{2}, {4}, {6}, {0, 1}, {7}, {5}, {3}}));
}

TEST(VerlMicrobatches, FailWhereAnAnswerExists) {
  // [1], [2], [0, 5], [3, 4, 6] keeps the cap of 13; verl asks for 8 of 7 instead.
  const Lengths lengths = {9, 13, 12, 8, 2, 4, 3};
  EXPECT_EQ(tokens_of({{1}, {2}, {0, 5}, {3, 4, 6}}, lengths), (Lengths{13, 12, 13, 13}));
  EXPECT_EQ(text_of<PeerValueError>(
                [&] { microbatches(lengths, {.max_token_len = 13, .num_batches_divided_by = 4}); }),
            "Cannot satisfy max_token_len while keeping forced groups atomic and using the same "
            "micro-batch count across DP ranks. Requested 8 non-empty micro-batches, but a rank "
            "has only 7 forced groups.");
}

TEST(VerlMicrobatches, RaiseWithTheTextsOfVerl) {
  EXPECT_EQ(text_of<PeerAssertionError>([] {
              microbatches({5, 11}, {.max_token_len = 10});
            }),
            "max_token_len must be greater than the sequence length. Got max_token_len=10 and "
            "max_seq_len=11");
  EXPECT_EQ(text_of<PeerAssertionError>([] {
              microbatches({5, 5}, {.max_token_len = 10, .max_seq_len = 16});
            }),
            "max_token_len must be greater than the sequence length. Got max_token_len=10 and "
            "max_seq_len=16");
  EXPECT_EQ(text_of<PeerAssertionError>([] {
              microbatches({5, 5, 5}, {.max_token_len = 10, .force_group_size = 2});
            }),
            "Batch size 3 must be divisible by force_group_size 2");
  EXPECT_EQ(text_of<PeerValueError>([] {
              microbatches({6, 5}, {.max_token_len = 10, .force_group_size = 2});
            }),
            "A forced group exceeds max_token_len and cannot be split. Got max_group_token_len=11 "
            "and max_token_len=10.");
  EXPECT_EQ(text_of<PeerAssertionError>([] {
              before_7553({5, 5}, {.max_token_len = 10, .min_num_micro_batch = 3});
            }),
            "");
}

TEST(VerlMicrobatches, RejectWhatVerlCrashesOn) {
  EXPECT_EQ(message_of([] { microbatches({}, {.max_token_len = 10}); }),
            "[verl_microbatches] lengths is empty, must have a sequence");
  EXPECT_EQ(message_of([] {
              microbatches({0, 0}, {.max_token_len = 10});
            }),
            "[verl_microbatches] the lengths add up to 0, must hold a token");
  EXPECT_EQ(message_of([] {
              microbatches({0, 0}, {.max_token_len = 0});
            }),
            "[verl_microbatches] max_token_len is 0, must be at least 1");
  EXPECT_EQ(message_of([] {
              microbatches({1, -1}, {.max_token_len = 10});
            }),
            "[verl_microbatches] lengths[1] is -1, must be from 0 to 2^31 - 1");
  EXPECT_EQ(message_of([] { microbatches({1}, {.max_token_len = 10, .force_group_size = 0}); }),
            "[verl_microbatches] force_group_size is 0, must be at least 1");
  EXPECT_EQ(
      message_of([] { microbatches({1}, {.max_token_len = 10, .num_batches_divided_by = 0}); }),
      "[verl_microbatches] num_batches_divided_by is 0, must be at least 1");
  EXPECT_EQ(message_of([] {
              microbatches({max_length, max_length}, {.max_token_len = max_length});
            }),
            "[verl_microbatches] workloads up to lengths[0] add up to more than 2^62");
}

TEST(VerlMicrobatches, KeepGroupsTogetherAndDescendWithoutBalance) {
  const VerlMicrobatchOptions options = {
      .max_token_len = 20, .use_dynamic_bsz_balance = false, .force_group_size = 2};
  EXPECT_EQ(microbatches({1, 2, 9, 9, 3, 4}, options), (Lists{{2, 3}, {0, 1, 4, 5}}));
}

TEST(VerlMicrobatches, AgreeWhereVerlDoes) {
  std::vector<std::vector<std::int64_t>> calls;
  // The other rank needs 3 micro-batches, has 7 groups of up to 9 tokens, and fits at the second
  // attempt.
  const std::vector<std::vector<std::int64_t>> other = {{3}, {9, -7}, {0}, {-1}};
  const VerlAgreement agreement = {[&](std::span<std::int64_t> numbers) {
    calls.emplace_back(numbers.begin(), numbers.end());
    const std::vector<std::int64_t>& theirs = other.at(calls.size() - 1);
    ASSERT_EQ(theirs.size(), numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::max(numbers[i], theirs[i]);
  }};
  const auto answer =
      ids_of(verl_microbatches(Lengths{4, 4, 4, 4, 4}, {.max_token_len = 10}, agreement));
  EXPECT_EQ(answer.size(), 4u);
  EXPECT_EQ(calls, (std::vector<std::vector<std::int64_t>>{{2}, {4, -5}, {-1}, {-1}}));

  calls.clear();
  const VerlMicrobatchOptions older = {.max_token_len = 10, .rule = VerlRule::before_7553};
  EXPECT_EQ(verl_microbatches(Lengths{4, 4, 4, 4, 4}, older, agreement).size(), 3u);
  EXPECT_EQ(calls.size(), 1u);
  // A rank with fewer groups dies after the agreement, while the others go on.
  calls.clear();
  EXPECT_THROW((void)verl_microbatches(Lengths{4, 4}, older, agreement), PeerAssertionError);
  // The rule of 0.9.1 tells every rank.
  calls.clear();
  EXPECT_THROW((void)verl_microbatches(Lengths{4, 4}, {.max_token_len = 10}, agreement),
               PeerValueError);
}

TEST(VerlMicrobatches, KeepTheCapAndEverySequence) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    Lengths lengths(1 + random.below(200));
    for (Tokens& length : lengths) length = random.between(1, 1000);
    const VerlMicrobatchOptions options = {.max_token_len = random.between(1000, 5000)};
    const Lists lists = microbatches(lengths, options);
    EXPECT_THAT(tokens_of(lists, lengths), testing::Each(testing::Le(options.max_token_len)));
    std::vector<std::int32_t> ids;
    for (const auto& list : lists) ids.insert(ids.end(), list.begin(), list.end());
    std::sort(ids.begin(), ids.end());
    ASSERT_EQ(ids.size(), lengths.size());
    for (std::size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(ids[i], static_cast<std::int32_t>(i));
  }
}

TEST(VerlWorkload, IsExactBeyond32Bits) {
  EXPECT_EQ(verl_workload(0), 0);
  EXPECT_EQ(verl_workload(131072), 24576ll * 131072 + 131072ll * 131072);
  EXPECT_EQ(message_of([] { (void)verl_workload(max_length + 1); }),
            "[verl_workload] length is 2147483648, must be from 0 to 2^31 - 1");
}

}  // namespace
}  // namespace isochron
