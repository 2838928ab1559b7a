#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "isochron/engine/data/row_files.h"
#include "isochron/engine/train/horizon.h"
#include "isochron/engine/train/recipe.h"

namespace isochron {

// The rows of a run, and how long it is.
struct TrainingData {
  RowFiles training;
  std::optional<RowFiles> validation;
  Horizon horizon;

  // Tokens of the longest row.
  [[nodiscard]] Tokens longest() const {
    return std::max(training.longest(), validation ? validation->longest() : 0);
  }
};

// Opens the files of a recipe for `num_ranks` ranks. Throws std::invalid_argument for what RowFiles
// rejects, fewer rows than a batch, a row that no group of ranks may hold, what context_reach()
// rejects, and with data.pad error a batch that the ranks do not divide.
[[nodiscard]] TrainingData open_training_data(const Recipe& recipe, std::int32_t num_ranks);

}  // namespace isochron
