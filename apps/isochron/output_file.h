#pragma once

#include <span>
#include <string>
#include <string_view>

namespace isochron {

// A text for a file; for standard output if the path is "-".
struct Output {
  std::string path;
  std::string text;
};

// Writes `text` to standard output, or each output to its place. Files appear whole or not at all,
// and several of them all or none. Throws std::runtime_error if a text cannot be written.
void print(std::string_view text);
void write_outputs(std::span<const Output> outputs);
void write_output(const std::string& path, std::string text);

// Throws std::runtime_error unless a file at `path` could be written now. Changes nothing.
void require_writable(const std::string& path);

}  // namespace isochron
