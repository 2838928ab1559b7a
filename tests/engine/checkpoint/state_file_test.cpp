#include "isochron/engine/checkpoint/state_file.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "isochron/core/random.h"
#include "isochron/files/safetensors.h"
#include "tests/engine/temporary_folder.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

using testing::HasSubstr;

const std::map<std::string, std::int64_t> sizes = {{"a.weight", 10}, {"b", 3}};

// The elements of all parameters one behind the other, cut into `count` shards at random places:
// the pieces that each shard holds, with values that tell where they belong.
std::vector<std::vector<StatePiece>> sharded(std::size_t count, Random& random) {
  std::vector<std::vector<StatePiece>> shards(count);
  for (const std::string_view kind : {"master", "exp_avg"}) {
    double base = kind == "master" ? 100 : 500;
    for (const auto& [name, size] : sizes) {
      std::int64_t begin = 0;
      for (std::size_t shard = 0; shard < count; ++shard) {
        const std::int64_t end = shard + 1 == count ? size : random.between(begin, size);
        shards[shard].push_back(
            {.parameter = name,
             .kind = kind,
             .begin = begin,
             .values = at::arange(base + static_cast<double>(begin),
                                  base + static_cast<double>(end), at::kFloat)});
        begin = end;
      }
      base += 100;
    }
  }
  return shards;
}

TEST(StateFile, IsReadByAnyOtherDivision) {
  const TemporaryFolder folder;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<std::filesystem::path> files;
    for (const auto& shard : sharded(1 + seed % 4, random)) {
      files.push_back(folder.path() / std::to_string(files.size()));
      write_state(files.back(), shard, {{"k", "v"}});
    }
    EXPECT_EQ(SafetensorsFile(files[0]).metadata().at("k"), "v");
    for (const auto& wanted : sharded(1 + seed / 4 % 5, random)) {
      std::vector<StatePiece> pieces = host_copy(wanted);
      for (StatePiece& piece : pieces) piece.values.zero_();
      read_state(files, sizes, pieces);
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        EXPECT_TRUE(at::equal(pieces[i].values, wanted[i].values));
      }
    }
  }
}

TEST(StateFile, CopiesOnceAndForAll) {
  std::vector<StatePiece> pieces = {
      {.parameter = "b", .kind = "master", .begin = 0, .values = at::ones({3})}};
  const std::vector<StatePiece> copies = host_copy(pieces);
  pieces[0].values.zero_();
  EXPECT_EQ(copies[0].values.sum().item<float>(), 3);
}

TEST(StateFile, NamesWhatIsMissingTwiceOrUnknown) {
  const TemporaryFolder folder;
  const auto piece = [](const char* name, std::int64_t begin, std::int64_t count) {
    return StatePiece{
        .parameter = name, .kind = "master", .begin = begin, .values = at::zeros({count})};
  };
  const auto message = [&](const std::vector<StatePiece>& stored) {
    write_state(folder.path() / "s", stored);
    std::vector<StatePiece> wanted = {piece("a.weight", 0, 10), piece("b", 0, 3)};
    return message_of([&] { read_state(std::vector{folder.path() / "s"}, sizes, wanted); });
  };
  EXPECT_EQ(message({piece("a.weight", 0, 10), piece("b", 0, 3)}), "accepted");
  EXPECT_EQ(message({piece("a.weight", 0, 10)}),
            "[checkpoint] master/b is missing in the checkpoint");
  EXPECT_EQ(message({piece("a.weight", 0, 4), piece("a.weight", 5, 5), piece("b", 0, 3)}),
            "[checkpoint] master/a.weight has a piece at 5, the one before ends at 4");
  EXPECT_EQ(message({piece("a.weight", 0, 6), piece("a.weight", 5, 5), piece("b", 0, 3)}),
            "[checkpoint] master/a.weight has a piece at 5, the one before ends at 6");
  EXPECT_EQ(message({piece("a.weight", 0, 9), piece("b", 0, 3)}),
            "[checkpoint] master/a.weight has 9 elements, the model has 10");
  EXPECT_EQ(message({piece("a.weight", 0, 10), piece("b", 0, 3), piece("c", 0, 1)}),
            "[checkpoint] master/c is in the checkpoint, the model has none");
  const std::vector<float> value = {1};
  write_safetensors(folder.path() / "s",
                    std::vector<StoredTensor>{{.name = "master/b",
                                               .type = ElementType::F32,
                                               .shape = {1},
                                               .bytes = std::as_bytes(std::span(value))}});
  std::vector<StatePiece> wanted = {piece("b", 0, 3)};
  EXPECT_THAT(message_of([&] { read_state(std::vector{folder.path() / "s"}, sizes, wanted); }),
              HasSubstr("the tensor master/b is no piece of a state"));
}

}  // namespace
}  // namespace isochron
