#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "isochron/core/units.h"
#include "isochron/engine/data/data_options.h"
#include "isochron/engine/data/row_shard.h"

namespace isochron {

// A tokenised row: views of its file. `mask` is 1 where a token is trained on.
struct TokenRow {
  std::span<const std::int32_t> tokens;
  std::span<const std::uint8_t> mask;
};

// Which rows of the files are taken, and how much of them.
struct RowLimits {
  std::int64_t max_samples = -1;  // the first ones; -1: all
  Tokens max_length = isochron::max_length;
  Truncation truncation = Truncation::error;
};

// The rows of a data set, in the order of its files. Files stay mapped: a row is read when it is
// used.
class RowFiles {
 public:
  // Each path is a folder with index.json (`python -m isochron.prepare` makes it), a safetensors
  // shard, or a .jsonl of tokenised rows. Throws std::runtime_error if a file is missing,
  // std::invalid_argument, naming the file or the row, for what is not of that form, a set without
  // rows, a row without tokens, and a row over max_length where truncation is an error.
  explicit RowFiles(std::span<const std::string> paths, const RowLimits& limits = {});

  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] TokenRow row(std::int64_t index) const;
  [[nodiscard]] Tokens length(std::int64_t index) const;
  [[nodiscard]] std::string name_of(std::int64_t index) const;  // "row 3 of rows.jsonl"

  // The longest row that is not longer than max_length, or max_length.
  [[nodiscard]] Tokens longest() const { return longest_; }
  [[nodiscard]] std::int64_t num_truncated() const { return num_truncated_; }

  // The first row of the part `part` of `num_parts` (rows part, part + num_parts, ..) that holds a
  // token outside the vocabulary or a mask other than 0 and 1. Reads the rows of that part.
  [[nodiscard]] std::optional<std::int64_t> find_bad_row(std::int64_t vocabulary, std::int64_t part,
                                                         std::int64_t num_parts) const;
  // What is wrong with a row that find_bad_row() found.
  [[nodiscard]] std::string defect_of(std::int64_t index, std::int64_t vocabulary) const;

 private:
  // The shard that holds a row, and the place of the row in it.
  struct Location {
    const RowShard* shard;
    std::size_t row;
  };
  [[nodiscard]] Location locate(std::int64_t index) const;

  RowLimits limits_;
  std::vector<RowShard> shards_;
  std::vector<std::int64_t> first_row_;  // of each shard, ascending
  std::int64_t size_ = 0;
  Tokens longest_ = 0;
  std::int64_t num_truncated_ = 0;
};

}  // namespace isochron
