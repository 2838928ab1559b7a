#pragma once

#include <fmt/format.h>
#include <nanobind/nanobind.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "isochron/core/json.h"

// Single Python values. What does not fit is told like everywhere else, as std::invalid_argument.

namespace isochron::python {

namespace nb = nanobind;

// A value as a message shows it: its repr(), on one line, cut to a readable length. Worked out only
// where there is a message, since the repr() of a batch takes longer than planning it.
struct ShownValue {
  nb::handle value;

  [[nodiscard]] std::string text() const;
};
[[nodiscard]] inline ShownValue shown_value(nb::handle value) { return {value}; }

// An int, or what can stand for one (a number of numpy), if 64 bits hold it. A bool is none.
[[nodiscard]] std::optional<std::int64_t> find_integer_value(nb::handle value);

// The same, or a float.
[[nodiscard]] std::optional<double> find_number_value(nb::handle value);

// A str. Rejects one that UTF-8 cannot hold (half a surrogate pair), and anything else.
[[nodiscard]] std::string text_argument(nb::handle value, std::string_view where,
                                        std::string_view name);

// None, a bool, a number, a text, or a list of these, as JSON has it.
[[nodiscard]] Json json_of(nb::handle value, std::string_view where, std::string_view name);

// An argument that is an integer from `low` to `high`.
template <class T>
[[nodiscard]] T integer_argument(nb::handle value, std::string_view where, std::string_view name,
                                 std::int64_t low = std::numeric_limits<T>::min(),
                                 std::int64_t high = std::numeric_limits<T>::max()) {
  return static_cast<T>(integer_of(json_of(value, where, name), where, name, low, high));
}

// An argument that is an integer; one outside `range` is left to its owner.
template <class T>
[[nodiscard]] T integer_argument(nb::handle value, std::string_view where, std::string_view name,
                                 const IntegerRange& range) {
  return field_from_json<T>(json_of(value, where, name), where, name, range);
}

// An argument that names a value of an enumeration.
template <class Enum>
[[nodiscard]] Enum enum_argument(nb::handle value, std::string_view where, std::string_view name) {
  return field_from_json<Enum>(json_of(value, where, name), where, name);
}

}  // namespace isochron::python

template <>
struct fmt::formatter<isochron::python::ShownValue> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const isochron::python::ShownValue& shown, Context& context) const {
    return fmt::formatter<std::string>::format(shown.text(), context);
  }
};
