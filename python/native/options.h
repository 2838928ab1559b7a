#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

#include "isochron/core/fields.h"
#include "isochron/core/json.h"
#include "python/native/python_value.h"

// The fields of an options struct as keyword arguments. The struct's own list gives the names, the
// types and defaults in the signature, the lines of the docstring, and what is an error.

namespace isochron::python {

// The name of an option in Python: the key, with an underscore where that is a word of the
// language.
[[nodiscard]] inline std::string python_name(std::string_view key) {
  return key == "pass" ? "pass_" : std::string(key);
}

// "typing.Literal['a', 'b']" from "a|b".
[[nodiscard]] inline std::string literal_type(std::string_view values) {
  std::string text = "typing.Literal['";
  for (const char c : values) text += c == '|' ? std::string("', '") : std::string(1, c);
  return text + "']";
}

template <class Enum>
[[nodiscard]] std::string literal_type() {
  return literal_type(list_names<Enum>("|"));
}

template <class T>
[[nodiscard]] std::string python_type(std::string_view values = {}) {
  if constexpr (is_optional<T>) {
    return python_type<typename T::value_type>(values) + " | None";
  } else if constexpr (std::is_enum_v<T>) {
    return values.empty() ? literal_type<T>() : literal_type(values);
  } else if constexpr (std::same_as<T, bool>) {
    return "bool";
  } else if constexpr (std::integral<T>) {
    return "int";
  } else if constexpr (std::floating_point<T>) {
    return "float";
  } else {
    static_assert(std::same_as<T, std::string>, "no type for this option in Python");
    return values.empty() ? "str" : literal_type(values);
  }
}

template <class T>
[[nodiscard]] std::string python_default(const T& value) {
  if constexpr (is_optional<T>) {
    return value ? python_default(*value) : "None";
  } else if constexpr (std::is_enum_v<T>) {
    return "'" + std::string(name_of(value)) + "'";
  } else if constexpr (std::same_as<T, bool>) {
    return value ? "True" : "False";
  } else if constexpr (std::same_as<T, std::string>) {
    return "'" + value + "'";
  } else {
    return value_text(value);
  }
}

// "capacity: int, multiple: int = 1, .." A required option has no default.
template <class Options>
[[nodiscard]] std::string option_parameters(std::string_view required = {}) {
  std::string text;
  Options::describe([&]<class Owner, class T>(const Field<Owner, T>& field) {
    if (!text.empty()) text += ", ";
    text += python_name(field.key) + ": " + python_type<T>(field.values);
    if (field.key != required) text += " = " + python_default(Options{}.*field.member);
  });
  return text;
}

// A line for each option, under the heading of a docstring.
template <class Options>
[[nodiscard]] std::string option_lines() {
  std::string text = "\n\nOptions:";
  Options::describe([&](const auto& field) {
    text += "\n    " + python_name(field.key) + ": " + std::string(field.help);
  });
  return text;
}

// The options that keyword arguments spell; throws what options_from_json() throws.
template <class Options>
[[nodiscard]] Options options_of(const nb::kwargs& arguments, std::string_view where) {
  Json json = Json::object();
  for (const auto& [key, value] : arguments) {
    std::string name = nb::cast<std::string>(key);
    if (name == "pass_") name = "pass";
    json[name] = json_of(value, where, name);
  }
  return options_from_json<Options>(json, where);
}

}  // namespace isochron::python
