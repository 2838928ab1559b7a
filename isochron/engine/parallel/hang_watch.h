#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "isochron/engine/parallel/beat.h"
#include "isochron/engine/parallel/heartbeat.h"

namespace isochron {

// A collective that a program relies on before a device has come to its end.
struct WatchedWork {
  std::string what;
  FailedCollective collective;                  // if it does not
  std::function<bool()> is_done;                // from any thread; throws if it never will be
  std::chrono::steady_clock::time_point since;  // when the program began to rely on it
};

// Ends the process when a device does not come to the end of a collective: nothing can be thrown
// where the program waits for it, inside the driver. It says on stderr which collective it was and
// which rank is late, and exits with 3, without a destructor.
class HangWatch {
 public:
  // The heartbeat outlives it. Looks once a period, from a thread of its own. `farewell` is what
  // this rank does for the others between its last words and its end.
  HangWatch(Heartbeat& heartbeat, std::chrono::milliseconds timeout,
            std::chrono::milliseconds period, std::function<void()> farewell);
  ~HangWatch();
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

  // From any thread. The first one starts the thread of the watch.
  void add(WatchedWork work);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace isochron
