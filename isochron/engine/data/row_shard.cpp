#include "isochron/engine/data/row_shard.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "isochron/core/json.h"
#include "isochron/files/mapped_file.h"
#include "isochron/files/safetensors.h"

namespace isochron {

namespace {

template <class T>
std::span<const T> elements(const SafetensorsFile& file, const char* name, ElementType type) {
  const StoredTensor& tensor = file.get(name, type, std::vector<std::int64_t>{-1});
  require(reinterpret_cast<std::uintptr_t>(tensor.bytes.data()) % alignof(T) == 0,
          file.path().string(), "{} does not start at a multiple of {} bytes", name, alignof(T));
  return {reinterpret_cast<const T*>(tensor.bytes.data()),
          static_cast<std::size_t>(tensor.num_elements())};
}

void require_sound(const RowShard& shard) {
  const std::string where = shard.path.string();
  require(shard.mask.size() == shard.tokens.size(), where,
          "loss_mask has {} elements, must have {} like input_ids", shard.mask.size(),
          shard.tokens.size());
  require(!shard.offsets.empty() && shard.offsets.front() == 0 &&
              shard.offsets.back() == static_cast<std::int64_t>(shard.tokens.size()),
          where, "offsets must run from 0 to the number of tokens, {}", shard.tokens.size());
  for (std::size_t i = 0; i + 1 < shard.offsets.size(); ++i) {
    const std::int64_t begin = shard.offsets[i];
    const std::int64_t end = shard.offsets[i + 1];
    // An end beyond the tokens is found here too: the last one is not, and they ascend.
    require(end >= begin, where, "offsets[{}] is {}, must be at least {}", i + 1, end, begin);
    require(end > begin, where, "row {} has no tokens, must have at least 1", i);
  }
}

// The rows of a file of lines, in memory.
struct RowLines {
  std::vector<std::int32_t> tokens;
  std::vector<std::uint8_t> mask;
  std::vector<std::int64_t> offsets = {0};

  void add(std::string_view line, const std::string& where) {
    static const std::vector<std::string> keys = {"input_ids", "loss_mask", "group"};
    const Json row = parse_json(line, where);
    require_object(row, where, "the row");
    require_known_keys(row, where, keys);
    add_integers(member(row, where, "input_ids"), where, "input_ids", INT32_MAX, tokens);
    add_integers(member(row, where, "loss_mask"), where, "loss_mask", 1, mask);
    const auto begin = static_cast<std::size_t>(offsets.back());
    require(tokens.size() > begin, where, "input_ids is empty, must have at least 1 token");
    require(mask.size() == tokens.size(), where, "loss_mask has {} elements, input_ids has {}",
            mask.size() - begin, tokens.size() - begin);
    offsets.push_back(static_cast<std::int64_t>(tokens.size()));
  }

 private:
  template <class T>
  static void add_integers(const Json& list, const std::string& where, const char* name,
                           std::int64_t high, std::vector<T>& target) {
    require(list.is_array(), where, "{} is {}, must be a list of integers", name, shown(list));
    for (const Json& value : list) {
      target.push_back(static_cast<T>(integer_of(value, where, name, 0, high)));
    }
  }
};

}  // namespace

RowShard map_row_shard(const std::filesystem::path& path) {
  auto file = std::make_shared<SafetensorsFile>(path);
  require(file->find("position_ids") == nullptr, path.string(),
          "has position_ids, those of rows with media; the engine trains on text");
  RowShard shard = {.path = path,
                    .tokens = elements<std::int32_t>(*file, "input_ids", ElementType::I32),
                    .mask = elements<std::uint8_t>(*file, "loss_mask", ElementType::U8),
                    .offsets = elements<std::int64_t>(*file, "offsets", ElementType::I64),
                    .owner = file};
  require_sound(shard);
  return shard;
}

RowShard read_row_lines(const std::filesystem::path& path) {
  const MappedFile file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  auto lines = std::make_shared<RowLines>();
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    ++number;
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      lines->add(line, fmt::format("{}:{}", path.string(), number));
    }
    begin = end + 1;
  }
  return {.path = path,
          .tokens = lines->tokens,
          .mask = lines->mask,
          .offsets = lines->offsets,
          .owner = lines};
}

std::vector<std::filesystem::path> shard_paths(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "index.json";
  const std::string where = path.string();
  const MappedFile file(path);
  const Json index =
      parse_json({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, where);
  require_object(index, where, "the index");
  const Json& shards = member(index, where, "shards");
  require(shards.is_array(), where, "shards is {}, must be a list", shown(shards));
  std::vector<std::filesystem::path> paths;
  for (const Json& shard : shards) {
    require_object(shard, where, "a shard");
    const std::string name = text_of(member(shard, where, "file"), where, "file");
    require(!name.empty() && name.find('/') == std::string::npos && name != "." && name != "..",
            where, "file is {}, must be a file of the folder", shown(name));
    require(!shard.contains("media"), where,
            "{} has media, must be text: the engine trains on text", shown(name));
    paths.push_back(folder / name);
  }
  return paths;
}

}  // namespace isochron
