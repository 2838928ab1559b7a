#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "isochron/engine/parallel/place.h"

namespace isochron {

// A collective under way.
class Pending {
 public:
  virtual ~Pending() = default;
  virtual void wait() = 0;  // throws what the collective throws
};

// Ranks that talk to each other. Every member calls the same collectives in the same order. Tensors
// are contiguous and on the device of the world. A collective that fails or takes longer than the
// timeout throws std::runtime_error that names the operation, the group and, where it is known,
// the rank that is late, with what it was last seen doing; nothing may be issued afterwards.
class Communicator {
 public:
  virtual ~Communicator() = default;
  [[nodiscard]] virtual std::int32_t rank() const = 0;  // in this group
  [[nodiscard]] virtual std::int32_t size() const = 0;
  [[nodiscard]] virtual const std::string& name() const = 0;

  // In place, over all members. `what` names the operation in messages and traces.
  virtual void all_reduce_sum(at::Tensor& values, std::string_view what) = 0;
  virtual void all_reduce_max(at::Tensor& values, std::string_view what) = 0;
  virtual void broadcast(at::Tensor& values, std::int32_t root, std::string_view what) = 0;
  // `all` holds size() parts of equal size; this rank gives part rank() and gets all of them.
  virtual std::unique_ptr<Pending> all_gather(at::Tensor& all, std::string_view what) = 0;
  // `all` holds size() parts of equal size; `part` becomes the sum over the members of part rank().
  // Sums in rank order: every world of one size gives the same bits. `all` is free to be
  // overwritten.
  virtual std::unique_ptr<Pending> reduce_scatter_sum(at::Tensor& part, at::Tensor& all,
                                                      std::string_view what) = 0;
};

// One collective as a rank issued it: what the order checker of tests compares.
struct IssuedCollective {
  std::string communicator;
  std::string operation;
  std::int64_t elements = 0;

  bool operator==(const IssuedCollective&) const = default;
};

struct WorldOptions {
  std::chrono::milliseconds timeout{600'000};  // of a collective
  at::Device device = at::kCPU;                // Gloo on cpu, NCCL on cuda
  bool record = false;                         // keep what was issued
};

// All ranks of a run: their key-value store, groups and heartbeats. One rank needs no network.
class World {
 public:
  // Connects, and returns when all ranks have. Throws std::runtime_error that names who is missing
  // after the timeout.
  World(const Place& place, const WorldOptions& options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] const Place& place() const;
  [[nodiscard]] const WorldOptions& options() const;
  [[nodiscard]] Communicator& all();

  // The group of the consecutive ranks [first, first + count); every member asks for it in the same
  // order, nobody else does. Stays open until close_groups().
  [[nodiscard]] Communicator& group(std::int32_t first, std::int32_t count);

  // What this rank does from now on; a heartbeat thread publishes it for the messages of others.
  void set_activity(std::int64_t step, std::int64_t slot, std::string_view operation);

  // Text under a key that all ranks see. get waits for it, until the timeout.
  void set(const std::string& key, const std::string& value);
  [[nodiscard]] std::string get(const std::string& key);

  [[nodiscard]] std::vector<IssuedCollective> issued() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace isochron
