// Collectives on CUDA, over c10d's NCCL. wait() orders the current stream behind the collective and
// returns at once; NCCL sums in the order of its own rings and trees.

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <exception>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#include <utility>
#include <vector>

#include "isochron/engine/parallel/network.h"

namespace isochron {

namespace {

// NCCL ends a process whose collective takes longer; the watch of the world, which can name the
// late rank, comes before it.
constexpr std::chrono::milliseconds time_to_judge{60'000};

class NcclChannel final : public Channel {
 public:
  NcclChannel(c10::intrusive_ptr<c10d::ProcessGroupNCCL> group, std::int32_t rank,
              std::int32_t size, at::Device device)
      : group_(std::move(group)), rank_(rank), size_(size), device_(device) {}

  // NCCL ends a communicator in peace with all its members, else by abort, which waits for nobody:
  // what c10d does when a rank leaves by an exception.
  ~NcclChannel() override {
    if (std::uncaught_exceptions() > 0) return;
    try {
      group_->shutdown();
    } catch (const std::exception&) {
      // The process group aborts what is left.
    }
  }

  std::unique_ptr<Pending> all_reduce(at::Tensor& values,
                                      c10d::ReduceOp::RedOpType operation) override {
    return all_reduce_of(*group_, values, operation);
  }

  std::unique_ptr<Pending> broadcast(at::Tensor& values, std::int32_t root) override {
    return broadcast_of(*group_, values, root);
  }

  std::unique_ptr<Pending> all_gather(at::Tensor& all) override {
    at::Tensor own = all.view(-1).chunk(size_)[static_cast<std::size_t>(rank_)];
    return std::make_unique<PendingWork>(group_->_allgather_base(all, own));
  }

  std::unique_ptr<Pending> reduce_scatter_sum(at::Tensor& part, at::Tensor& all) override {
    return std::make_unique<PendingWork>(group_->_reduce_scatter_base(part, all));
  }

  std::unique_ptr<Pending> all_to_all(at::Tensor& received, at::Tensor& sent) override {
    at::Tensor into = received.view(-1);
    at::Tensor from = sent.view(-1);
    std::vector<std::int64_t> equal_parts;  // what no sizes mean
    return std::make_unique<PendingWork>(
        group_->alltoall_base(into, from, equal_parts, equal_parts));
  }

  // An event behind what the stream waits for, and not the work, which would keep its tensors.
  std::function<bool()> completion() override {
    auto event = std::make_shared<c10::Event>(device_.type());
    event->record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
    return [event] { return event->query(); };
  }

 private:
  c10::intrusive_ptr<c10d::ProcessGroupNCCL> group_;
  std::int32_t rank_;
  std::int32_t size_;
  at::Device device_;
};

class NcclNetwork final : public Network {
 public:
  NcclNetwork(at::Device device, std::chrono::milliseconds timeout)
      : device_(device), timeout_(timeout) {}

  std::unique_ptr<Channel> connect(const c10::intrusive_ptr<c10d::Store>& store, std::int32_t rank,
                                   std::int32_t size) override {
    auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout = timeout_ + time_to_judge;
    auto group = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size, options);
    group->setBoundDeviceId(device_);
    group->eagerConnectSingleDevice(device_);
    return std::make_unique<NcclChannel>(std::move(group), rank, size, device_);
  }

 private:
  at::Device device_;
  std::chrono::milliseconds timeout_;
};

}  // namespace

std::unique_ptr<Network> nccl_network(at::Device device, std::chrono::milliseconds timeout) {
  return std::make_unique<NcclNetwork>(device, timeout);
}

}  // namespace isochron
