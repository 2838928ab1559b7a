#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "isochron/engine/parallel/communicator.h"
#include "isochron/engine/parallel/place.h"

namespace isochron {

// What carries collectives. Several ranks on one device have to use Gloo: NCCL refuses them.
enum class Backend { automatic, gloo, nccl };  // automatic: Gloo on cpu, NCCL on cuda

struct WorldOptions {
  std::chrono::milliseconds timeout{600'000};  // of a collective, and of the meeting at the start
  at::Device device = at::kCPU;                // of all tensors that are given to collectives
  Backend backend = Backend::automatic;
  bool record = false;  // keep what was issued
};

// All ranks of a run: their key-value store, groups and heartbeats. One rank needs no network.
//
// Over NCCL a program waits for a collective inside the driver, where nothing can be thrown. If the
// device does not come to its end within the timeout, the process says so on stderr, with the late
// rank, and exits with 3.
class World {
 public:
  // Connects, and returns when all ranks have. Throws std::runtime_error that names who is missing
  // after the timeout, std::invalid_argument for a backend that this build or device lacks. The
  // program ignores SIGPIPE, as Python does: libtorch's sockets leave it on, and a rank that goes
  // away would end this process before it can say so.
  World(const Place& place, const WorldOptions& options);
  // Leaves. The rank that hosts the store stays until the others have left or stopped, for some
  // seconds at most, since they may still ask it who is late.
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] const Place& place() const;
  [[nodiscard]] const WorldOptions& options() const;
  [[nodiscard]] Communicator& all();

  // The group of the consecutive ranks [first, first + count), which include this one; every member
  // asks for it in the same order, nobody else does. Stays open until close_group().
  [[nodiscard]] Communicator& group(std::int32_t first, std::int32_t count);
  // Every member closes it, with nothing under way. It may be asked for again.
  void close_group(std::int32_t first, std::int32_t count);

  // What this rank does from now on; a heartbeat thread publishes it for the messages of others.
  void set_activity(std::int64_t step, std::int64_t slot, std::string_view operation);

  // Text under a key that all ranks see. get waits for it, until the timeout; find does not. From
  // any thread, but a get in one holds up the others.
  void set(const std::string& key, const std::string& value);
  [[nodiscard]] std::string get(const std::string& key);
  [[nodiscard]] std::optional<std::string> find(const std::string& key);

  // With options.record: what this rank issued, in order, over all communicators, and the groups of
  // several ranks that it opened and closed.
  [[nodiscard]] std::vector<IssuedCollective> issued() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace isochron
