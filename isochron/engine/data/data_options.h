#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "isochron/core/enum_names.h"
#include "isochron/core/fields.h"
#include "isochron/core/policy.h"
#include "isochron/core/units.h"

namespace isochron {

// What happens to a row that is longer than `data.max_length`.
enum class Truncation {
  error,  // it is named
  left,   // its tail stays
  right,  // its head stays
};

template <>
struct EnumNames<Truncation> {
  static constexpr std::array<std::pair<Truncation, std::string_view>, 3> values = {
      {{Truncation::error, "error"}, {Truncation::left, "left"}, {Truncation::right, "right"}}};
};

// Which rows are trained on, and how a batch of them is cut.
struct DataOptions {
  std::vector<std::string> train_files = {};
  std::optional<std::vector<std::string>> val_files = {};
  std::int64_t train_max_samples = -1;
  std::int64_t val_max_samples = -1;
  std::int64_t train_batch_size = 256;
  bool use_dynamic_bsz = true;
  Tokens max_token_len_per_gpu = 8192;
  std::int32_t micro_batch_size_per_gpu = 4;
  Tokens max_length = 1024;
  Truncation truncation = Truncation::error;
  std::string pad_mode = "no_padding";
  Pad pad = Pad::uneven;

  template <class Row>
  static void describe(Row row) {
    using Self = DataOptions;
    row(Field{"data.train_files", &Self::train_files,
              "required: tokenised rows, as folders, safetensors shards or JSONL"});
    row(Field{"data.val_files", &Self::val_files, "rows to validate on; null: none"});
    row(Field{"data.train_max_samples", &Self::train_max_samples,
              "train on the first rows only; -1: all"});
    row(Field{"data.val_max_samples", &Self::val_max_samples,
              "validate on the first rows only; -1: all"});
    row(Field{"data.train_batch_size", &Self::train_batch_size, "rows of a step, over all ranks"});
    row(Field{"data.use_dynamic_bsz", &Self::use_dynamic_bsz,
              "micro-batches under a token cap; false: of a number of rows"});
    row(Field{"data.max_token_len_per_gpu", &Self::max_token_len_per_gpu,
              "tokens that a micro-batch may hold, with use_dynamic_bsz"});
    row(Field{"data.micro_batch_size_per_gpu", &Self::micro_batch_size_per_gpu,
              "rows that a micro-batch may hold, without use_dynamic_bsz"});
    row(Field{"data.max_length", &Self::max_length, "tokens that a row may have"});
    row(Field{"data.truncation", &Self::truncation,
              "a longer row: an error, or cut on the left or on the right"});
    row(Field{"data.pad_mode", &Self::pad_mode, "rows are packed, never padded", "no_padding"});
    row(Field{
        "data.pad", &Self::pad,
        "a batch that the ranks do not divide: run as it is, with synthetic rows that count for "
        "nothing, or an error"});
  }
};

}  // namespace isochron
