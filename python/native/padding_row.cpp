#include "isochron/pad/padding_row.h"

#include <nanobind/stl/optional.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "isochron/core/require.h"
#include "python/native/arrays.h"
#include "python/native/bindings.h"
#include "python/native/record.h"

namespace isochron::python {

namespace {

constexpr std::string_view where = "ColumnSchema";
constexpr std::array<std::pair<std::string_view, Extent::Kind>, 3> lengths_of_row = {
    {{"prompt", Extent::Kind::prompt},
     {"response", Extent::Kind::response},
     {"sequence", Extent::Kind::sequence}}};

// A number, or the name of a length of the row.
Extent extent_of(nb::handle value) {
  for (const auto& [name, kind] : lengths_of_row) {
    if (PyUnicode_Check(value.ptr()) && nb::cast<std::string>(value) == name) return {.kind = kind};
  }
  require(!PyUnicode_Check(value.ptr()), where,
          "shape has {}, must be integers, 'prompt', 'response' or 'sequence'", shown_value(value));
  return {.kind = Extent::Kind::fixed,
          .size = integer_argument<std::int64_t>(value, where, "shape")};
}

nb::object object_of(const Extent& extent) {
  for (const auto& [name, kind] : lengths_of_row) {
    if (kind == extent.kind) return nb::cast(std::string(name));
  }
  return nb::cast(extent.size);
}

void bind_schema(nb::module_& module) {
  nb::class_<ColumnSchema> type(module, "ColumnSchema",
                                "A column of the rows: its name, its type, and the extent of each "
                                "dimension, a number or a length of the row.");
  const std::string extents =
      "collections.abc.Sequence[int | typing.Literal['prompt', "
      "'response', 'sequence']]";
  type.def(
      "__init__",
      [](ColumnSchema* self, const std::string& name, nb::handle column_type,
         const nb::typed<nb::sequence, nb::object>& shape) {
        ColumnSchema schema = {.name = name,
                               .type = enum_argument<ColumnType>(column_type, where, "type"),
                               .shape = {}};
        for (const nb::handle extent : shape) schema.shape.push_back(extent_of(extent));
        new (self) ColumnSchema(std::move(schema));
      },
      nb::arg("name"), nb::arg("type"), nb::arg("shape") = nb::tuple(),
      nb::sig(("def __init__(self, name: str, type: " + literal_type<ColumnType>() +
               ", shape: " + extents + " = ()) -> None")
                  .c_str()));
  const auto name = Attribute{"name", &ColumnSchema::name, "Of the column."};
  const auto column_type = Attribute{"type", &ColumnSchema::type, "Of its numbers."};
  add_attributes(type, name, column_type);
  type.def_prop_ro(
      "shape",
      [](const ColumnSchema& self) {
        nb::list shape;
        for (const Extent& extent : self.shape) shape.append(object_of(extent));
        return shape;
      },
      nb::sig("def shape(self, /) -> list[int | typing.Literal['prompt', 'response', 'sequence']]"),
      "None: one number a row.");
  add_repr(type, name, column_type);
  add_equality(type);
  module.def("verl_columns", &verl_columns, "The columns that verl's rows have in common.");
}

}  // namespace

void bind_padding_row(nb::module_& module) {
  bind_schema(module);
  nb::class_<PaddingColumn> column(module, "PaddingColumn", "A column of a padding row.");
  const auto name = Attribute{"name", &PaddingColumn::name, "Of the column."};
  const auto column_type = Attribute{"type", &PaddingColumn::type, "Of its numbers."};
  const auto text = Attribute{"text", &PaddingColumn::text, "Of a column of texts."};
  const auto shape = Attribute{"shape", &PaddingColumn::shape, "Of its numbers."};
  add_attributes(column, name, column_type, shape, text);
  column.def_prop_ro(
      "values", [](const PaddingColumn& self) { return view_of(self.values); },
      nb::rv_policy::reference_internal, "Row-major; whole numbers, whatever the type.");
  add_repr(column, name, column_type, shape, text);
  add_equality(column);

  nb::class_<PaddingTag> tag(module, "PaddingTag", "What the store keeps beside the columns.");
  add_record(tag, "PaddingTag",
             Attribute{"is_padding", &PaddingTag::is_padding, "It trains nothing."},
             Attribute{"prompt_len", &PaddingTag::prompt_len, "Tokens of the prompt."},
             Attribute{"response_len", &PaddingTag::response_len, "Tokens of the response."},
             Attribute{"seq_len", &PaddingTag::seq_len, "Tokens of both."});
  nb::class_<PaddingRow> row(module, "PaddingRow", "A row of two tokens that trains nothing.");
  add_attributes(row, Attribute{"columns", &PaddingRow::columns, "Those of the schema, in order."},
                 Attribute{"tag", &PaddingRow::tag, "Beside the columns."});
  add_equality(row);
  module.def(
      "padding_row",
      [](const std::vector<ColumnSchema>& schema, std::optional<std::int64_t> eos_token_id,
         const std::string& uid) { return padding_row(schema, eos_token_id, uid); },
      nb::arg("schema"), nb::arg("eos_token_id").none(), nb::arg("uid"),
      "A row of two tokens that trains nothing, made from the schema alone.\n\neos in prompts, "
      "responses and input_ids, 1 in attention_mask, `uid` in the column uid, 0 or nothing in "
      "every "
      "other column.");
}

}  // namespace isochron::python
