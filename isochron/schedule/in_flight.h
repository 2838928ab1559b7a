#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "isochron/core/int128.h"
#include "isochron/core/units.h"
#include "isochron/schedule/pipeline_schedule.h"

namespace isochron {

// The most that one stage holds at a time, if a visit holds bytes_of(slot, chunk) from its forward
// to its backward; in a pass that is forward only, while it runs. Depends on the order of the
// operations alone, not on time. 2^62 + 1 stands for anything above 2^62; bytes are 0 to 2^62 + 1.
template <class BytesOf>
[[nodiscard]] std::int64_t peak_in_flight(std::span<const PipelineOperation> operations, Pass pass,
                                          BytesOf bytes_of) {
  Int128 held = 0;
  Int128 peak = 0;
  for (const PipelineOperation& operation : operations) {
    const Int128 bytes = bytes_of(operation.slot, operation.chunk);
    if (operation.direction == Direction::backward) {
      held -= bytes;
      continue;
    }
    peak = std::max(peak, held + bytes);
    if (pass == Pass::train) held += bytes;
  }
  return static_cast<std::int64_t>(std::min<Int128>(peak, Int128{max_total_cost} + 1));
}

}  // namespace isochron
