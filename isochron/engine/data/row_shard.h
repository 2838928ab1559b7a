#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace isochron {

// Rows one behind the other: row i is [offsets[i], offsets[i + 1]) of tokens and mask. The views
// are valid as long as the shard, wherever it is moved.
struct RowShard {
  std::filesystem::path path;
  std::span<const std::int32_t> tokens;
  std::span<const std::uint8_t> mask;
  std::span<const std::int64_t> offsets;
  std::shared_ptr<const void> owner;  // of the memory behind the views

  [[nodiscard]] std::size_t num_rows() const { return offsets.size() - 1; }
};

// A safetensors shard, mapped: input_ids int32 [tokens], loss_mask uint8 [tokens], offsets int64
// [rows + 1], ascending from 0 to the number of tokens; `group` is left alone. Throws
// std::invalid_argument for anything else, also for position_ids, which rows with media have.
[[nodiscard]] RowShard map_row_shard(const std::filesystem::path& path);

// One row a line: {"input_ids": [..], "loss_mask": [..]}, of equal size; `group` is left alone,
// blank lines are skipped. Throws std::invalid_argument with the line for anything else.
[[nodiscard]] RowShard read_row_lines(const std::filesystem::path& path);

// The shards that the index.json of a folder lists, in its order. Throws std::invalid_argument if
// one lies outside the folder or has media.
[[nodiscard]] std::vector<std::filesystem::path> shard_paths(const std::filesystem::path& folder);

}  // namespace isochron
