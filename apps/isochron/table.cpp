#include "apps/isochron/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace isochron {

namespace {

constexpr std::size_t max_lines = 32;
constexpr std::int64_t bar_width = 24;  // two bars and their numbers in 80 columns

std::string bar(std::int64_t value, std::int64_t largest) {
  // Rounded to the nearest; in double, since cost times width may exceed 64 bits.
  const double share =
      largest > 0 ? static_cast<double>(value) / static_cast<double>(largest) : 0.0;
  const auto filled = static_cast<std::size_t>(std::lround(share * static_cast<double>(bar_width)));
  return std::string(filled, '#') + std::string(static_cast<std::size_t>(bar_width) - filled, ' ');
}

// Costs have up to 19 digits; three are enough beside a bar.
std::string short_number(std::int64_t value) {
  constexpr std::array<const char*, 7> suffixes = {"", "k", "M", "G", "T", "P", "E"};
  auto scaled = static_cast<double>(value);
  std::size_t step = 0;
  for (; scaled >= 999.5 && step + 1 < suffixes.size(); ++step) scaled /= 1000;
  if (step == 0) return fmt::format("{}", value);
  return fmt::format("{:.{}f}{}", scaled,
                     scaled < 9.995   ? 2
                     : scaled < 99.95 ? 1
                                      : 0,
                     suffixes[step]);
}

}  // namespace

std::string grouped_digits(std::int64_t value) {
  std::string digits = fmt::format("{}", value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3;) digits.insert(i -= 3, 1, ',');
  return digits;
}

std::string gap_text(std::int64_t value, std::int64_t bound) {
  if (bound <= 0) return value == bound ? "0.00 %" : "-";
  const double gap = 100.0 * (static_cast<double>(value - bound) / static_cast<double>(bound));
  return fmt::format("{:.{}f} %", gap, gap > 0 && gap < 0.005 ? 6 : 2);
}

std::string time_text(const CostModel& cost, Nanoseconds time) {
  return cost.name == "verl" ? grouped_digits(time)
                             : fmt::format("{:.3f} ms", static_cast<double>(time) / 1e6);
}

std::string memory_text(std::int64_t bytes) {
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1 << 30));
}

std::string text_table(std::span<const std::vector<std::string>> rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += i == 0 ? fmt::format("{:<{}}", row[i], widths[i])
                     : fmt::format("  {:>{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string bar_chart(std::string_view label, std::span<const BarColumn> columns) {
  std::size_t count = 0;
  std::int64_t largest = 0;
  for (const BarColumn& column : columns) {
    count = std::max(count, column.values.size());
    for (const std::int64_t value : column.values) largest = std::max(largest, value);
  }
  std::vector<std::string> labels;
  std::vector<std::vector<std::int64_t>> shown(columns.size());
  if (count <= max_lines) {
    for (std::size_t i = 0; i < count; ++i) labels.push_back(fmt::format("{}", i));
    for (std::size_t i = 0; i < columns.size(); ++i) {
      shown[i].assign(columns[i].values.begin(), columns[i].values.end());
    }
  } else {
    labels = {"smallest", "10 %", "median", "90 %", "largest"};
    for (std::size_t i = 0; i < columns.size(); ++i) {
      std::vector<std::int64_t> sorted(columns[i].values.begin(), columns[i].values.end());
      std::sort(sorted.begin(), sorted.end());
      if (sorted.empty()) continue;
      for (const std::size_t tenth : {0u, 1u, 5u, 9u, 10u}) {
        shown[i].push_back(sorted[(sorted.size() - 1) * tenth / 10]);
      }
    }
  }

  std::size_t label_width = label.size();
  for (const std::string& each : labels) label_width = std::max(label_width, each.size());
  std::string text = fmt::format("{:>{}}", label, label_width);
  for (const BarColumn& column : columns) {
    text += fmt::format("  {:<{}}", column.title, bar_width + 6);
  }
  text.erase(text.find_last_not_of(' ') + 1);
  text += "\n";
  for (std::size_t line = 0; line < labels.size(); ++line) {
    std::string row = fmt::format("{:>{}}", labels[line], label_width);
    for (const auto& values : shown) {
      row += line < values.size()
                 ? fmt::format("  {} {:>5}", bar(values[line], largest), short_number(values[line]))
                 : std::string(static_cast<std::size_t>(bar_width) + 8, ' ');
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

}  // namespace isochron
