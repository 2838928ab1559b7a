#include "isochron/engine/parallel/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <utility>
#include <vector>

#include "isochron/core/require.h"
#include "isochron/engine/parallel/collective_log.h"
#include "isochron/engine/parallel/error_text.h"
#include "isochron/engine/parallel/hang_watch.h"
#include "isochron/engine/parallel/heartbeat.h"
#include "isochron/engine/parallel/meeting.h"
#include "isochron/engine/parallel/network.h"
#include "isochron/engine/parallel/single_rank.h"
#include "isochron/engine/parallel/watched_group.h"

namespace isochron {

namespace {

using Milliseconds = std::chrono::milliseconds;

// Once a second; faster if the timeout is short, so that a few periods are little against it.
Milliseconds beat_period(Milliseconds timeout) {
  return std::clamp(timeout / 20, Milliseconds{10}, Milliseconds{1000});
}

// How long the host of the store stays for ranks that may still ask who is late.
constexpr Milliseconds longest_farewell{10'000};

void require_place(const Place& place) {
  require(place.size >= 1, "world", "size is {}, must be at least 1", place.size);
  require(place.rank >= 0 && place.rank < place.size, "world", "rank is {}, must be from 0 to {}",
          place.rank, place.size - 1);
  require(place.size == 1 || (place.port >= 1 && place.port <= 65535), "world",
          "port is {}, must be from 1 to 65535", place.port);
}

std::unique_ptr<Network> make_network(const Place& place, const WorldOptions& options) {
  const bool uses_gloo = options.backend == Backend::gloo ||
                         (options.backend == Backend::automatic && options.device.is_cpu());
  if (uses_gloo) return gloo_network(place, options.device, options.timeout);
  return nccl_network(options.device, options.timeout);
}

std::string group_name(std::int32_t first, std::int32_t count) {
  if (count == 1) return fmt::format("rank {}", first);
  return fmt::format("ranks {} to {}", first, first + count - 1);
}

}  // namespace

// Declared in the order of need: destroyed in reverse, groups first, the store last.
struct World::State {
  Place place;
  WorldOptions options;
  CollectiveLog log;
  c10::intrusive_ptr<c10d::Store> store = {};  // null for a single rank
  std::unique_ptr<Heartbeat> heartbeat = {};   // likewise
  std::unique_ptr<HangWatch> hang_watch = {};  // likewise
  std::unique_ptr<Network> network = {};       // likewise
  std::unique_ptr<Communicator> all = {};
  using Range = std::pair<std::int32_t, std::int32_t>;
  std::map<Range, std::unique_ptr<Communicator>> groups = {};
  std::map<Range, std::int64_t> num_openings = {};
  std::mutex local_mutex = {};
  std::map<std::string, std::string> local_values = {};  // of a single rank

  State(const Place& where, const WorldOptions& how)
      : place(where), options(how), log(how.record) {}

  [[nodiscard]] bool hosts_store() const { return place.rank == 0 && !place.agent_hosts_store; }

  void see_others_off() {
    if (!heartbeat || !hosts_store()) return;
    heartbeat->await_others(std::min(longest_farewell, options.timeout));
  }

  void meet() {
    try {
      await_all_ranks(*store, place, options.timeout);
    } catch (...) {
      see_others_off();
      throw;
    }
  }

  // A group of one opens and closes alone, which nobody has to know.
  void record_change(std::string_view operation, std::int32_t first, std::int32_t count) {
    if (count == 1) return;
    log.add({.communicator = group_name(first, count),
             .first_rank = first,
             .num_ranks = count,
             .operation = std::string(operation),
             .elements = 0});
  }

  // Over keys of their own, so that a group that is opened again does not meet the one before.
  std::unique_ptr<Communicator> connect(std::string name, const std::string& prefix,
                                        std::int32_t first, std::int32_t count) {
    if (count == 1) return single_rank(std::move(name), first, log);
    const std::int64_t number = heartbeat->count_collective(name);  // who does not come is late
    try {
      const auto keys = c10::make_intrusive<c10d::PrefixStore>(prefix, store);
      auto channel = network->connect(keys, place.rank - first, count);
      // Who is done at once and leaves would hang up on those who still connect.
      if (keys->add("connected", 1) == count) {
        keys->set("all connected", std::vector<std::uint8_t>{1});
      }
      keys->wait({"all connected"}, options.timeout);
      return watched_group(std::move(name), first, place.rank - first, count, std::move(channel),
                           *heartbeat, *hang_watch, log);
    } catch (const std::exception& error) {
      const std::string culprit = heartbeat->find_culprit(
          {.communicator = name, .first_rank = first, .num_ranks = count, .number = number});
      throw std::runtime_error(fmt::format("[world] {} could not connect: {}{}({})", name, culprit,
                                           culprit.empty() ? "" : " ", one_line(error)));
    }
  }
};

World::World(const Place& place, const WorldOptions& options) {
  require_place(place);
  require(options.backend != Backend::nccl || !options.device.is_cpu(), "world",
          "NCCL needs a device of CUDA, this rank is on {}", options.device.str());
  state_ = std::make_unique<State>(place, options);
  State& state = *state_;
  if (place.size > 1) {
    state.store = connect_store(place, state.hosts_store() ? StoreRole::host : StoreRole::guest,
                                options.timeout);
    state.heartbeat = std::make_unique<Heartbeat>(
        connect_store(place, StoreRole::guest, options.timeout), place.rank, place.size,
        beat_period(options.timeout), store_text(place));
    state.meet();
    state.network = make_network(place, options);
    state.hang_watch =
        std::make_unique<HangWatch>(*state.heartbeat, options.timeout, beat_period(options.timeout),
                                    [&state] { state.see_others_off(); });
  }
  state.all = state.connect("all ranks", "all", 0, place.size);
}

World::~World() { state_->see_others_off(); }

const Place& World::place() const { return state_->place; }
const WorldOptions& World::options() const { return state_->options; }
Communicator& World::all() { return *state_->all; }

Communicator& World::group(std::int32_t first, std::int32_t count) {
  State& state = *state_;
  require(count >= 1 && first >= 0 && first <= state.place.rank &&
              state.place.rank < first + count && first + count <= state.place.size,
          "world", "the group of {} ranks from {} on must lie in {} ranks and include rank {}",
          count, first, state.place.size, state.place.rank);
  auto& group = state.groups[{first, count}];
  if (!group) {
    state.record_change(group_opened, first, count);
    const std::int64_t opening = ++state.num_openings[{first, count}];
    group = state.connect(group_name(first, count),
                          fmt::format("group/{}/{}/{}", first, count, opening), first, count);
  }
  return *group;
}

void World::close_group(std::int32_t first, std::int32_t count) {
  require(state_->groups.erase({first, count}) == 1, "world", "{} is not open",
          group_name(first, count));
  state_->record_change(group_closed, first, count);
}

void World::set_activity(std::int64_t step, std::int64_t slot, std::string_view operation) {
  if (state_->heartbeat) state_->heartbeat->set_activity(step, slot, operation);
}

void World::set(const std::string& key, const std::string& value) {
  State& state = *state_;
  if (!state.store) {
    const std::lock_guard lock(state.local_mutex);
    state.local_values[key] = value;
    return;
  }
  try {
    state.store->set("user/" + key, value);
  } catch (const std::exception& error) {
    throw std::runtime_error(fmt::format("[world] {} did not take \"{}\" ({})",
                                         store_text(state.place), key, one_line(error)));
  }
}

std::string World::get(const std::string& key) {
  State& state = *state_;
  if (!state.store) {
    const auto value = find(key);
    if (!value) throw std::runtime_error(fmt::format("[world] nobody sets \"{}\"", key));
    return *value;
  }
  try {
    return state.store->get_to_str("user/" + key);
  } catch (const std::exception& error) {
    throw std::runtime_error(fmt::format(
        "[world] {} did not give \"{}\" within {:.1f} s ({})", store_text(state.place), key,
        std::chrono::duration<double>(state.options.timeout).count(), one_line(error)));
  }
}

std::optional<std::string> World::find(const std::string& key) {
  State& state = *state_;
  if (!state.store) {
    const std::lock_guard lock(state.local_mutex);
    const auto found = state.local_values.find(key);
    if (found == state.local_values.end()) return std::nullopt;
    return found->second;
  }
  try {
    if (!state.store->check({"user/" + key})) return std::nullopt;
  } catch (const std::exception& error) {
    throw std::runtime_error(
        fmt::format("[world] {} was lost ({})", store_text(state.place), one_line(error)));
  }
  return get(key);
}

std::vector<IssuedCollective> World::issued() const { return state_->log.issued(); }

}  // namespace isochron
