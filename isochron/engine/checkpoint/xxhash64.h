#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace isochron {

// XXH64 (Collet) with seed 0: a checksum at the speed of memory, equal on every machine.
[[nodiscard]] std::uint64_t xxhash64(std::span<const std::byte> bytes);

}  // namespace isochron
