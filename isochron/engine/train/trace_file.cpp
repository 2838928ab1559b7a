#include "isochron/engine/train/trace_file.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>

#include "isochron/core/json.h"

namespace isochron {

namespace {

std::optional<std::int64_t> step_of_line(std::string_view line) {
  if (line == "[") return std::nullopt;
  if (line.ends_with(',')) line.remove_suffix(1);
  return parse_json(line, "trace").at("args").at("step").get<std::int64_t>();
}

}  // namespace

TraceFile::TraceFile(const std::filesystem::path& path, std::int32_t rank, std::int64_t last_step)
    : rank_(rank), lines_(path, last_step, step_of_line) {
  if (lines_.is_empty()) lines_.write("[\n");
}

void TraceFile::write(std::int64_t step, std::chrono::system_clock::time_point begin,
                      std::span<const TracedScope> scopes) {
  const auto origin_us =
      std::chrono::duration_cast<std::chrono::microseconds>(begin.time_since_epoch()).count();
  std::string text;
  for (const TracedScope& scope : scopes) {
    // Reductions travel while a backward runs: on a line of their own.
    // Three digits: nanoseconds of a time since 1970 have no place in a double.
    text +=
        fmt::format(R"({{"name":"{}","ph":"X","ts":{}.{:03d},"dur":{}.{:03d},"pid":{},"tid":{},)"
                    R"("args":{{"step":{},"slot":{}}}}},)"
                    "\n",
                    scope.name, origin_us + scope.begin_ns / 1000, scope.begin_ns % 1000,
                    (scope.end_ns - scope.begin_ns) / 1000, (scope.end_ns - scope.begin_ns) % 1000,
                    rank_, scope.name == "reduce" ? 1 : 0, step, scope.slot);
  }
  lines_.write(text);
}

}  // namespace isochron
