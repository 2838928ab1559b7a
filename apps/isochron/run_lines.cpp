#include "apps/isochron/run_lines.h"

#include <fmt/format.h>

#include <stdexcept>

namespace isochron {

namespace {

constexpr std::size_t max_trouble = 160;  // characters of a message that may quote the line

std::string_view trimmed(std::string_view line) {
  constexpr std::string_view blank = " \t\r\n\0";
  const auto first = line.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(blank) + 1 - first);
}

std::string shortened(std::string text) {
  if (text.size() > max_trouble) text = text.substr(0, max_trouble) + " ..";
  return text;
}

}  // namespace

std::vector<std::string> read_lines(std::istream& stream, std::string_view file,
                                    const std::function<void(std::string_view line)>& read_line,
                                    const CountBytes& count_bytes) {
  std::int64_t number = 0;
  std::int64_t num_damaged = 0;
  std::int64_t first_damaged = 0;
  std::string trouble;
  std::vector<std::string> notes;
  std::string line;
  while (std::getline(stream, line)) {
    ++number;
    if (count_bytes) count_bytes(line.size() + 1);
    const bool is_whole = !stream.eof();
    const std::string_view content = trimmed(line);
    if (content.empty()) continue;
    try {
      read_line(content);
    } catch (const std::invalid_argument& error) {
      if (!is_whole) {
        notes.push_back(fmt::format(
            "{}: the last line is incomplete; the run is still writing it, or was killed.", file));
        break;
      }
      if (++num_damaged > 1) continue;
      first_damaged = number;
      trouble = error.what();
    }
  }
  if (num_damaged > 0) {
    notes.push_back(fmt::format("{}: {} damaged {} left out, the first is line {}: {}", file,
                                num_damaged, num_damaged == 1 ? "line is" : "lines are",
                                first_damaged, shortened(trouble)));
  }
  return notes;
}

}  // namespace isochron
