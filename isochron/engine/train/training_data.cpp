#include "isochron/engine/train/training_data.h"

#include "isochron/core/require.h"

namespace isochron {

namespace {

RowFiles open_rows(const std::vector<std::string>& paths, std::int64_t max_samples,
                   const DataOptions& data) {
  RowFiles rows(
      paths,
      {.max_samples = max_samples, .max_length = data.max_length, .truncation = data.truncation});
  if (!data.use_dynamic_bsz || rows.longest() <= data.max_token_len_per_gpu) return rows;
  for (std::int64_t index = 0; index < rows.size(); ++index) {
    require(rows.length(index) <= data.max_token_len_per_gpu, "data",
            "{} has {} tokens, must have at most data.max_token_len_per_gpu = {}",
            rows.name_of(index), rows.length(index), data.max_token_len_per_gpu);
  }
  return rows;
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
  return opened;
}

}  // namespace isochron
