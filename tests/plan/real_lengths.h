#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "isochron/core/batch.h"

// Where length files are; empty: nowhere.
#ifndef ISOCHRON_LENGTHS_FOLDER
#define ISOCHRON_LENGTHS_FOLDER ""
#endif

namespace isochron {

struct RealLengths {
  const char* name;
  std::vector<Tokens> lengths;
};

// The first lengths of files with one a line, beside comments; long-tailed ones where a file is
// missing.
inline std::vector<RealLengths> real_lengths() {
  constexpr std::size_t count = 200;
  std::vector<RealLengths> sources = {
      {"mooncake_conversation", {}}, {"wikipedia", {}}, {"azure_conversation", {}}};
  std::uint64_t seed = 0;
  for (RealLengths& source : sources) {
    std::ifstream file(std::string(ISOCHRON_LENGTHS_FOLDER) + "/" + source.name + ".txt");
    for (std::string line; source.lengths.size() < count && std::getline(file, line);) {
      if (!line.starts_with('#')) source.lengths.push_back(std::stoll(line));
    }
    ++seed;
    if (source.lengths.size() < count) {
      source.lengths = long_tailed_lengths(static_cast<std::int32_t>(count), seed);
    }
  }
  return sources;
}

}  // namespace isochron
