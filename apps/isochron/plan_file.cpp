#include "apps/isochron/plan_file.h"

#include <algorithm>

#include "isochron/core/require.h"

namespace isochron {

std::vector<std::string> split_plans(std::string_view text, std::string_view where) {
  constexpr std::string_view blank = " \t\r\n";
  const std::string_view whole = text;
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto first = line.find_first_not_of(blank);
    if (first == std::string_view::npos) continue;
    lines.emplace_back(line.substr(first, line.find_last_not_of(blank) + 1 - first));
  }
  require(!lines.empty(), where, "the file is empty, must hold a plan");
  const bool is_plan_per_line = std::all_of(lines.begin(), lines.end(), [](const auto& line) {
    return line.front() == '{' && line.back() == '}';
  });
  if (is_plan_per_line) return lines;
  return {std::string(whole)};  // one plan, laid out for reading
}

}  // namespace isochron
