#include "tests/engine/support/cpu_memory.h"

#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "isochron/core/require.h"

namespace isochron {

struct CpuMemory::Count {
  std::mutex mutex;
  std::int64_t live = 0;
  std::int64_t peak = 0;

  void add(std::int64_t bytes) {
    const std::scoped_lock lock(mutex);
    live += bytes;
    peak = std::max(peak, live);
  }
};

// Torch's own allocator, counted. It is never destroyed, because storages remember who made them.
class CpuMemory::Allocator final : public c10::Allocator {
 public:
  static Allocator& get() {
    static auto* const allocator = new Allocator;
    return *allocator;
  }

  void begin(std::shared_ptr<Count> count) {
    ISOCHRON_ASSERT(count_ == nullptr);
    count_ = std::move(count);
    c10::SetCPUAllocator(this);
  }

  void end() {
    c10::SetCPUAllocator(plain_);
    count_.reset();
  }

  // Some callers want a pointer that is its own context, so what a block needs stands before it.
  c10::DataPtr allocate(std::size_t bytes) override {
    c10::DataPtr memory = plain_->allocate(sizeof(Block) + bytes);
    auto* const block = new (memory.get()) Block{count_, static_cast<std::int64_t>(bytes), {}};
    const c10::Device device = memory.device();
    block->memory = std::move(memory);
    if (block->count) block->count->add(block->bytes);
    void* const data = block + 1;
    return {data, data, &free_block, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }

  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  struct alignas(64) Block {
    std::shared_ptr<Count> count;
    std::int64_t bytes = 0;
    c10::DataPtr memory;  // this block and what follows
  };

  static void free_block(void* data) {
    auto* const block = static_cast<Block*>(data) - 1;
    if (block->count) block->count->add(-block->bytes);
    const c10::DataPtr memory = std::move(block->memory);
    block->~Block();
  }

  c10::Allocator* plain_ = c10::GetCPUAllocator();
  std::shared_ptr<Count> count_;
};

CpuMemory::CpuMemory() : count_(std::make_shared<Count>()) { Allocator::get().begin(count_); }
CpuMemory::~CpuMemory() { Allocator::get().end(); }

std::int64_t CpuMemory::live() const {
  const std::scoped_lock lock(count_->mutex);
  return count_->live;
}

std::int64_t CpuMemory::peak() const {
  const std::scoped_lock lock(count_->mutex);
  return count_->peak;
}

void CpuMemory::restart_peak() {
  const std::scoped_lock lock(count_->mutex);
  count_->peak = count_->live;
}

}  // namespace isochron
