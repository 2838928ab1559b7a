#pragma once

#include <cstdint>

#include "isochron/balance/assignment.h"

namespace isochron {

// In units tried.
struct RepackLimits {
  std::int64_t work = 0;
  std::int64_t patience = 0;  // without any gain
};

// Takes a few bins apart and fills them again, over and over, until at most `target` bins are left
// or a limit is reached. Returns the number of bins, which never grows; their numbers
// stay 0, 1, ... Bins keep the capacity and the size if they did before. Equal inputs give equal
// bytes.
[[nodiscard]] std::int32_t repack(const Units& units, Tokens capacity, std::int64_t max_size,
                                  std::int32_t num_bins, std::int32_t target, RepackLimits limits,
                                  BinOf& bin_of);

}  // namespace isochron
