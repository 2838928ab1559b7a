#include "isochron/core/json.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace isochron {

namespace {

constexpr int max_depth = 64;  // our documents need 8; a million brackets are an attack

}  // namespace

Json parse_json(std::string_view text, std::string_view where) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    require(depth <= max_depth, where, "the JSON nests deeper than {} levels", max_depth);
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys.back().insert(key).second) {
        reject(where, "the key {} occurs twice in one object", shown(parsed));
      }
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), watch);
  } catch (const Json::parse_error& error) {
    const auto stop = text.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte, text.size()));
    reject(where, "line {} is not valid JSON at byte {} of the text",
           1 + std::count(text.begin(), stop, '\n'), error.byte);
  } catch (const Json::out_of_range& error) {
    reject(where, "the JSON holds a number outside the range of a double");
  }
}

void require_object(const Json& value, std::string_view where, std::string_view name) {
  require(value.is_object(), where, "{} is {}, must be an object", name, shown(value));
}

void require_known_keys(const Json& object, std::string_view where,
                        std::span<const std::string> known) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      reject(where, "unknown key {}, did you mean \"{}\"?", shown(key), nearest_name(key, known));
    }
  }
}

const Json& member(const Json& object, std::string_view where, std::string_view key) {
  const auto found = object.find(std::string(key));
  require(found != object.end(), where, "\"{}\" is missing", key);
  return *found;
}

std::optional<std::int64_t> find_json_integer(const Json& value) {
  // An unsigned value above 2^63 would wrap around.
  const bool is_small = value.is_number_unsigned()
                            ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX)
                            : value.is_number_integer();
  if (!is_small) return std::nullopt;
  return value.get<std::int64_t>();
}

std::int64_t integer_of(const Json& value, std::string_view where, std::string_view name,
                        std::int64_t low, std::int64_t high) {
  const auto integer = find_json_integer(value);
  if (!integer || *integer < low || *integer > high) {
    reject(where, "{} is {}, must be an integer from {} to {}", name, shown(value), low, high);
  }
  return *integer;
}

double number_of(const Json& value, std::string_view where, std::string_view name) {
  if (!value.is_number()) reject(where, "{} is {}, must be a number", name, shown(value));
  return value.get<double>();
}

std::string text_of(const Json& value, std::string_view where, std::string_view name) {
  if (!value.is_string()) reject(where, "{} is {}, must be a string", name, shown(value));
  return value.get<std::string>();
}

std::string shown(const Json& value) {
  if (value.is_array()) return fmt::format("a list of {}", value.size());
  if (value.is_object()) return fmt::format("an object of {}", value.size());
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 64) text = text.substr(0, 61) + "...";
  return text;
}

}  // namespace isochron
