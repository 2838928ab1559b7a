// What was relied on first ends first, so the thread looks at the oldest alone, and takes it off
// when it is done.

#include "isochron/engine/parallel/hang_watch.h"

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "isochron/engine/parallel/error_text.h"

namespace isochron {

struct HangWatch::State {
  Heartbeat& heartbeat;
  std::chrono::milliseconds timeout;
  std::chrono::milliseconds period;
  std::function<void()> farewell;
  std::mutex mutex = {};
  std::condition_variable changed = {};
  std::deque<WatchedWork> works = {};  // guarded; the one in front stays while it is looked at
  bool is_stopping = false;            // guarded
  std::thread thread = {};

  void run() {
    std::unique_lock lock(mutex);
    while (!changed.wait_for(lock, period, [&] { return is_stopping; })) {
      while (!works.empty()) {
        const WatchedWork work = works.front();
        lock.unlock();
        const bool has_ended = is_done(work);
        lock.lock();
        if (!has_ended) break;
        works.pop_front();
      }
    }
  }

  bool is_done(const WatchedWork& work) {
    try {
      if (work.is_done()) return true;
    } catch (const std::exception& error) {
      end(work, one_line(error));
    }
    if (seconds_since(work) < std::chrono::duration<double>(timeout).count()) return false;
    end(work, "the device does not come to its end");
  }

  static double seconds_since(const WatchedWork& work) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - work.since).count();
  }

  [[noreturn]] void end(const WatchedWork& work, const std::string& error) {
    const double seconds = seconds_since(work);
    const std::string text = failure_text(work.what, work.collective.communicator, seconds,
                                          heartbeat.find_culprit(work.collective), error);
    std::fprintf(stderr, "isochron: %s\n", text.c_str());
    farewell();
    std::_Exit(3);
  }
};

HangWatch::HangWatch(Heartbeat& heartbeat, std::chrono::milliseconds timeout,
                     std::chrono::milliseconds period, std::function<void()> farewell)
    : state_(new State{.heartbeat = heartbeat,
                       .timeout = timeout,
                       .period = period,
                       .farewell = std::move(farewell)}) {}

HangWatch::~HangWatch() {
  if (!state_->thread.joinable()) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_stopping = true;
  }
  state_->changed.notify_all();
  state_->thread.join();
}

void HangWatch::add(WatchedWork work) {
  const std::lock_guard lock(state_->mutex);
  state_->works.push_back(std::move(work));
  if (!state_->thread.joinable()) state_->thread = std::thread([this] { state_->run(); });
}

}  // namespace isochron
