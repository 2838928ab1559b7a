#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "isochron/engine/parallel/collective_log.h"
#include "isochron/engine/parallel/communicator.h"
#include "isochron/engine/parallel/hang_watch.h"
#include "isochron/engine/parallel/heartbeat.h"
#include "isochron/engine/parallel/network.h"

namespace isochron {

// Two or more consecutive ranks of the world over a channel. What fails is thrown with the rank
// that the heartbeat finds to blame; what a device does not come to is left to the watch.
[[nodiscard]] std::unique_ptr<Communicator> watched_group(std::string name, std::int32_t first_rank,
                                                          std::int32_t rank, std::int32_t size,
                                                          std::unique_ptr<Channel> channel,
                                                          Heartbeat& heartbeat,
                                                          HangWatch& hang_watch,
                                                          CollectiveLog& log);

}  // namespace isochron
