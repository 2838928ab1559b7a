#include "apps/isochron/rank_speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "isochron/core/json.h"

namespace isochron {

namespace {

constexpr std::string_view where = "rank-speed";

void require_speed(double speed, const std::string& place, const Json& value) {
  require(speed >= 0.001 && speed <= 1000, where,
          "{}: the speed is {}, must be a number from 0.001 to 1000", place, shown(value));
}

std::vector<double> parse_array(std::string_view text) {
  std::vector<double> speeds;
  for (const Json& value : parse_json(text, where)) {
    const double speed = value.is_number() ? value.get<double>() : 0;
    require_speed(speed, fmt::format("position {}", speeds.size()), value);
    speeds.push_back(speed);
  }
  return speeds;
}

std::vector<double> parse_lines(std::string_view text) {
  constexpr std::string_view blank = " \t\r";
  std::vector<double> speeds;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    line.remove_prefix(std::min(line.size(), line.find_first_not_of(blank)));
    line = line.substr(0, line.find_last_not_of(blank) + 1);
    if (line.empty() || line.front() == '#') continue;
    const double speed = find_number(line).value_or(0);
    require_speed(speed, fmt::format("line {}", number), std::string(line));
    speeds.push_back(speed);
  }
  return speeds;
}

}  // namespace

std::vector<double> parse_rank_speed(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // byte order mark
  const auto first = text.find_first_not_of(" \t\r\n");
  const bool is_array = first != std::string_view::npos && text[first] == '[';
  std::vector<double> speeds = is_array ? parse_array(text) : parse_lines(text);
  require(!speeds.empty(), where, "no speed found, must be one for each rank");
  return speeds;
}

}  // namespace isochron
