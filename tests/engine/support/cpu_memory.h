#pragma once

#include <cstdint>
#include <memory>

namespace isochron {

// Counts the bytes of CPU tensors that are allocated while the object lives, by any thread, and
// takes off what is freed of them: what was there before is not in it. One at a time.
class CpuMemory {
 public:
  CpuMemory();
  ~CpuMemory();
  CpuMemory(const CpuMemory&) = delete;
  CpuMemory& operator=(const CpuMemory&) = delete;

  [[nodiscard]] std::int64_t live() const;
  [[nodiscard]] std::int64_t peak() const;
  void restart_peak();  // from what is live

 private:
  struct Count;
  class Allocator;
  std::shared_ptr<Count> count_;
};

}  // namespace isochron
