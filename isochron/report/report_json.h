#pragma once

#include <span>
#include <string>
#include <string_view>

#include "isochron/report/report.h"

namespace isochron {

// What the page draws: of every step the question, the groups, and their bars on the timeline.
[[nodiscard]] std::string report_json(std::span<const ReportEntry> entries);

// JSON that can stand in a script element: `<`, `>`, `&` and the line ends U+2028 and U+2029 as
// \u escapes. They occur in strings alone, so that the meaning stays.
[[nodiscard]] std::string escaped_for_script(std::string_view json);

}  // namespace isochron
