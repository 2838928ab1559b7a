#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "isochron/engine/optim/adamw.h"

namespace isochron {

// Pieces of the optimizer's state on disk. A tensor of a file is named `kind/parameter@begin` and
// holds fp32 elements from `begin` on of that parameter, flattened. How many files there are, and
// where pieces begin, depends on who wrote them; readers take whatever overlaps theirs.

// A copy of pieces in host memory, which stays as it is while training goes on.
[[nodiscard]] std::vector<StatePiece> host_copy(std::span<const StatePiece> pieces);

// Writes pieces, which lie in host memory, and syncs the file.
void write_state(const std::filesystem::path& path, std::span<const StatePiece> pieces,
                 const std::map<std::string, std::string>& metadata = {});

// Fills `pieces` from the files, each element from the one place that stores it.
// `num_elements_of` has every parameter with its size.
//
// Throws std::invalid_argument, naming the parameter, unless the files hold, for every kind among
// `pieces` and every parameter, each element exactly once, and nothing else.
void read_state(std::span<const std::filesystem::path> files,
                const std::map<std::string, std::int64_t>& num_elements_of,
                std::span<StatePiece> pieces);

}  // namespace isochron
