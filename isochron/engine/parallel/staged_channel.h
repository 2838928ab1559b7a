#pragma once

#include <memory>

#include "isochron/engine/parallel/network.h"

namespace isochron {

// A channel for tensors of a device over one for tensors of the host: each collective copies what
// it gives to the host, and what it gets to the device in wait(). For checks of numbers with
// several ranks on one device, not for speed.
[[nodiscard]] std::unique_ptr<Channel> staged_channel(std::unique_ptr<Channel> host_channel);

}  // namespace isochron
