#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

// Signatures for type checkers, where arguments are checked by hand.

namespace isochron::python {

// The types of arrays that go in; python/isochron/arrays.py defines them.
inline constexpr std::string_view integers_type = "isochron.arrays.IntegerArray";
inline constexpr std::string_view numbers_type = "isochron.arrays.NumberArray";

// "lengths: isochron.arrays.IntegerArray".
[[nodiscard]] inline std::string integers_parameter(std::string_view name) {
  return std::string(name) + ": " + std::string(integers_type);
}

// The same with None as its default.
[[nodiscard]] inline std::string optional_integers_parameter(std::string_view name) {
  return integers_parameter(name) + " | None = None";
}

}  // namespace isochron::python
