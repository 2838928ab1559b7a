#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isochron/cost/cost_model.h"

// Plain ASCII for people: tables and bars.

namespace isochron {

// 1234567 -> "1,234,567".
[[nodiscard]] std::string grouped_digits(std::int64_t value);

// "1.83 %": how far `value` lies above `bound`; "-" if the bound is 0.
[[nodiscard]] std::string gap_text(std::int64_t value, std::int64_t bound);

// "23.700 ms"; of a cost model without a clock (the preset `verl`) its own unit, "1,234,567".
[[nodiscard]] std::string time_text(const CostModel& cost, Nanoseconds time);

// "1.50 GiB".
[[nodiscard]] std::string memory_text(std::int64_t bytes);

// Rows with the first column to the left, the others to the right.
[[nodiscard]] std::string text_table(std::span<const std::vector<std::string>> rows);

// A column of a chart: one value per rank or micro-batch.
struct BarColumn {
  std::string_view title;
  std::span<const std::int64_t> values;
};

// One line of bars per position, all columns to the scale of the largest value. More than 32 lines
// become the distribution: smallest, deciles 1, 5 and 9, largest.
[[nodiscard]] std::string bar_chart(std::string_view label, std::span<const BarColumn> columns);

}  // namespace isochron
