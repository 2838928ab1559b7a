#pragma once

#include <string>
#include <string_view>

#include "isochron/core/json.h"

namespace isochron {

// The document of a YAML text: mappings, lists and scalars by the core schema (null, booleans,
// integers, numbers, strings; quoted ones are strings). An empty text is an empty mapping.
//
// Throws std::invalid_argument with `where` and the line for what is not YAML, a key that occurs
// twice, aliases, tags, a second document, and nesting deeper than 16: a recipe needs none of them,
// and they are how a small file becomes a large one.
[[nodiscard]] Json parse_yaml(std::string_view text, std::string_view where);

// What an unquoted scalar means: null for nothing, ~ and null, then booleans, integers, numbers;
// anything else is a string.
[[nodiscard]] Json plain_scalar(std::string_view text);

// A scalar or a list as one line of YAML. parse_yaml() reads it back.
[[nodiscard]] std::string yaml_value(const Json& value);

}  // namespace isochron
