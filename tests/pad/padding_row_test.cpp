#include "isochron/pad/padding_row.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/message_of.h"

namespace isochron {
namespace {

using Numbers = std::vector<std::int64_t>;
using Kind = Extent::Kind;

PaddingColumn column_of(const PaddingRow& row, const std::string& name) {
  const auto found = std::find_if(row.columns.begin(), row.columns.end(),
                                  [&](const PaddingColumn& column) { return column.name == name; });
  return found == row.columns.end() ? PaddingColumn{} : *found;
}

TEST(PaddingRow, HasTwoTokensAndTrainsNothing) {
  const PaddingRow row = padding_row(verl_columns(), 151643, "pad0");
  EXPECT_EQ(row.columns.size(), verl_columns().size());
  EXPECT_EQ(column_of(row, "prompts").values, (Numbers{151643}));
  EXPECT_EQ(column_of(row, "responses").values, (Numbers{151643}));
  EXPECT_EQ(column_of(row, "input_ids").values, (Numbers{151643, 151643}));
  EXPECT_EQ(column_of(row, "attention_mask").values, (Numbers{1, 1}));
  EXPECT_EQ(column_of(row, "position_ids").values, (Numbers{0, 1}));
  for (const char* name : {"response_mask", "loss_mask", "rm_scores", "rollout_log_probs"}) {
    EXPECT_EQ(column_of(row, name).shape, (Numbers{1})) << name;
    EXPECT_EQ(column_of(row, name).values, (Numbers{0})) << name;
  }
  EXPECT_EQ(column_of(row, "rm_scores").type, ColumnType::float32);
  EXPECT_EQ(column_of(row, "num_turns").shape, Numbers{});
  EXPECT_EQ(column_of(row, "num_turns").values, (Numbers{0}));
  EXPECT_EQ(column_of(row, "multi_modal_inputs").type, ColumnType::mapping);
  EXPECT_TRUE(column_of(row, "multi_modal_inputs").values.empty());
  EXPECT_EQ(column_of(row, "uid").text, "pad0");
  EXPECT_EQ(row.tag, (PaddingTag{true, 1, 1, 2}));
}

TEST(PaddingRow, KeepsLeadingAndTrailingDimensions) {
  const std::vector<ColumnSchema> schema = {
      {"position_ids", ColumnType::int32, {{Kind::fixed, 3}, {Kind::sequence}}},
      {"routed_experts", ColumnType::uint8, {{Kind::sequence}, {Kind::fixed, 2}, {Kind::fixed, 4}}},
      {"teacher_logprobs", ColumnType::bfloat16, {{Kind::sequence}, {Kind::fixed, 8}}},
      {"nothing", ColumnType::int64, {{Kind::fixed, 0}, {Kind::sequence}}},
      {"session_id", ColumnType::int64, {}},
      {"source", ColumnType::text, {}}};
  const PaddingRow row = padding_row(schema, 2, "pad1");
  EXPECT_EQ(row.columns[0].shape, (Numbers{3, 2}));
  EXPECT_EQ(row.columns[0].values, (Numbers{0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(row.columns[0].type, ColumnType::int32);
  EXPECT_EQ(row.columns[1].shape, (Numbers{2, 2, 4}));
  EXPECT_EQ(row.columns[1].values, Numbers(16, 0));
  EXPECT_EQ(row.columns[2].shape, (Numbers{2, 8}));
  EXPECT_EQ(row.columns[2].values, Numbers(16, 0));
  EXPECT_EQ(row.columns[3].shape, (Numbers{0, 2}));
  EXPECT_TRUE(row.columns[3].values.empty());
  EXPECT_EQ(row.columns[4].values, (Numbers{0}));
  EXPECT_EQ(row.columns[5].text, "");
}

TEST(PaddingRow, TakesAnyTokenWithoutAnEosId) {
  const PaddingRow row = padding_row(verl_columns(), std::nullopt, "pad2");
  EXPECT_EQ(column_of(row, "input_ids").values, (Numbers{0, 0}));
}

TEST(PaddingRow, NamesWhatItRejects) {
  const auto message = [](std::vector<ColumnSchema> schema, std::int64_t eos = 1) {
    return message_of([&] { (void)padding_row(schema, eos, "pad"); });
  };
  EXPECT_EQ(message({}, -1), "[padding_row] eos_token_id is -1, must be at least 0");
  EXPECT_EQ(message({{"", ColumnType::int64, {}}}), "[padding_row] column 0 has no name");
  EXPECT_EQ(message({{"a", ColumnType::int64, {}}, {"a", ColumnType::text, {}}}),
            "[padding_row] column a occurs twice");
  EXPECT_EQ(message({{"a", ColumnType::int64, {{Kind::fixed, -3}}}}),
            "[padding_row] column a has a size of -3, must be at least 0");
  EXPECT_EQ(message({{"a", ColumnType::int64, {{Kind::fixed, 1 << 20}, {Kind::fixed, 1 << 20}}}}),
            "[padding_row] column a has more than 2^31 - 1 numbers");
  EXPECT_EQ(message({{"position_ids", ColumnType::int64, {{Kind::fixed, 3}}}}),
            "[padding_row] column position_ids must end with the sequence");
}

}  // namespace
}  // namespace isochron
