#pragma once

#include <cstdint>
#include <string>

namespace isochron {

// Which of how many processes this is, and where they meet.
struct Place {
  std::int32_t rank = 0;
  std::int32_t size = 1;
  std::int32_t local_rank = 0;  // on its host
  std::int32_t local_size = 1;  // ranks on its host
  std::string address = "127.0.0.1";
  std::int32_t port = 0;           // of the key-value store; 0 only for a single rank
  bool agent_hosts_store = false;  // torchrun's agent does; otherwise rank 0
  std::string incarnation = "0";   // keeps a restarted run apart from the one before
  std::string interface = {};      // for collectives on the CPU; empty: the one towards `address`

  bool operator==(const Place&) const = default;
};

}  // namespace isochron
