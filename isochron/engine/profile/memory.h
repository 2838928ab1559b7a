#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace isochron {

// Memory that this process has used at most, in bytes.
struct PeakMemory {
  std::int64_t host = 0;              // resident
  std::int64_t device_allocated = 0;  // in tensors; 0 on a cpu
  std::int64_t device_reserved = 0;   // held by the allocator; 0 on a cpu
};

[[nodiscard]] PeakMemory peak_memory(c10::Device device);

}  // namespace isochron
