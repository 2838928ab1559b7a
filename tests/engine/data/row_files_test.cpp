#include "isochron/engine/data/row_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "isochron/files/safetensors.h"
#include "tests/engine/temporary_folder.h"
#include "tests/support/message_of.h"
#include "tests/support/mutate.h"

namespace isochron {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct ShardContent {
  std::vector<std::int32_t> tokens;
  std::vector<std::uint8_t> mask;
  std::vector<std::int64_t> offsets;
};

template <class T>
StoredTensor stored(const char* name, ElementType type, const std::vector<T>& values) {
  return {.name = name,
          .type = type,
          .shape = {static_cast<std::int64_t>(values.size())},
          .bytes = std::as_bytes(std::span(values))};
}

std::string write_shard(const TemporaryFolder& folder, const std::string& name,
                        const ShardContent& content) {
  std::filesystem::create_directories((folder.path() / name).parent_path());
  write_safetensors(folder.path() / name,
                    std::vector<StoredTensor>{stored("offsets", ElementType::I64, content.offsets),
                                              stored("input_ids", ElementType::I32, content.tokens),
                                              stored("loss_mask", ElementType::U8, content.mask)});
  return folder.path() / name;
}

// Rows of 1, 3 and 2 tokens.
const ShardContent three_rows = {{5, 6, 7, 8, 9, 10}, {1, 0, 1, 1, 0, 1}, {0, 1, 4, 6}};

RowFiles rows_of(const std::vector<std::string>& paths, const RowLimits& limits = {}) {
  return RowFiles(paths, limits);
}

std::vector<std::int32_t> tokens_of(const RowFiles& rows, std::int64_t index) {
  const auto tokens = rows.row(index).tokens;
  return {tokens.begin(), tokens.end()};
}

std::vector<int> mask_of(const RowFiles& rows, std::int64_t index) {
  const auto mask = rows.row(index).mask;
  return {mask.begin(), mask.end()};
}

TEST(RowFiles, MapsAShard) {
  const TemporaryFolder folder;
  const RowFiles rows = rows_of({write_shard(folder, "a.safetensors", three_rows)});
  ASSERT_EQ(rows.size(), 3);
  EXPECT_THAT(tokens_of(rows, 0), ElementsAre(5));
  EXPECT_THAT(tokens_of(rows, 1), ElementsAre(6, 7, 8));
  EXPECT_THAT(mask_of(rows, 1), ElementsAre(0, 1, 1));
  EXPECT_EQ(rows.length(2), 2);
  EXPECT_EQ(rows.longest(), 3);
}

TEST(RowFiles, JoinsFoldersShardsAndLinesInTheGivenOrder) {
  const TemporaryFolder folder;
  write_shard(folder, "set/rows-00001.safetensors", {{1, 2}, {0, 1}, {0, 2}});
  write_shard(folder, "set/rows-00000.safetensors", three_rows);
  folder.write("set/index.json", R"({"schema": "isochron.data.v1", "rows": 4, "shards": [
      {"file": "rows-00001.safetensors"}, {"file": "rows-00000.safetensors", "rows": 3}]})");
  const std::string lines =
      folder.write("b.jsonl",
                   "{\"input_ids\": [40, 41], \"loss_mask\": [0, 1]}\r\n\n"
                   "{\"loss_mask\": [1], \"input_ids\": [42], \"group\": \"g\"}");
  const RowFiles rows = rows_of({lines, folder.path() / "set"});
  ASSERT_EQ(rows.size(), 6);
  EXPECT_THAT(tokens_of(rows, 0), ElementsAre(40, 41));
  EXPECT_THAT(tokens_of(rows, 1), ElementsAre(42));
  EXPECT_THAT(tokens_of(rows, 2), ElementsAre(1, 2));
  EXPECT_THAT(tokens_of(rows, 4), ElementsAre(6, 7, 8));
  EXPECT_EQ(rows.name_of(4), "row 1 of " + (folder.path() / "set/rows-00000.safetensors").string());
}

TEST(RowFiles, TakesTheFirstRowsAlone) {
  const TemporaryFolder folder;
  const std::string shard = write_shard(folder, "a.safetensors", three_rows);
  EXPECT_EQ(rows_of({shard}, {.max_samples = 2}).size(), 2);
  EXPECT_EQ(rows_of({shard}, {.max_samples = 9}).size(), 3);
  // A row that is not taken may be as long as it likes.
  EXPECT_EQ(rows_of({shard}, {.max_samples = 1, .max_length = 1}).size(), 1);
}

TEST(RowFiles, CutsTokensAndMaskOfALongRowTogether) {
  const TemporaryFolder folder;
  const std::string shard = write_shard(folder, "a.safetensors", three_rows);
  const RowFiles left = rows_of({shard}, {.max_length = 2, .truncation = Truncation::left});
  EXPECT_THAT(tokens_of(left, 1), ElementsAre(7, 8));
  EXPECT_THAT(mask_of(left, 1), ElementsAre(1, 1));
  EXPECT_EQ(left.num_truncated(), 1);
  EXPECT_EQ(left.longest(), 2);
  const RowFiles right = rows_of({shard}, {.max_length = 2, .truncation = Truncation::right});
  EXPECT_THAT(tokens_of(right, 1), ElementsAre(6, 7));
  EXPECT_THAT(mask_of(right, 1), ElementsAre(0, 1));
  EXPECT_THAT(tokens_of(right, 2), ElementsAre(9, 10));
  EXPECT_EQ(
      message_of([&] { (void)rows_of({shard}, {.max_length = 2}); }),
      "[data] row 1 of " + shard + " has 3 tokens, data.max_length is 2 and data.truncation error");
}

TEST(RowFiles, NamesTheFileAndWhatIsWrongWithIt) {
  const TemporaryFolder folder;
  const auto message = [&](const ShardContent& content) {
    const std::string path = write_shard(folder, "bad.safetensors", content);
    return message_of([&] { (void)rows_of({path}); });
  };
  EXPECT_THAT(message({{1, 2}, {1}, {0, 2}}),
              HasSubstr("bad.safetensors] loss_mask has 1 elements, must have 2 like input_ids"));
  EXPECT_THAT(message({{1, 2}, {1, 1}, {0, 3}}), HasSubstr("offsets must run from 0 to"));
  EXPECT_THAT(message({{1, 2}, {1, 1}, {}}), HasSubstr("offsets must run from 0 to"));
  EXPECT_THAT(message({{1, 2}, {1, 1}, {0, 99, 2}}),
              HasSubstr("offsets[2] is 2, must be at least 99"));
  EXPECT_THAT(message({{1, 2}, {1, 1}, {0, -5, 2}}), HasSubstr("offsets[1] is -5, must be"));
  EXPECT_THAT(message({{1, 2}, {1, 1}, {0, 0, 2}}), HasSubstr("row 0 has no tokens"));
  EXPECT_THAT(message({{}, {}, {0}}), HasSubstr("holds no rows"));
  const auto lines = [&](const std::string& text) {
    const std::string path = folder.write("bad.jsonl", text);
    return message_of([&] { (void)rows_of({path}); });
  };
  EXPECT_THAT(lines(""), HasSubstr("holds no rows"));
  EXPECT_THAT(lines("\n{\"input_ids\": [1]}"), HasSubstr("bad.jsonl:2] \"loss_mask\" is missing"));
  EXPECT_THAT(lines(R"({"input_ids": [], "loss_mask": []})"), HasSubstr("input_ids is empty"));
  EXPECT_THAT(lines(R"({"input_ids": [1], "loss_mask": [1, 1]})"),
              HasSubstr("loss_mask has 2 elements, input_ids has 1"));
  EXPECT_THAT(lines(R"({"input_ids": [-1], "loss_mask": [1]})"),
              HasSubstr("input_ids is -1, must be an integer from 0"));
  EXPECT_THAT(lines(R"({"input_ids": [1], "loss_mask": [2]})"),
              HasSubstr("loss_mask is 2, must be an integer from 0 to 1"));
  EXPECT_THAT(lines(R"({"input_ids": [1], "lossmask": [1]})"),
              HasSubstr("unknown key \"lossmask\", did you mean \"loss_mask\"?"));
  EXPECT_THAT(message_of([&] { (void)rows_of({folder.write("a.parquet", "")}); }),
              HasSubstr("must be a folder with index.json"));
  EXPECT_THROW((void)rows_of({folder.path() / "missing.jsonl"}), std::runtime_error);
  EXPECT_THROW((void)rows_of({folder.path()}), std::runtime_error);  // without index.json
}

TEST(RowFiles, ReadsNothingOutsideAFolderAndNoMedia) {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& index) {
    folder.write("set/index.json", index);
    return message_of([&] { (void)rows_of({folder.path() / "set"}); });
  };
  EXPECT_THAT(message(R"({"shards": [{"file": "../a.safetensors"}]})"),
              HasSubstr("must be a file of the folder"));
  EXPECT_THAT(message(R"({"shards": [{"file": ".."}]})"),
              HasSubstr("must be a file of the folder"));
  EXPECT_THAT(message(R"({"shards": [{"file": "a", "media": "media/a"}]})"),
              HasSubstr("the engine trains on text"));
  EXPECT_THAT(message(R"({"shards": 3})"), HasSubstr("shards is 3, must be a list"));
  EXPECT_THAT(message(R"([])"), HasSubstr("must be an object"));
  EXPECT_THAT(message(R"({"shards": []})"), HasSubstr("holds no rows"));
}

TEST(RowFiles, FindsTokensOutsideTheVocabulary) {
  const TemporaryFolder folder;
  const std::string shard =
      write_shard(folder, "a.safetensors", {{1, 2, 30, -4, 5}, {1, 1, 1, 1, 7}, {0, 2, 3, 4, 5}});
  const RowFiles rows = rows_of({shard});
  EXPECT_EQ(rows.find_bad_row(10, 0, 1), 1);
  EXPECT_EQ(rows.find_bad_row(31, 0, 1), 2);
  EXPECT_EQ(rows.find_bad_row(10, 0, 2), 2);  // the even rows
  EXPECT_EQ(rows.find_bad_row(31, 1, 2), 3);
  EXPECT_EQ(rows.find_bad_row(31, 1, 4), std::nullopt);
  EXPECT_EQ(rows.defect_of(1, 10), "row 1 of " + shard + " has token 30 at 0, must be from 0 to 9");
  EXPECT_EQ(rows.defect_of(3, 10), "row 3 of " + shard + " has loss_mask 7 at 0, must be 0 or 1");
}

// An error or rows that can be read to their ends; never a crash.
TEST(RowFiles, SurviveBrokenFiles) {
  const TemporaryFolder folder;
  write_shard(folder, "whole.safetensors", three_rows);
  const std::string shard = folder.read("whole.safetensors");
  const std::string lines =
      "{\"input_ids\": [40, 41], \"loss_mask\": [0, 1]}\n"
      "{\"input_ids\": [42], \"loss_mask\": [1]}\n";
  for (std::int64_t i = 0; i < fuzz_iterations() / 5; ++i) {
    Random random(static_cast<std::uint64_t>(i));
    const bool is_shard = i % 2 == 0;
    const std::string path = folder.write(is_shard ? "broken.safetensors" : "broken.jsonl",
                                          mutated(is_shard ? shard : lines, random));
    try {
      const RowFiles rows = rows_of({path});
      (void)rows.find_bad_row(100, 0, 1);
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), HasSubstr("broken."));
    }
  }
}

}  // namespace
}  // namespace isochron
