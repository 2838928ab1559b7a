#pragma once

#include <string_view>
#include <vector>

namespace isochron {

// The speeds of ranks, 1 being what the cost model says: one number a line, blank lines and lines
// that start with # skipped, or a JSON array of numbers. Throws std::invalid_argument with the line
// (the position in an array) for anything but numbers from 0.001 to 1000, and for none at all.
[[nodiscard]] std::vector<double> parse_rank_speed(std::string_view text);

}  // namespace isochron
