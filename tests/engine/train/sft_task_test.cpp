#include "isochron/engine/train/sft_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/temporary_folder.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Rows of 1, 3 and 4 tokens.
RowFiles three_rows(const TemporaryFolder& folder) {
  return RowFiles(std::vector<std::string>{folder.write(
      "rows.jsonl",
      "{\"input_ids\":[9],\"loss_mask\":[1]}\n{\"input_ids\":[1,2,3],\"loss_mask\":[1,0,1]}\n"
      "{\"input_ids\":[4,5,6,7],\"loss_mask\":[0,1,1,1]}\n")});
}

std::vector<double> weights_of(const WeightedRows& weighted, std::int32_t row) {
  std::vector<double> weights(
      static_cast<std::size_t>(weighted.rows.batch.lengths[static_cast<std::size_t>(row)]), -1);
  weighted.rows.fill_weights(SequenceId(row), 0, weights);
  return weights;
}

TEST(MeanOverTokens, CountsNoFirstTokenAndDividesByAllOthers) {
  const TemporaryFolder folder;
  const RowFiles files = three_rows(folder);
  const WeightedRows weighted = mean_over_tokens(files, std::vector<std::int64_t>{2, 0, 1});
  EXPECT_EQ(weighted.num_trained, 4);
  EXPECT_THAT(weighted.rows.ids, ElementsAre(2, 0, 1));
  EXPECT_THAT(weighted.rows.batch.lengths, ElementsAre(4, 1, 3));
  EXPECT_THAT(weights_of(weighted, 0), ElementsAre(0, 0.25, 0.25, 0.25));
  EXPECT_THAT(weights_of(weighted, 1), ElementsAre(0));
  EXPECT_THAT(weights_of(weighted, 2), ElementsAre(0, 0, 0.25));
}

TEST(MeanOverTokens, IsZeroWhereNothingIsTrained) {
  const TemporaryFolder folder;
  const RowFiles files = three_rows(folder);
  const WeightedRows weighted = mean_over_tokens(files, std::vector<std::int64_t>{0});
  EXPECT_EQ(weighted.num_trained, 0);
  EXPECT_THAT(weights_of(weighted, 0), ElementsAre(0));
}

TEST(SftTask, ContinuesOnlyTheOrderThatItStartedWith) {
  const TemporaryFolder folder;
  const RowFiles files = three_rows(folder);
  SftTask task(files, nullptr, {.batch_size = 1, .seed = 7});
  const Json state = task.state(4);
  EXPECT_EQ(state.dump(), R"({"rows":3,"batch_size":1,"seed":7,"epoch":1,"batch":1})");
  EXPECT_EQ(message_of([&] { task.restore(state); }), "accepted");
  SftTask other(files, nullptr, {.batch_size = 2, .seed = 7});
  EXPECT_THAT(message_of([&] { other.restore(state); }),
              HasSubstr("was trained with data.train_batch_size = 1, the recipe gives 2"));
  EXPECT_EQ(message_of([&] { other.restore(Json::object()); }), "[checkpoint] \"rows\" is missing");
}

}  // namespace
}  // namespace isochron
