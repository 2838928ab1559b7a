#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace isochron {

// The names of an enumeration, the same in C++, JSON, YAML, Python and on the command line.
// Specialised beside each enumeration: an array `values` of {value, name}.
template <class Enum>
struct EnumNames;

template <class Enum>
[[nodiscard]] constexpr std::string_view name_of(Enum value) {
  for (const auto& [candidate, name] : EnumNames<Enum>::values) {
    if (candidate == value) return name;
  }
  return "?";
}

template <class Enum>
[[nodiscard]] constexpr std::optional<Enum> find_value(std::string_view name) {
  for (const auto& [value, candidate] : EnumNames<Enum>::values) {
    if (candidate == name) return value;
  }
  return std::nullopt;
}

// All names, for messages and help: "error, alone, widen".
template <class Enum>
[[nodiscard]] std::string list_names(std::string_view separator = ", ") {
  std::string text;
  for (const auto& [value, name] : EnumNames<Enum>::values) {
    if (!text.empty()) text += separator;
    text += name;
  }
  return text;
}

}  // namespace isochron
