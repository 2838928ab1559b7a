#include "isochron/engine/parallel/local_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>

namespace isochron {

namespace {

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    in_addr ip{};
    std::memcpy(&ip, reinterpret_cast<const char*>(address) + offsetof(sockaddr_in, sin_addr),
                sizeof ip);
    return (ntohl(ip.s_addr) >> 24) == 127;
  }
  in6_addr ip{};
  std::memcpy(&ip, reinterpret_cast<const char*>(address) + offsetof(sockaddr_in6, sin6_addr),
              sizeof ip);
  return IN6_IS_ADDR_LOOPBACK(&ip);
}

std::string numeric(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST];
  if (getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return {};
  return text;
}

// The own end of a datagram socket that is connected to `target`: no packet is sent.
std::optional<sockaddr_storage> own_end_towards(const addrinfo& target) {
  const int socket = ::socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return std::nullopt;
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  const bool is_known = connect(socket, target.ai_addr, target.ai_addrlen) == 0 &&
                        getsockname(socket, reinterpret_cast<sockaddr*>(&own), &length) == 0;
  close(socket);
  if (!is_known) return std::nullopt;
  return own;
}

std::string first_outside_address() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
      if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != family) continue;
      if ((entry->ifa_flags & IFF_UP) == 0 || is_loopback(entry->ifa_addr)) continue;
      return numeric(entry->ifa_addr, family == AF_INET ? socklen_t{sizeof(sockaddr_in)}
                                                        : socklen_t{sizeof(sockaddr_in6)});
    }
  }
  return {};
}

}  // namespace

std::string local_address(const Place& place) {
  addrinfo* found = nullptr;
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  const std::string port = std::to_string(place.port);
  if (getaddrinfo(place.address.c_str(), port.c_str(), &hints, &found) != 0) {
    throw std::runtime_error(
        fmt::format("[world] the address \"{}\" of the store is not known", place.address));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  std::string loopback;
  for (const addrinfo* target = found; target != nullptr; target = target->ai_next) {
    const auto own = own_end_towards(*target);
    if (!own) continue;
    const auto* address = reinterpret_cast<const sockaddr*>(&*own);
    std::string text = numeric(address, target->ai_addrlen);
    if (!is_loopback(address)) return text;
    if (loopback.empty()) loopback = std::move(text);
  }
  const bool is_loopback_asked = place.address == "localhost" || place.address == loopback;
  if (place.local_size < place.size && !is_loopback_asked) {
    if (std::string outside = first_outside_address(); !outside.empty()) return outside;
  }
  if (!loopback.empty()) return loopback;
  throw std::runtime_error(
      fmt::format("[world] no network interface of this host leads to {}", place.address));
}

}  // namespace isochron
