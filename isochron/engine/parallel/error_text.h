#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace isochron {

// What c10d and Gloo say, on one line: without backtrace and without the place in their sources.
[[nodiscard]] std::string one_line(const std::exception& error);

// A collective that failed after so many seconds: "[world] sum of all ranks failed after 3.0 s:
// rank 2 .. (timed out)". `culprit` may be empty.
[[nodiscard]] std::string failure_text(std::string_view what, std::string_view communicator,
                                       double seconds, std::string_view culprit,
                                       std::string_view error);

}  // namespace isochron
