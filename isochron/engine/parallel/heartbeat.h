#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "isochron/engine/parallel/beat.h"

namespace isochron {

// Publishes what this rank does, from a thread with a store connection of its own, and finds out
// who is to blame when a collective fails.
class Heartbeat {
 public:
  // Has published once when it returns. `store_text` names the store and its host in messages.
  Heartbeat(c10::intrusive_ptr<c10d::Store> store, std::int32_t rank, std::int32_t size,
            std::chrono::milliseconds period, std::string store_text);
  // Says goodbye. Does not wait for a store that does not answer.
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  void set_activity(std::int64_t step, std::int64_t slot, std::string_view operation);

  // One more collective on `communicator`; returns its number.
  std::int64_t count_collective(const std::string& communicator);

  // Who keeps `failed` from ending, in words that are the same on every rank: whoever asks first
  // finds out. Takes a few periods, and seconds if the store does not answer. Empty if nobody is
  // known to be late.
  [[nodiscard]] std::string find_culprit(const FailedCollective& failed);

  // Returns when every other rank has left or stopped beating, or at the deadline.
  void await_others(std::chrono::milliseconds longest);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // with the thread, which a dead store may hold up for ever
};

}  // namespace isochron
