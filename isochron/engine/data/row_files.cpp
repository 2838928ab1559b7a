#include "isochron/engine/data/row_files.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "isochron/core/require.h"

namespace isochron {

namespace {

void add_shards(const std::filesystem::path& path, std::vector<RowShard>& shards) {
  if (std::filesystem::is_directory(path)) {
    for (const auto& shard : shard_paths(path)) shards.push_back(map_row_shard(shard));
  } else if (path.extension() == ".safetensors") {
    shards.push_back(map_row_shard(path));
  } else if (path.extension() == ".jsonl") {
    shards.push_back(read_row_lines(path));
  } else {
    reject(path.string(),
           "must be a folder with index.json, a .safetensors or a .jsonl of tokenised rows; "
           "`python -m isochron.prepare` makes them of conversations");
  }
}

}  // namespace

RowFiles::RowFiles(std::span<const std::string> paths, const RowLimits& limits) : limits_(limits) {
  for (const std::string& path : paths) add_shards(path, shards_);
  for (const RowShard& shard : shards_) {
    first_row_.push_back(size_);
    size_ += static_cast<std::int64_t>(shard.num_rows());
  }
  require(size_ > 0, "data", "{} holds no rows", fmt::join(paths, ", "));
  if (limits.max_samples >= 0) size_ = std::min(size_, limits.max_samples);
  for (std::int64_t index = 0; index < size_; ++index) {
    const Location place = locate(index);
    const Tokens whole = place.shard->offsets[place.row + 1] - place.shard->offsets[place.row];
    const bool is_long = whole > limits.max_length;
    require(!is_long || limits.truncation != Truncation::error, "data",
            "{} has {} tokens, data.max_length is {} and data.truncation error", name_of(index),
            whole, limits.max_length);
    num_truncated_ += is_long ? 1 : 0;
    longest_ = std::max(longest_, std::min(whole, limits.max_length));
  }
}

RowFiles::Location RowFiles::locate(std::int64_t index) const {
  const auto above = std::upper_bound(first_row_.begin(), first_row_.end(), index);
  const auto shard = static_cast<std::size_t>(above - first_row_.begin()) - 1;
  return {&shards_[shard], static_cast<std::size_t>(index - first_row_[shard])};
}

TokenRow RowFiles::row(std::int64_t index) const {
  const auto [shard, place] = locate(index);
  auto begin = static_cast<std::size_t>(shard->offsets[place]);
  auto count = static_cast<std::size_t>(shard->offsets[place + 1]) - begin;
  if (const auto kept = static_cast<std::size_t>(limits_.max_length); count > kept) {
    if (limits_.truncation == Truncation::left) begin += count - kept;  // the tail stays
    count = kept;
  }
  return {.tokens = shard->tokens.subspan(begin, count), .mask = shard->mask.subspan(begin, count)};
}

Tokens RowFiles::length(std::int64_t index) const {
  const auto [shard, place] = locate(index);
  return std::min(shard->offsets[place + 1] - shard->offsets[place], limits_.max_length);
}

std::string RowFiles::name_of(std::int64_t index) const {
  const auto [shard, place] = locate(index);
  return fmt::format("row {} of {}", place, shard->path.string());
}

std::optional<std::int64_t> RowFiles::find_bad_row(std::int64_t vocabulary, std::int64_t part,
                                                   std::int64_t num_parts) const {
  for (std::int64_t index = part; index < size_; index += num_parts) {
    const TokenRow candidate = row(index);
    const bool is_sound =
        std::all_of(candidate.tokens.begin(), candidate.tokens.end(),
                    [&](std::int32_t token) { return token >= 0 && token < vocabulary; }) &&
        std::all_of(candidate.mask.begin(), candidate.mask.end(),
                    [](std::uint8_t mask) { return mask <= 1; });
    if (!is_sound) return index;
  }
  return std::nullopt;
}

std::string RowFiles::defect_of(std::int64_t index, std::int64_t vocabulary) const {
  const TokenRow bad = row(index);
  for (std::size_t i = 0; i < bad.tokens.size(); ++i) {
    if (bad.tokens[i] < 0 || bad.tokens[i] >= vocabulary) {
      return fmt::format("{} has token {} at {}, must be from 0 to {}", name_of(index),
                         bad.tokens[i], i, vocabulary - 1);
    }
    if (bad.mask[i] > 1) {
      return fmt::format("{} has loss_mask {} at {}, must be 0 or 1", name_of(index), bad.mask[i],
                         i);
    }
  }
  return {};
}

}  // namespace isochron
