#pragma once

#include <memory>
#include <string>

#include "isochron/engine/parallel/collective_log.h"
#include "isochron/engine/parallel/communicator.h"

namespace isochron {

// A group of one: every collective is the identity.
[[nodiscard]] std::unique_ptr<Communicator> single_rank(std::string name, std::int32_t rank,
                                                        CollectiveLog& log);

}  // namespace isochron
