#pragma once

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <cstdint>
#include <memory>

namespace isochron {

// Bytes of CPU tensors that this thread allocates and frees while the object lives.
class CpuMemory {
 public:
  CpuMemory()
      : count_(std::make_shared<Count>()), guard_(c10::DebugInfoKind::PROFILER_STATE, count_) {}

  [[nodiscard]] std::int64_t live() const { return count_->live; }
  [[nodiscard]] std::int64_t peak() const { return count_->peak; }

 private:
  struct Count : c10::MemoryReportingInfoBase {
    std::int64_t live = 0;
    std::int64_t peak = 0;

    void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t,
                           c10::Device) override {
      live += bytes;
      peak = std::max(peak, live);
    }
    bool memoryProfilingEnabled() const override { return true; }
  };

  std::shared_ptr<Count> count_;
  c10::DebugInfoGuard guard_;
};

}  // namespace isochron
