#include "isochron/engine/train/training_data.h"

#include <fmt/format.h>

#include "isochron/core/require.h"
#include "isochron/engine/train/context_reach.h"
#include "isochron/engine/train/planning.h"

namespace isochron {

namespace {

RowFiles open_rows(const std::vector<std::string>& paths, std::int64_t max_samples,
                   const DataOptions& data) {
  return RowFiles(
      paths,
      {.max_samples = max_samples, .max_length = data.max_length, .truncation = data.truncation});
}

// The key that says how much a rank may hold.
std::string capacity_text(const Recipe& recipe) {
  if (const auto capacity = recipe.engine.max_seqlen_per_dp_cp_rank) {
    return fmt::format("engine.max_seqlen_per_dp_cp_rank = {}", *capacity);
  }
  return fmt::format("data.max_token_len_per_gpu = {}", recipe.data.max_token_len_per_gpu);
}

void require_that_rows_fit(const RowFiles& rows, const Recipe& recipe, const ContextReach& reach) {
  if (rows.longest() <= reach.longest) return;
  for (std::int64_t index = 0; index < rows.size(); ++index) {
    const Tokens length = rows.length(index);
    if (length <= reach.longest) continue;
    require(reach.largest_group > 1, "data", "{} has {} tokens, must have at most {}",
            rows.name_of(index), length, capacity_text(recipe));
    reject("data", "{} has {} tokens, must have at most {}: {} ranks share it, {}",
           rows.name_of(index), length, reach.longest, reach.largest_group, capacity_text(recipe));
  }
}

}  // namespace

TrainingData open_training_data(const Recipe& recipe, std::int32_t num_ranks) {
  const DataOptions& data = recipe.data;
  require(data.pad != Pad::error || data.train_batch_size % num_ranks == 0, "recipe",
          "data.train_batch_size is {}, must be a multiple of the {} ranks with data.pad = error",
          data.train_batch_size, num_ranks);
  TrainingData opened = {.training = open_rows(data.train_files, data.train_max_samples, data),
                         .validation = {},
                         .horizon = {}};
  if (data.val_files && !data.val_files->empty()) {
    opened.validation = open_rows(*data.val_files, data.val_max_samples, data);
  }
  opened.horizon = horizon_of(opened.training.size(), data.train_batch_size,
                              opened.validation.has_value(), recipe.horizon);
  const ContextReach reach =
      context_reach(recipe, num_ranks, microbatch_capacity(recipe, opened.longest()));
  require_that_rows_fit(opened.training, recipe, reach);
  if (opened.validation) require_that_rows_fit(*opened.validation, recipe, reach);
  return opened;
}

}  // namespace isochron
