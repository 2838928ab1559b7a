#pragma once

#include <string>
#include <string_view>

namespace isochron {

// Writes `text` to standard output, or to `path` unless that is "-". A file appears whole or not at
// all. Throws std::runtime_error if the text cannot be written.
void print(std::string_view text);
void write_output(const std::string& path, std::string_view text);

}  // namespace isochron
