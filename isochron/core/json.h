#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "isochron/core/field_text.h"
#include "isochron/core/ids.h"

namespace isochron {

using Json = nlohmann::ordered_json;  // keys stay in the order in which they were written

// The document in `text`. Rejects, with `where` and the line, what is not JSON, a key that occurs
// twice in an object, and nesting deeper than 64.
[[nodiscard]] Json parse_json(std::string_view text, std::string_view where);

// The members of an object. Rejects another kind of value, and with a known list also a key that is
// not on it, naming the nearest one.
void require_object(const Json& value, std::string_view where, std::string_view name);
void require_known_keys(const Json& object, std::string_view where,
                        std::span<const std::string> known);

// Typed members of an object; each rejects a missing key and a value of another type or range,
// naming the key, the value and what is allowed.
[[nodiscard]] const Json& member(const Json& object, std::string_view where, std::string_view key);
[[nodiscard]] std::int64_t integer_of(const Json& value, std::string_view where,
                                      std::string_view name, std::int64_t low, std::int64_t high);
[[nodiscard]] double number_of(const Json& value, std::string_view where, std::string_view name);
[[nodiscard]] std::string text_of(const Json& value, std::string_view where, std::string_view name);

// The integer that a value is, if 64 bits hold it.
[[nodiscard]] std::optional<std::int64_t> find_json_integer(const Json& value);

// A value as a message shows it: compact JSON, cut to a readable length.
[[nodiscard]] std::string shown(const Json& value);

template <class Tag>
void to_json(Json& json, Id<Tag> id) {
  json = id.value();
}

template <class T>
[[nodiscard]] Json field_to_json(const T& value) {
  if constexpr (is_optional<T>) {
    return value ? field_to_json(*value) : Json(nullptr);
  } else if constexpr (is_list<T>) {
    Json list = Json::array();
    for (const auto& element : value) list.push_back(field_to_json(element));
    return list;
  } else if constexpr (HasFieldForm<T>) {
    return FieldForm<T>::to_json(value);
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(name_of(value));
  } else {
    return value;
  }
}

// The value of a field. An integer of the type outside `range` is left to the owner of the option.
template <class T>
[[nodiscard]] T field_from_json(const Json& value, std::string_view where, std::string_view key,
                                const IntegerRange& range = {}) {
  if constexpr (is_optional<T>) {
    if (value.is_null()) return std::nullopt;
    return field_from_json<typename T::value_type>(value, where, key, range);
  } else if constexpr (is_list<T>) {
    // One value is a list of one: `train_files: rows.safetensors`.
    using Element = typename T::value_type;
    if (!value.is_array()) return {field_from_json<Element>(value, where, key)};
    T list;
    for (std::size_t i = 0; i < value.size(); ++i) {
      list.push_back(field_from_json<Element>(value[i], where, fmt::format("{}[{}]", key, i)));
    }
    return list;
  } else if constexpr (HasFieldForm<T>) {
    return FieldForm<T>::from_json(value, where, key);
  } else if constexpr (std::is_enum_v<T>) {
    const bool is_text = value.is_string();
    require(is_text, where, "{} is {}, must be one of {}", key, shown(value), list_names<T>());
    return value_from_text<T>(where, key, value.get_ref<const std::string&>());
  } else if constexpr (std::same_as<T, bool>) {
    require(value.is_boolean(), where, "{} is {}, must be true or false", key, shown(value));
    return value.get<bool>();
  } else if constexpr (std::integral<T>) {
    using Limits = std::numeric_limits<T>;
    const auto integer = find_json_integer(value);
    if (integer && *integer >= Limits::min() && *integer <= Limits::max()) {
      return static_cast<T>(*integer);
    }
    reject(where, "{} is {}, must be an integer from {} to {}", key, shown(value),
           std::max<std::int64_t>(range.least, Limits::min()),
           std::min<std::int64_t>(range.most, Limits::max()));
  } else if constexpr (std::floating_point<T>) {
    return static_cast<T>(number_of(value, where, key));
  } else {
    return text_of(value, where, key);
  }
}

// Every field of an options struct, in the order of its list.
template <class Options>
[[nodiscard]] Json options_to_json(const Options& options) {
  Json json = Json::object();
  Options::describe([&](const auto& field) {
    json[std::string(field.key)] = field_to_json(options.*field.member);
  });
  return json;
}

// The options that an object spells; a field that it leaves out keeps its default. Rejects an
// unknown key, naming the nearest known one, and a value that the field cannot hold.
template <class Options>
[[nodiscard]] Options options_from_json(const Json& json, std::string_view where) {
  require_object(json, where, "options");
  require_known_keys(json, where, field_keys<Options>());
  Options options;
  Options::describe([&]<class Owner, class T>(const Field<Owner, T>& field) {
    const auto found = json.find(std::string(field.key));
    if (found == json.end()) return;
    if (found->is_string()) {
      require_listed(where, field.key, found->template get_ref<const std::string&>(), field.values);
    }
    options.*field.member = field_from_json<T>(*found, where, field.key, field.range);
  });
  return options;
}

}  // namespace isochron
