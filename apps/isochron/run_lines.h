#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

namespace isochron {

// Hears how many bytes more have been read; none: nobody listens.
using CountBytes = std::function<void(std::size_t bytes)>;

// Reads a file of a run that has an entry per line, one line at a time. `read_line` gets each line
// that is not blank, without white space around it, and throws std::invalid_argument for one that
// it cannot use. The last line of a run that goes on, or was killed, may end anywhere.
//
// Comes back with what was wrong, as sentences that name the file: damaged lines are counted, with
// the number and trouble of the first, and a last line without its end that cannot be used is
// incomplete, not damaged.
[[nodiscard]] std::vector<std::string> read_lines(
    std::istream& stream, std::string_view file,
    const std::function<void(std::string_view line)>& read_line,
    const CountBytes& count_bytes = {});

}  // namespace isochron
