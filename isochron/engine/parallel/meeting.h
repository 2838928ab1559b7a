#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "isochron/engine/parallel/place.h"

namespace isochron {

// How messages name the store: "the store at 127.0.0.1:29500, which rank 0 hosts,".
[[nodiscard]] std::string store_text(const Place& place);

enum class StoreRole { host, guest };

// A connection to the store of a run, with the keys of this incarnation. A host also serves it,
// until it is destroyed. Throws std::runtime_error if there is no store within the timeout.
[[nodiscard]] c10::intrusive_ptr<c10d::Store> connect_store(const Place& place, StoreRole role,
                                                            std::chrono::milliseconds timeout);

// Returns when all ranks of the run have called it. Throws std::runtime_error that names those who
// have not come within the timeout.
void await_all_ranks(c10d::Store& store, const Place& place, std::chrono::milliseconds timeout);

}  // namespace isochron
