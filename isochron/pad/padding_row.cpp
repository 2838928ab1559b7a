#include "isochron/pad/padding_row.h"

#include <limits>
#include <set>
#include <string_view>

#include "isochron/core/require.h"

namespace isochron {
namespace {

constexpr std::string_view where = "padding_row";

std::int64_t size_of(const Extent& extent, const PaddingTag& tag) {
  switch (extent.kind) {
    case Extent::Kind::prompt:
      return tag.prompt_len;
    case Extent::Kind::response:
      return tag.response_len;
    case Extent::Kind::sequence:
      return tag.seq_len;
    case Extent::Kind::fixed:
      break;
  }
  return extent.size;
}

std::vector<std::int64_t> shape_of(const ColumnSchema& column, const PaddingTag& tag) {
  std::vector<std::int64_t> shape;
  for (const Extent& extent : column.shape) {
    shape.push_back(size_of(extent, tag));
    require(shape.back() >= 0, where, "column {} has a size of {}, must be at least 0", column.name,
            shape.back());
  }
  return shape;
}

std::size_t count_of(const ColumnSchema& column, std::span<const std::int64_t> shape) {
  constexpr std::int64_t max_count = std::numeric_limits<std::int32_t>::max();
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    require(size == 0 || count <= max_count / size, where,
            "column {} has more than 2^31 - 1 numbers", column.name);
    count *= size;
  }
  return static_cast<std::size_t>(count);
}

}  // namespace

std::vector<ColumnSchema> verl_columns() {
  using Kind = Extent::Kind;
  const Extent prompt = {Kind::prompt};
  const Extent response = {Kind::response};
  const Extent sequence = {Kind::sequence};
  return {{"prompts", ColumnType::int64, {prompt}},
          {"responses", ColumnType::int64, {response}},
          {"input_ids", ColumnType::int64, {sequence}},
          {"attention_mask", ColumnType::int64, {sequence}},
          {"position_ids", ColumnType::int64, {sequence}},
          {"response_mask", ColumnType::int64, {response}},
          {"loss_mask", ColumnType::int64, {response}},
          {"rm_scores", ColumnType::float32, {response}},
          {"rollout_log_probs", ColumnType::float32, {response}},
          {"num_turns", ColumnType::int64, {}},
          {"multi_modal_inputs", ColumnType::mapping, {}},
          {"uid", ColumnType::text, {}}};
}

PaddingRow padding_row(std::span<const ColumnSchema> schema,
                       std::optional<std::int64_t> eos_token_id, const std::string& uid) {
  const std::int64_t eos = eos_token_id.value_or(0);  // any valid id: nothing is trained on it
  require(eos >= 0, where, "eos_token_id is {}, must be at least 0", eos);
  PaddingRow row;
  std::set<std::string_view> names;
  for (const ColumnSchema& column : schema) {
    require(!column.name.empty(), where, "column {} has no name", row.columns.size());
    require(names.insert(column.name).second, where, "column {} occurs twice", column.name);
    PaddingColumn& made = row.columns.emplace_back();
    made.name = column.name;
    made.type = column.type;
    if (column.type == ColumnType::text) {
      if (column.name == "uid") made.text = uid;
      continue;
    }
    if (column.type == ColumnType::mapping) continue;
    made.shape = shape_of(column, row.tag);
    made.values.resize(count_of(column, made.shape), 0);
    if (column.name == "prompts" || column.name == "responses" || column.name == "input_ids") {
      made.values.assign(made.values.size(), eos);
    } else if (column.name == "attention_mask") {
      made.values.assign(made.values.size(), 1);
    } else if (column.name == "position_ids") {
      require(!column.shape.empty() && column.shape.back().kind == Extent::Kind::sequence, where,
              "column position_ids must end with the sequence");
      for (std::size_t i = 0; i < made.values.size(); ++i) {
        made.values[i] = static_cast<std::int64_t>(i) % row.tag.seq_len;
      }
    }
  }
  return row;
}

}  // namespace isochron
