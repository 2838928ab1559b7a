#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "isochron/core/json.h"

namespace isochron {

// FNV-1a with 64 bits, as docs/plan.md defines it.
inline std::uint64_t documented_hash(std::string_view bytes) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211u;
  return hash;
}

// The document with the hash that belongs to the rest of it, at the end.
inline std::string rehashed(Json document) {
  document.erase("hash");
  document["hash"] = fmt::format("{:016x}", documented_hash(document.dump()));
  return document.dump();
}

}  // namespace isochron
