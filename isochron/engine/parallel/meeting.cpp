#include "isochron/engine/parallel/meeting.h"

#include <fmt/format.h>

#include <stdexcept>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "isochron/engine/parallel/error_text.h"

namespace isochron {

namespace {

double seconds_of(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

std::string store_text(const Place& place) {
  return fmt::format("the store at {}:{}, which {} hosts,", place.address, place.port,
                     place.agent_hosts_store ? "the launcher" : "rank 0");
}

c10::intrusive_ptr<c10d::Store> connect_store(const Place& place, StoreRole role,
                                              std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(place.port);
  options.isServer = role == StoreRole::host;
  options.waitWorkers = false;
  options.timeout = timeout;
  try {
    return c10::make_intrusive<c10d::PrefixStore>(
        "isochron/" + place.incarnation,
        c10::make_intrusive<c10d::TCPStore>(place.address, options));
  } catch (const std::exception& error) {
    if (role == StoreRole::host) {
      throw std::runtime_error(fmt::format("[world] rank 0 cannot host the store at {}:{}: {}",
                                           place.address, place.port, one_line(error)));
    }
    throw std::runtime_error(fmt::format("[world] {} did not answer within {:.1f} s ({})",
                                         store_text(place), seconds_of(timeout), one_line(error)));
  }
}

void await_all_ranks(c10d::Store& store, const Place& place, std::chrono::milliseconds timeout) {
  std::vector<std::string> keys;
  for (std::int32_t rank = 0; rank < place.size; ++rank)
    keys.push_back(fmt::format("here/{}", rank));
  try {
    store.set(keys[static_cast<std::size_t>(place.rank)], std::vector<std::uint8_t>{1});
    store.wait(keys, timeout);
    return;
  } catch (const std::exception& error) {
    std::string missing;
    std::size_t num_missing = 0;
    try {
      for (std::size_t rank = 0; rank < keys.size(); ++rank) {
        if (store.check({keys[rank]})) continue;
        missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
        ++num_missing;
      }
    } catch (const std::exception&) {
      num_missing = 0;
    }
    if (num_missing == 0) {
      throw std::runtime_error(fmt::format("[world] {} was lost while the ranks met ({})",
                                           store_text(place), one_line(error)));
    }
    throw std::runtime_error(fmt::format(
        "[world] rank{} {} of {} did not come to {}:{} within {:.1f} s", num_missing > 1 ? "s" : "",
        missing, place.size, place.address, place.port, seconds_of(timeout)));
  }
}

}  // namespace isochron
