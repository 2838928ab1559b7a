#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace isochron {

// Runs this program `count` times with `arguments`, as ranks 0 to count - 1 of one host, and waits
// for all of them. SIGTERM is passed on to each. What they write to standard error is passed on
// line by line with the rank in front, equal lines of several ranks once.
//
// If a rank fails, the others get a moment to say what they know and are then killed. Returns 0, or
// the exit code of the first that failed (128 + the signal that ended it).
[[nodiscard]] int run_local_ranks(std::int32_t count, const std::vector<std::string>& arguments);

}  // namespace isochron
