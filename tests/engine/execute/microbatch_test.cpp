#include "isochron/engine/execute/microbatch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/support/random_rows.h"

namespace isochron {
namespace {

using testing::ElementsAre;

template <class T>
std::vector<T> values_of(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<T>(), tensor.const_data_ptr<T>() + tensor.numel()};
}

const TokenRows rows = {{{10, 11, 12}, {20}, {30, 31, 32, 33}}, {{1, 0, 1}, {1}, {1, 1, 0, 1}}};

ContextGroup group_of(const std::vector<std::int32_t>& sequences) {
  ContextGroup group;
  for (const std::int32_t sequence : sequences) group.sequences.emplace_back(sequence);
  return group;
}

TEST(Microbatch, PutsTheRowsOfTheGroupOneBehindTheOther) {
  const Microbatch microbatch =
      make_microbatch(rows.view(), group_of({0, 1, 2}), 0, Labels::weighted, at::kCPU);
  EXPECT_THAT(values_of<std::int64_t>(microbatch.input.tokens_T),
              ElementsAre(10, 11, 12, 20, 30, 31, 32, 33));
  EXPECT_THAT(values_of<std::int64_t>(microbatch.input.positions_T),
              ElementsAre(0, 1, 2, 0, 0, 1, 2, 3));
  EXPECT_THAT(microbatch.input.cu_seqlens, ElementsAre(0, 3, 4, 8));
}

TEST(Microbatch, SaysWhichRowOfTheDataSetEachTokenIsOf) {
  const Microbatch microbatch =
      make_microbatch(rows.view(), group_of({1, 2, 3}), 0, Labels::weighted, at::kCPU);
  const std::int64_t second = TokenRows::id_of(1);
  const std::int64_t third = TokenRows::id_of(2);
  EXPECT_THAT(values_of<std::int64_t>(microbatch.input.rows_T),
              ElementsAre(second, third, third, third, third, -1, -1));
}

TEST(Microbatch, ALabelIsTheNextTokenOfTheSameRowAndTakesItsWeight) {
  const Microbatch microbatch =
      make_microbatch(rows.view(), group_of({0, 1, 2}), 0, Labels::weighted, at::kCPU);
  // Three tokens are trained: 12, 31, 33. The mask of a first token counts for nothing.
  EXPECT_THAT(values_of<std::int64_t>(microbatch.labels_T),
              ElementsAre(-1, 12, -1, -1, 31, -1, 33, -1));
  const double third = 1.0 / 3;
  EXPECT_THAT(values_of<double>(microbatch.weights_T),
              ElementsAre(0, third, 0, 0, third, 0, third, 0));
}

TEST(Microbatch, ForLogProbsEveryPositionWithANextTokenHasALabel) {
  const Microbatch microbatch =
      make_microbatch(rows.view(), group_of({0, 1, 2}), 0, Labels::all, at::kCPU);
  EXPECT_THAT(values_of<std::int64_t>(microbatch.labels_T),
              ElementsAre(11, 12, -1, -1, 31, 32, 33, -1));
}

TEST(Microbatch, WeightsHaveTheDenominatorOfAllRowsNotOfTheGroup) {
  const Microbatch microbatch =
      make_microbatch(rows.view(), group_of({2}), 0, Labels::weighted, at::kCPU);
  EXPECT_THAT(values_of<double>(microbatch.weights_T), ElementsAre(1.0 / 3, 0, 1.0 / 3, 0));
}

// Rows 10 11 12 and 30 31 32 33 on two ranks: both padded to 4 tokens, in chunks of 1.
TEST(Microbatch, AMemberOfAGroupHoldsItsTwoChunksOfEachRow) {
  ContextGroup group = group_of({0, 2});
  group.ranks = {4, 2};
  const Microbatch first = make_microbatch(rows.view(), group, 4, Labels::all, at::kCPU);
  EXPECT_THAT(values_of<std::int64_t>(first.input.tokens_T), ElementsAre(10, 0, 30, 33));
  EXPECT_THAT(values_of<std::int64_t>(first.input.positions_T), ElementsAre(0, 0, 0, 3));
  EXPECT_THAT(values_of<std::int64_t>(first.labels_T), ElementsAre(11, -1, 31, -1));
  EXPECT_THAT(first.input.cu_seqlens, ElementsAre(0, 2, 4));
  EXPECT_THAT(first.input.lengths, ElementsAre(3, 4));
  const Microbatch second = make_microbatch(rows.view(), group, 5, Labels::weighted, at::kCPU);
  EXPECT_THAT(values_of<std::int64_t>(second.input.tokens_T), ElementsAre(11, 12, 31, 32));
  EXPECT_THAT(values_of<std::int64_t>(second.labels_T), ElementsAre(12, -1, -1, 33));
  const double third = 1.0 / 3;
  EXPECT_THAT(values_of<double>(second.weights_T), ElementsAre(third, 0, 0, third));
}

TEST(Microbatch, AMemberAsksForTheWeightsOfItsOwnTargetsAlone) {
  const TokenRows long_row = {{std::vector<std::int32_t>(16, 7)},
                              {std::vector<std::uint8_t>(16, 1)}};
  Rows view = long_row.view();
  std::vector<std::pair<std::size_t, std::size_t>> asked;
  view.fill_weights = [&](SequenceId, std::size_t first, std::span<double> weights) {
    asked.emplace_back(first, weights.size());
  };
  ContextGroup group = group_of({0});
  group.ranks = {0, 2};
  (void)make_microbatch(view, group, 0, Labels::weighted, at::kCPU);
  EXPECT_THAT(asked, ElementsAre(std::pair(1, 4), std::pair(13, 3)));
}

TEST(Microbatch, APaddingRowIsTwoTokensWithoutAWeight) {
  const Microbatch microbatch =
      make_microbatch(rows.view(), group_of({1, 3}), 0, Labels::weighted, at::kCPU);
  EXPECT_THAT(values_of<std::int64_t>(microbatch.input.tokens_T), ElementsAre(20, 0, 0));
  EXPECT_THAT(microbatch.input.cu_seqlens, ElementsAre(0, 1, 3));
  EXPECT_THAT(values_of<std::int64_t>(microbatch.labels_T), ElementsAre(-1, -1, -1));
  EXPECT_THAT(values_of<double>(microbatch.weights_T), ElementsAre(0, 0, 0));
}

}  // namespace
}  // namespace isochron
