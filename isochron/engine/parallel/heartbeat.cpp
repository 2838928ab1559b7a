// One thread per rank, the only user of its store connection. It beats every period, and in between
// answers questions of the main thread, which waits for an answer no longer than a deadline: a
// store whose host is stopped, not dead, never answers and never fails.

#include "isochron/engine/parallel/heartbeat.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace isochron {

namespace {

using Clock = std::chrono::steady_clock;

// Longer than any store on a living host takes.
constexpr std::chrono::milliseconds store_patience{5000};

// Beats of a living rank arrive in any window of this many periods.
constexpr int periods_to_judge = 3;

constexpr const char* failure_key = "failure";

std::int64_t system_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string key_of(std::int32_t rank) { return fmt::format("beat/{}", rank); }

std::vector<std::uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

std::string text_of(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

struct Heartbeat::Shared {
  c10::intrusive_ptr<c10d::Store> store;  // of the thread alone
  std::int32_t rank = 0;
  std::int32_t size = 1;
  std::chrono::milliseconds period{1000};
  std::string store_text;
  bool is_store_lost = false;  // of the thread alone

  std::mutex mutex;
  std::condition_variable changed;
  Beat beat;                                // guarded
  std::deque<std::function<void()>> tasks;  // guarded; run by the thread
  bool is_stopping = false;                 // guarded
  std::promise<void> ended;                 // by the thread

  // Does nothing once the store is lost: questions say so, and c10d would log every try.
  void publish() {
    if (is_store_lost) return;
    std::string text;
    {
      const std::lock_guard lock(mutex);
      ++beat.count;
      beat.time_ms = system_ms();
      text = beat_json(beat);
    }
    is_store_lost = true;
    store->set(key_of(rank), bytes_of(text));
    is_store_lost = false;
  }

  void try_to_publish() {
    try {
      publish();
    } catch (const std::exception&) {
      // The next question of the main thread finds out that the store is lost.
    }
  }

  // A rank that has not come yet counts as one that has left.
  std::vector<Beat> read_all() {
    std::vector<std::string> keys;
    for (std::int32_t other = 0; other < size; ++other) keys.push_back(key_of(other));
    std::vector<Beat> beats(keys.size(), Beat{.has_left = true});
    if (store->check(keys)) {
      const auto values = store->multiGet(keys);
      for (std::size_t i = 0; i < keys.size(); ++i) beats[i] = beat_from_json(text_of(values[i]));
    } else {
      for (std::size_t i = 0; i < keys.size(); ++i) {
        if (store->check({keys[i]})) beats[i] = beat_from_json(text_of(store->get(keys[i])));
      }
    }
    return beats;
  }

  // Beats go on meanwhile: others judge this rank by them.
  void pause() {
    for (int i = 0; i < periods_to_judge; ++i) {
      std::this_thread::sleep_for(period);
      publish();
    }
  }

  std::string find_culprit(const FailedCollective& failed) {
    publish();
    if (store->check({failure_key})) return text_of(store->get(failure_key));
    const std::vector<Beat> before = read_all();
    pause();
    if (store->check({failure_key})) return text_of(store->get(failure_key));
    const std::string culprit = late_ranks(failed, before, read_all(), system_ms());
    if (culprit.empty()) return culprit;
    return text_of(store->compareSet(failure_key, {}, bytes_of(culprit)));
  }

  void run() {
    std::unique_lock lock(mutex);
    while (!is_stopping) {
      if (tasks.empty()) changed.wait_for(lock, period);
      if (is_stopping) break;
      std::deque<std::function<void()>> due;
      due.swap(tasks);
      lock.unlock();
      try_to_publish();
      for (auto& task : due) task();
      lock.lock();
    }
    beat.has_left = true;
    lock.unlock();
    try_to_publish();
    ended.set_value();
  }

  // Runs `question` in the thread; what it throws, and no answer in time, throw here.
  template <class Answer>
  Answer ask(std::function<Answer()> question, std::chrono::milliseconds longest) {
    auto task = std::make_shared<std::packaged_task<Answer()>>(std::move(question));
    std::future<Answer> answer = task->get_future();
    {
      const std::lock_guard lock(mutex);
      tasks.emplace_back([task] { (*task)(); });
    }
    changed.notify_all();
    if (answer.wait_for(longest) != std::future_status::ready) {
      throw std::runtime_error("no answer");
    }
    return answer.get();
  }
};

Heartbeat::Heartbeat(c10::intrusive_ptr<c10d::Store> store, std::int32_t rank, std::int32_t size,
                     std::chrono::milliseconds period, std::string store_text)
    : shared_(std::make_shared<Shared>()) {
  shared_->store = std::move(store);
  shared_->rank = rank;
  shared_->size = size;
  shared_->period = period;
  shared_->store_text = std::move(store_text);
  shared_->beat.since_ms = system_ms();
  shared_->publish();
  std::thread([shared = shared_] { shared->run(); }).detach();
}

Heartbeat::~Heartbeat() {
  auto ended = shared_->ended.get_future();
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->is_stopping = true;
  }
  shared_->changed.notify_all();
  ended.wait_for(store_patience);
}

void Heartbeat::set_activity(std::int64_t step, std::int64_t slot, std::string_view operation) {
  const std::lock_guard lock(shared_->mutex);
  shared_->beat.step = step;
  shared_->beat.slot = slot;
  shared_->beat.operation = operation;
  shared_->beat.since_ms = system_ms();
}

std::int64_t Heartbeat::count_collective(const std::string& communicator) {
  const std::lock_guard lock(shared_->mutex);
  return ++shared_->beat.issued[communicator];
}

std::string Heartbeat::find_culprit(const FailedCollective& failed) {
  try {
    return shared_->ask<std::string>(
        [shared = shared_.get(), failed] { return shared->find_culprit(failed); },
        store_patience + periods_to_judge * shared_->period);
  } catch (const std::exception&) {
    return fmt::format("{} does not answer", shared_->store_text);
  }
}

void Heartbeat::await_others(std::chrono::milliseconds longest) {
  const auto deadline = Clock::now() + longest;
  std::vector<Beat> reference;  // a heart is judged by beats this old
  Clock::time_point reference_time;
  const auto is_waited_for = [&](std::size_t rank, const Beat& now, bool is_judging) {
    if (rank == static_cast<std::size_t>(shared_->rank) || now.has_left) return false;
    return !is_judging || now.count != reference[rank].count;
  };
  try {
    while (Clock::now() < deadline) {
      const auto beats = shared_->ask<std::vector<Beat>>(
          [shared = shared_.get()] { return shared->read_all(); }, store_patience);
      const bool is_judging =
          !reference.empty() && Clock::now() - reference_time >= periods_to_judge * shared_->period;
      bool is_waiting = false;
      for (std::size_t rank = 0; rank < beats.size(); ++rank) {
        is_waiting |= is_waited_for(rank, beats[rank], is_judging);
      }
      if (!is_waiting) return;
      if (reference.empty() || is_judging) {
        reference = beats;
        reference_time = Clock::now();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
  } catch (const std::exception&) {
    // Without a store nobody can ask for anything.
  }
}

}  // namespace isochron
