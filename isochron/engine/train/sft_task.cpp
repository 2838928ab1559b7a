#include "isochron/engine/train/sft_task.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "isochron/engine/train/task.h"

namespace isochron {

static_assert(Task<SftTask>);

namespace {

at::Tensor negative_log_prob(const TokenOutputs& outputs) { return outputs.log_prob_T.neg(); }

std::int64_t num_trained(std::span<const std::uint8_t> mask) {
  // Nothing predicts the first token of a row.
  return std::accumulate(mask.begin() + 1, mask.end(), std::int64_t{0});
}

}  // namespace

WeightedRows mean_over_tokens(const RowFiles& files, std::span<const std::int64_t> ids) {
  WeightedRows weighted;
  auto masks = std::make_shared<std::vector<std::span<const std::uint8_t>>>();
  for (const std::int64_t id : ids) {
    const TokenRow row = files.row(id);
    weighted.rows.batch.lengths.push_back(static_cast<Tokens>(row.tokens.size()));
    weighted.rows.ids.push_back(id);
    weighted.rows.tokens.push_back(row.tokens);
    masks->push_back(row.mask);
    weighted.num_trained += num_trained(row.mask);
  }
  const double weight =
      weighted.num_trained > 0 ? 1 / static_cast<double>(weighted.num_trained) : 0;
  weighted.rows.fill_weights = [masks, weight](SequenceId row, std::size_t first,
                                               std::span<double> weights) {
    const auto mask = (*masks)[row.index()];
    for (std::size_t i = 0; i < weights.size(); ++i) {
      weights[i] = first + i > 0 ? mask[first + i] * weight : 0;
    }
  };
  return weighted;
}

SftTask::SftTask(const RowFiles& training, const RowFiles* validation, const SftOptions& options)
    : training_(training),
      validation_(validation),
      options_(options),
      order_(training.size(), options.batch_size, options.seed) {}

std::vector<Update> SftTask::updates(std::int64_t step, Engine& /*engine*/) {
  WeightedRows weighted = mean_over_tokens(training_, order_.rows_of(step));
  if (weighted.num_trained == 0) return {};
  return {{.rows = std::move(weighted.rows), .loss = negative_log_prob}};
}

Numbers SftTask::validate(std::int64_t step, Engine& engine) {
  if (validation_ == nullptr) return {};
  double sum = 0;
  std::int64_t num_tokens = 0;
  for (std::int64_t first = 0; first < validation_->size(); first += options_.batch_size) {
    std::vector<std::int64_t> ids(
        static_cast<std::size_t>(std::min(options_.batch_size, validation_->size() - first)));
    std::iota(ids.begin(), ids.end(), first);
    WeightedRows weighted = mean_over_tokens(*validation_, ids);
    if (weighted.num_trained == 0) continue;
    const StepPlan plan = engine.plan(weighted.rows.batch, Pass::forward);
    const StepResult result =
        engine.evaluate(step, plan, {.rows = std::move(weighted.rows), .loss = negative_log_prob});
    sum += result.loss * static_cast<double>(weighted.num_trained);
    num_tokens += weighted.num_trained;
  }
  if (num_tokens == 0) return {};
  return {{"val/loss", sum / static_cast<double>(num_tokens)}};
}

Json SftTask::state(std::int64_t step) const {
  const DataCursor next = order_.cursor_of(step + 1);
  return {{"rows", training_.size()},
          {"batch_size", options_.batch_size},
          {"seed", options_.seed},
          {"epoch", next.epoch},
          {"batch", next.batch}};
}

void SftTask::restore(const Json& state) {
  const auto require_same = [&](const char* name, const char* key, std::int64_t own) {
    const std::int64_t saved =
        integer_of(member(state, "checkpoint", name), "checkpoint", name, INT64_MIN, INT64_MAX);
    require(saved == own, "checkpoint",
            "was trained with {} = {}, the recipe gives {}: the rows would come in another order; "
            "checkpoint.load_contents without extra accepts that",
            key, saved, own);
  };
  require_same("rows", "rows of data.train_files", training_.size());
  require_same("batch_size", "data.train_batch_size", options_.batch_size);
  require_same("seed", "trainer.seed", options_.seed);
}

}  // namespace isochron
