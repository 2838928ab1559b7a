#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "isochron/core/json.h"
#include "isochron/engine/data/data_order.h"
#include "isochron/engine/data/row_files.h"
#include "isochron/engine/execute/engine.h"
#include "isochron/engine/metrics/numbers.h"

namespace isochron {

// Rows as one update whose loss is the mean over all trained tokens: w = mask / T for every token
// but the first of a row, T the sum of these masks over all rows. Refers to `files`.
struct WeightedRows {
  Rows rows;
  std::int64_t num_trained = 0;  // T; weights are 0 if it is
};
[[nodiscard]] WeightedRows mean_over_tokens(const RowFiles& files,
                                            std::span<const std::int64_t> ids);

struct SftOptions {
  std::int64_t batch_size = 256;  // rows of a step and of a pass of validation
  std::int64_t seed = 1;          // of the order of the rows
};

// Supervised fine-tuning: the next token, where the mask says so.
class SftTask {
 public:
  // `validation` may be null. The files outlive the task.
  SftTask(const RowFiles& training, const RowFiles* validation, const SftOptions& options);

  [[nodiscard]] std::vector<Update> updates(std::int64_t step, Engine& engine);

  // val/loss: the mean over all trained tokens of the set, its last partial batch included. None
  // without a set, or if nothing in it is trained.
  [[nodiscard]] Numbers validate(std::int64_t step, Engine& engine);

  // How many rows there are, in which batches and order, and where the run stands in them.
  [[nodiscard]] Json state(std::int64_t step) const;
  void restore(const Json& state);

 private:
  const RowFiles& training_;
  const RowFiles* validation_;
  SftOptions options_;
  DataOrder order_;
};

}  // namespace isochron
