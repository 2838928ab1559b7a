#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "isochron/core/enum_names.h"

namespace isochron {

enum class ColumnType {
  boolean,
  uint8,
  int32,
  int64,
  float16,
  bfloat16,
  float32,
  float64,
  text,
  mapping,  // named tensors of any kind, such as multi_modal_inputs
};

template <>
struct EnumNames<ColumnType> {
  static constexpr std::array<std::pair<ColumnType, std::string_view>, 10> values = {
      {{ColumnType::boolean, "boolean"},
       {ColumnType::uint8, "uint8"},
       {ColumnType::int32, "int32"},
       {ColumnType::int64, "int64"},
       {ColumnType::float16, "float16"},
       {ColumnType::bfloat16, "bfloat16"},
       {ColumnType::float32, "float32"},
       {ColumnType::float64, "float64"},
       {ColumnType::text, "text"},
       {ColumnType::mapping, "mapping"}}};
};

// One dimension of a column: a number, or a length of the row.
struct Extent {
  enum class Kind { fixed, prompt, response, sequence };
  Kind kind = Kind::fixed;
  std::int64_t size = 1;  // of a fixed one

  bool operator==(const Extent&) const = default;
};

struct ColumnSchema {
  std::string name;
  ColumnType type = ColumnType::int64;
  std::vector<Extent> shape;  // none: one number a row

  bool operator==(const ColumnSchema&) const = default;
};

// The columns that verl's rows have in common, with the shape of each.
[[nodiscard]] std::vector<ColumnSchema> verl_columns();

struct PaddingColumn {
  std::string name;
  ColumnType type = ColumnType::int64;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> values;  // row-major; whole numbers, whatever the type
  std::string text;                  // of ColumnType::text

  bool operator==(const PaddingColumn&) const = default;
};

// What the store keeps beside the columns.
struct PaddingTag {
  bool is_padding = true;
  std::int64_t prompt_len = 1;
  std::int64_t response_len = 1;
  std::int64_t seq_len = 2;

  bool operator==(const PaddingTag&) const = default;
};

struct PaddingRow {
  std::vector<PaddingColumn> columns;  // those of the schema, in its order
  PaddingTag tag;

  bool operator==(const PaddingRow&) const = default;
};

// A row of two tokens that trains nothing, made from the schema alone: eos in prompts, responses
// and input_ids, 1 in attention_mask, 0 and 1 along the last dimension of position_ids, `uid` in
// the text column uid, 0 or nothing in every other column. Without an eos id token 0 stands for it.
//
// Throws std::invalid_argument if a column has no name or the name of another, a size is negative,
// the eos id is, a column has more than 2^31 - 1 numbers, or position_ids does not end with the
// sequence.
[[nodiscard]] PaddingRow padding_row(std::span<const ColumnSchema> schema,
                                     std::optional<std::int64_t> eos_token_id,
                                     const std::string& uid);

}  // namespace isochron
