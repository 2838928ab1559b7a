#pragma once

#include <string>

#include "isochron/core/batch.h"

namespace isochron {

// All bytes of a file; of standard input for "-". Throws std::runtime_error if it is missing, a
// folder, or cannot be read.
[[nodiscard]] std::string read_file(const std::string& path);

// What `--lengths` names: a file in one of the three forms, or `builtin:N` for N long-tailed
// lengths that are equal on every machine.
[[nodiscard]] Batch read_batch(const std::string& lengths);

inline constexpr const char* lengths_help =
    "lengths as text, CSV or JSON; -: standard input; builtin:N: N long-tailed ones";

}  // namespace isochron
