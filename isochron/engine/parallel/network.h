#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <functional>
#include <memory>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>

#include "isochron/engine/parallel/communicator.h"
#include "isochron/engine/parallel/place.h"

namespace isochron {

// The collectives of one group over a network: under way afterwards, in the order of the calls.
class Channel {
 public:
  virtual ~Channel() = default;
  virtual std::unique_ptr<Pending> all_reduce(at::Tensor& values,
                                              c10d::ReduceOp::RedOpType operation) = 0;
  virtual std::unique_ptr<Pending> broadcast(at::Tensor& values, std::int32_t root) = 0;
  virtual std::unique_ptr<Pending> all_gather(at::Tensor& all) = 0;
  virtual std::unique_ptr<Pending> reduce_scatter_sum(at::Tensor& part, at::Tensor& all) = 0;
  virtual std::unique_ptr<Pending> all_to_all(at::Tensor& received, at::Tensor& sent) = 0;

  // Where wait() returns before the collective has ended: tells, from any thread, whether the
  // device has come to all that was awaited so far in this one. Empty where wait() waits.
  [[nodiscard]] virtual std::function<bool()> completion() { return {}; }
};

// A collective of c10d.
class PendingWork final : public Pending {
 public:
  explicit PendingWork(c10::intrusive_ptr<c10d::Work> work) : work_(std::move(work)) {}
  void wait() override { work_->wait(); }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
};

// What c10d reduces and sends itself, on any network.
[[nodiscard]] std::unique_ptr<Pending> all_reduce_of(c10d::Backend& backend, at::Tensor& values,
                                                     c10d::ReduceOp::RedOpType operation);
[[nodiscard]] std::unique_ptr<Pending> broadcast_of(c10d::Backend& backend, at::Tensor& values,
                                                    std::int32_t root);

// What carries the collectives of a process: connects the members of a group through a store of
// their own.
class Network {
 public:
  virtual ~Network() = default;
  [[nodiscard]] virtual std::unique_ptr<Channel> connect(
      const c10::intrusive_ptr<c10d::Store>& store, std::int32_t rank, std::int32_t size) = 0;
};

// Each throws std::invalid_argument in a build that lacks it.
// Gloo carries tensors of the host; those of another device go through it.
[[nodiscard]] std::unique_ptr<Network> gloo_network(const Place& place, at::Device device,
                                                    std::chrono::milliseconds timeout);
[[nodiscard]] std::unique_ptr<Network> nccl_network(at::Device device,
                                                    std::chrono::milliseconds timeout);

}  // namespace isochron
