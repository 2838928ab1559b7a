#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "isochron/core/batch.h"
#include "isochron/core/ids.h"

namespace isochron {

// The rows of one update, row i as SequenceId i of its plan: what the planner needs of all of them,
// and where a rank reads those that its plan gives it. Spans stay valid as long as their owner
// (a mapped data set).
struct Rows {
  Batch batch;                                        // lengths, groups, extra costs of all rows
  std::vector<std::int64_t> ids;                      // of each row in its data set
  std::vector<std::span<const std::int32_t>> tokens;  // of each row
  // Writes w of the tokens `first` and following of a row: the weight of the loss of each in the
  // sum over all rows, as the target that the tokens before it predict. That of token 0 is 0. One
  // denominator for the whole batch is in it.
  std::function<void(SequenceId row, std::size_t first, std::span<double> weights)> fill_weights;
};

}  // namespace isochron
