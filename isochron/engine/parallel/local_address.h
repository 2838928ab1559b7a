#pragma once

#include <string>

#include "isochron/engine/parallel/place.h"

namespace isochron {

// The numeric address by which the other ranks reach this host: that of the interface which leads
// to `place.address`, without asking for the host's own name. A name that means the loopback here,
// as that of the first host often does, stands for the first other interface if there are ranks on
// other hosts. Throws std::runtime_error if the address is unknown or nothing leads to it.
[[nodiscard]] std::string local_address(const Place& place);

}  // namespace isochron
