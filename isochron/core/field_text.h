#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "isochron/core/enum_names.h"
#include "isochron/core/fields.h"
#include "isochron/core/require.h"

// The fields of an options struct as text: keys, flags, types, values.

namespace isochron {

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class T>
inline constexpr bool is_list = false;
template <class T>
inline constexpr bool is_list<std::vector<T>> = true;

// How a type of its own reads and writes as a field: `type_text`, `to_json(value)` and
// `from_json(json, where, key)`. Specialised beside the type.
template <class T>
struct FieldForm;
template <class T>
concept HasFieldForm = requires {
  FieldForm<T>::type_text;
};

// The keys of an options struct, in the order of its list.
template <class Options>
[[nodiscard]] std::vector<std::string> field_keys() {
  std::vector<std::string> keys;
  Options::describe([&](const auto& field) { keys.emplace_back(field.key); });
  return keys;
}

// The candidate that takes the fewest edits to reach from `name`: what a typo probably meant.
[[nodiscard]] std::string nearest_name(std::string_view name,
                                       std::span<const std::string> candidates);

// "min_count" -> "--min-count".
[[nodiscard]] std::string flag_of(std::string_view key);

// The flag of a field. A bool that is true by default is switched off: "balance" -> "--no-balance".
template <class Owner, class T>
[[nodiscard]] std::string flag_of(const Field<Owner, T>& field) {
  if constexpr (std::same_as<T, bool>) {
    if (Owner{}.*field.member) return flag_of("no_" + std::string(field.key));
  }
  return flag_of(field.key);
}

// What a value may be, for help and messages: "integer", "true|false", "error|alone|widen".
template <class T>
[[nodiscard]] std::string type_text() {
  if constexpr (is_optional<T>) {
    return type_text<typename T::value_type>();
  } else if constexpr (is_list<T>) {
    return "list of " + type_text<typename T::value_type>();
  } else if constexpr (HasFieldForm<T>) {
    return std::string(FieldForm<T>::type_text);
  } else if constexpr (std::is_enum_v<T>) {
    return list_names<T>("|");
  } else if constexpr (std::same_as<T, bool>) {
    return "true|false";
  } else if constexpr (std::integral<T>) {
    return "integer";
  } else if constexpr (std::floating_point<T>) {
    return "number";
  } else {
    return "text";
  }
}

template <class Owner, class T>
[[nodiscard]] std::string type_text(const Field<Owner, T>& field) {
  return field.values.empty() ? type_text<T>() : std::string(field.values);
}

// A value as people read it; "none" for an optional without one.
template <class T>
[[nodiscard]] std::string value_text(const T& value) {
  if constexpr (is_optional<T>) {
    return value ? value_text(*value) : "none";
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(name_of(value));
  } else {
    return fmt::format("{}", value);
  }
}

// Rejects a text that is not among `values` ("none|rank"); no values: anything goes.
void require_listed(std::string_view where, std::string_view key, std::string_view text,
                    std::string_view values);

// The integer that `text` spells in full: digits with an optional minus sign.
[[nodiscard]] std::optional<std::int64_t> find_integer(std::string_view text);

// The finite number that `text` spells in full, in decimal: "0.5", "-3", "1e-3".
[[nodiscard]] std::optional<double> find_number(std::string_view text);

// The value that `text` spells. Rejects anything else, with `where`, the key and what is allowed;
// an integer of the type outside `range` is left to the owner of the option.
template <class T>
[[nodiscard]] T value_from_text(std::string_view where, std::string_view key, std::string_view text,
                                const IntegerRange& range = {}) {
  if constexpr (is_optional<T>) {
    return value_from_text<typename T::value_type>(where, key, text, range);
  } else if constexpr (std::is_enum_v<T>) {
    const auto value = find_value<T>(text);
    require(value.has_value(), where, "{} is \"{}\", must be one of {}", key, text,
            list_names<T>());
    return *value;
  } else if constexpr (std::same_as<T, bool>) {
    require(text == "true" || text == "false", where, "{} is \"{}\", must be true or false", key,
            text);
    return text == "true";
  } else if constexpr (std::integral<T>) {
    const auto value = find_integer(text);
    require(
        value && *value >= std::numeric_limits<T>::min() && *value <= std::numeric_limits<T>::max(),
        where, "{} is \"{}\", must be an integer from {} to {}", key, text,
        std::max<std::int64_t>(range.least, std::numeric_limits<T>::min()),
        std::min<std::int64_t>(range.most, std::numeric_limits<T>::max()));
    return static_cast<T>(*value);
  } else {
    static_assert(std::same_as<T, std::string>, "no text form for this type of option");
    return std::string(text);
  }
}

}  // namespace isochron
