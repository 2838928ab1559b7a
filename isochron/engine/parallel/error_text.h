#pragma once

#include <exception>
#include <string>

namespace isochron {

// What c10d and Gloo say, on one line: without backtrace and without the place in their sources.
[[nodiscard]] std::string one_line(const std::exception& error);

}  // namespace isochron
