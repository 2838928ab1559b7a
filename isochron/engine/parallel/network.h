#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <memory>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "isochron/engine/parallel/communicator.h"
#include "isochron/engine/parallel/place.h"

namespace isochron {

// The collectives of one group that differ between networks. Those that return Pending are under
// way afterwards, in the order of the calls.
class Channel {
 public:
  virtual ~Channel() = default;
  [[nodiscard]] virtual c10d::Backend& backend() = 0;
  virtual std::unique_ptr<Pending> all_gather(at::Tensor& all) = 0;
  virtual std::unique_ptr<Pending> reduce_scatter_sum(at::Tensor& part, at::Tensor& all) = 0;
  virtual std::unique_ptr<Pending> all_to_all(at::Tensor& received, at::Tensor& sent) = 0;
};

// What carries the collectives of a process: connects the members of a group through a store of
// their own.
class Network {
 public:
  virtual ~Network() = default;
  [[nodiscard]] virtual std::unique_ptr<Channel> connect(
      const c10::intrusive_ptr<c10d::Store>& store, std::int32_t rank, std::int32_t size) = 0;
};

// Each throws std::invalid_argument in a build that lacks it.
[[nodiscard]] std::unique_ptr<Network> gloo_network(const Place& place,
                                                    std::chrono::milliseconds timeout);
[[nodiscard]] std::unique_ptr<Network> nccl_network(at::Device device,
                                                    std::chrono::milliseconds timeout);

}  // namespace isochron
