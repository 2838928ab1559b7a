#include "isochron/engine/profile/memory.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <sys/resource.h>

namespace isochron {

PeakMemory peak_memory(c10::Device device) {
  PeakMemory peak;
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  peak.host = static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
  if (device.is_cuda()) {
    const auto stats = c10::getDeviceAllocator(device.type())->getDeviceStats(device.index());
    constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    peak.device_allocated = stats.allocated_bytes[all].peak;
    peak.device_reserved = stats.reserved_bytes[all].peak;
  }
  return peak;
}

}  // namespace isochron
