#include "isochron/engine/train/dry_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "isochron/cost/memory.h"
#include "isochron/engine/data/data_order.h"
#include "isochron/engine/model/model_config.h"
#include "isochron/engine/train/planning.h"
#include "isochron/engine/train/training_data.h"
#include "isochron/plan/plan.h"

namespace isochron {

namespace {

constexpr std::int64_t num_planned = 3;  // steps: enough to see how much they differ

std::string gib(std::int64_t bytes) {
  return fmt::format("{:8.2f} GiB", static_cast<double>(bytes) / (1 << 30));
}

std::string seconds(Nanoseconds ns) {
  return fmt::format("{:.3f} s", static_cast<double>(ns) / 1e9);
}

// A shape out of a model folder, checked like the model itself.
ModelShape shape_in(const std::string& folder) {
  return model_config_from_json(file_text(folder + "/config.json")).shape;
}

void plan_first_steps(const Recipe& recipe, const TrainingData& data, const CostModel& cost,
                      DryRun& run) {
  DataOrder order(data.training.size(), recipe.data.train_batch_size, recipe.trainer.seed);
  const Topology topology = {.ranks = run.ranks,
                             .capacity = microbatch_capacity(recipe.data, run.longest)};
  for (std::int64_t step = 1; step <= std::min(num_planned, run.horizon.num_steps); ++step) {
    Batch batch;
    for (const std::int64_t row : order.rows_of(step)) {
      batch.lengths.push_back(data.training.length(row));
    }
    const StepPlan plan = plan_step(batch, topology, cost, plan_options(recipe, run.ranks));
    const bool has_plan = plan.status == Status::optimal || plan.status == Status::feasible;
    require(has_plan, "plan", "there is no plan for step {}: {}", step, plan.reason);
    run.predicted_step_ns.push_back(plan.predicted_step_ns);
    run.imbalance.push_back(plan.imbalance);
  }
}

}  // namespace

ExpectedMemory expected_memory(const Recipe& recipe, const ModelShape& model, std::int32_t ranks,
                               Tokens tokens, const std::optional<Hardware>& hardware) {
  const std::int64_t parameters = num_parameters(model);
  // The formulas of cost/memory.h count bfloat16, 2 bytes an element.
  const std::int64_t width = resolved_precision(recipe) == Precision::float32 ? 2 : 1;
  ExpectedMemory memory = {
      .weights = 2 * width * parameters,
      .gradients = 4 * parameters,
      .optimizer = state_bytes(parameters, ranks) - 6 * parameters,
      .activations = width * tokens * activation_bytes_per_token(model, recipe.engine.recompute),
      .logits = logits_bytes(model, std::min(tokens, recipe.engine.loss_chunk)),
      .reserve = hardware ? hardware->hbm_bytes / 10 : 0};
  return memory;
}

DryRun dry_run(const Recipe& recipe, std::int32_t ranks, std::int32_t local_ranks) {
  const ModelShape model = shape_in(recipe.model.path);
  const TrainingData data = open_training_data(recipe, ranks);
  DryRun run = {.model = model,
                .num_rows = data.training.size(),
                .num_tokens = 0,
                .num_validation_rows = {},
                .longest = data.training.longest(),
                .horizon = data.horizon,
                .ranks = ranks,
                .cost_name = {},
                .predicted_step_ns = {},
                .imbalance = {},
                .hardware = find_rank_hardware(recipe, local_ranks),
                .memory = {}};
  for (std::int64_t row = 0; row < run.num_rows; ++row) run.num_tokens += data.training.length(row);
  if (data.validation) {
    run.num_validation_rows = data.validation->size();
    run.longest = std::max(run.longest, data.validation->longest());
  }
  const CostModel cost = planning_cost(recipe, model, run.hardware);
  run.cost_name = cost.name;
  plan_first_steps(recipe, data, cost, run);
  run.memory = expected_memory(recipe, model, ranks, microbatch_capacity(recipe.data, run.longest),
                               run.hardware);
  return run;
}

std::string to_text(const DryRun& run) {
  std::string text = fmt::format(
      "model       {}: {} layers, {} parameters\n"
      "rows        {}, {} tokens, longest {}\n",
      run.model.name, run.model.layers, num_parameters(run.model), run.num_rows, run.num_tokens,
      run.longest);
  if (run.num_validation_rows) {
    text += fmt::format("validation  {} rows\n", *run.num_validation_rows);
  }
  text += fmt::format("steps       {} ({} per epoch) on {} rank{}\n", run.horizon.num_steps,
                      run.horizon.steps_per_epoch, run.ranks, run.ranks == 1 ? "" : "s");
  for (std::size_t i = 0; i < run.predicted_step_ns.size(); ++i) {
    text += fmt::format("step {:<6} {} predicted ({}), imbalance {:.4f}\n", i + 1,
                        seconds(run.predicted_step_ns[i]), run.cost_name, run.imbalance[i]);
  }
  const ExpectedMemory& memory = run.memory;
  text += fmt::format(
      "memory of a device\n  weights     {}\n  gradients   {}\n  optimizer   {}\n  activations {}\n"
      "  logits      {}\n  reserve     {}\n  expected    {}\n",
      gib(memory.weights), gib(memory.gradients), gib(memory.optimizer), gib(memory.activations),
      gib(memory.logits), gib(memory.reserve), gib(memory.total()));
  if (run.hardware) {
    text += fmt::format("  {:<11} {}: {}\n", run.hardware->name, gib(run.hardware->hbm_bytes),
                        run.fits() ? "it fits" : "too small");
  } else {
    text += "  the device is not known; engine.hardware names it\n";
  }
  return text;
}

}  // namespace isochron
