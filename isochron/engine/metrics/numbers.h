#pragma once

#include <string>
#include <utility>
#include <vector>

namespace isochron {

// Metrics by name, in the order in which they are shown.
using Numbers = std::vector<std::pair<std::string, double>>;

}  // namespace isochron
