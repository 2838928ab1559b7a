#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace isochron {

// The plans of a file, each as its document: a file holds one plan, or one per line as
// `plan --batch --json` writes them. Throws std::invalid_argument if it holds none.
[[nodiscard]] std::vector<std::string> split_plans(std::string_view text, std::string_view where);

inline constexpr const char* plan_help = "plan in JSON; - reads standard input";

}  // namespace isochron
