#include "isochron/engine/train/dry_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "isochron/cost/memory.h"
#include "isochron/engine/context/context_attention.h"
#include "isochron/engine/data/data_order.h"
#include "isochron/engine/model/activation_memory.h"
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

// What attention over a group has beside the shards of this rank: keys and values of some heads of
// all its tokens six times: on their way, picked, their gradients, these from the kernel, and those
// of the heads before as sent and received.
std::int64_t exchange_bytes(const ModelShape& model, std::int64_t element_bytes,
                            std::int64_t group_size, Tokens tokens) {
  if (group_size == 1) return 0;
  const std::int64_t head = 2 * group_size * tokens * model.head_dim * element_bytes;
  return 6 * head *
         std::clamp<std::int64_t>(ContextOptions{}.gather_bytes / head, 1, model.kv_heads);
}

std::map<std::int64_t, std::int64_t> groups_of_size(const StepPlan& plan) {
  std::map<std::int64_t, std::int64_t> count;
  for (const Slot& slot : plan.microbatches) {
    for (const ContextGroup& group : slot) {
      if (!group.sequences.empty()) ++count[group.ranks.size];
    }
  }
  return count;
}

// "groups 14 x 1, 2 x 4 ranks"; nothing where every rank works alone.
std::string groups_text(const PlannedStep& step) {
  const auto& count = step.groups_of_size;
  if (count.empty() || count.rbegin()->first == 1) return "";
  std::string text;
  for (const auto& [size, groups] : count) {
    text += fmt::format("{}{} x {}", text.empty() ? ", groups " : ", ", groups, size);
  }
  return text + " ranks";
}

void plan_first_steps(const Recipe& recipe, const TrainingData& data, const CostModel& cost,
                      DryRun& run) {
  DataOrder order(data.training.size(), recipe.data.train_batch_size, recipe.trainer.seed);
  const Topology topology = {.ranks = run.ranks, .capacity = run.capacity};
  for (std::int64_t step = 1; step <= std::min(num_planned, run.horizon.num_steps); ++step) {
    Batch batch;
    for (const std::int64_t row : order.rows_of(step)) {
      batch.lengths.push_back(data.training.length(row));
    }
    const StepPlan plan = plan_step(batch, topology, cost, plan_options(recipe, run.ranks));
    const bool has_plan = plan.status == Status::optimal || plan.status == Status::feasible;
    require(has_plan, "plan", "there is no plan for step {}: {}", step, plan.reason);
    run.first_steps.push_back({.predicted_ns = plan.predicted_step_ns,
                               .imbalance = plan.imbalance,
                               .groups_of_size = groups_of_size(plan)});
  }
}

}  // namespace

ExpectedMemory expected_memory(const Recipe& recipe, const ModelShape& model, std::int32_t ranks,
                               std::int32_t largest_group, Tokens tokens,
                               const std::optional<Hardware>& hardware) {
  const std::int64_t parameters = num_parameters(model);
  const std::int64_t width = element_bytes(recipe);
  const ActivationBytes bytes = activation_bytes(model, {.recompute = recipe.engine.recompute,
                                                         .element_bytes = width,
                                                         .in_groups = largest_group > 1});
  ExpectedMemory memory = {
      .weights = width * parameters,
      .gradients = 4 * parameters,
      .optimizer = state_bytes(parameters, ranks) - 6 * parameters,
      .activations = tokens * bytes.kept,
      .working = std::max(tokens * bytes.working,
                          head_bytes(model, std::min(tokens, recipe.engine.loss_chunk), width)),
      .context = exchange_bytes(model, width, largest_group, tokens),
      .reserve = hardware ? hardware->hbm_bytes / 10 : 0};
  // That of a tied head waits for that of the embedding.
  if (model.tied_head) memory.gradients += width * model.vocabulary * model.hidden;
  return memory;
}

DryRun dry_run(const Recipe& recipe, std::int32_t ranks, std::int32_t local_ranks) {
  const ModelShape model = shape_in(recipe.model.path);
  require_executable_exchanges(recipe, model);
  const TrainingData data = open_training_data(recipe, ranks);
  DryRun run = {.model = model,
                .num_rows = data.training.size(),
                .num_tokens = 0,
                .num_validation_rows = {},
                .longest = data.longest(),
                .horizon = data.horizon,
                .ranks = ranks,
                .cost_name = {},
                .context = plan_options(recipe, ranks).context,
                .capacity = microbatch_capacity(recipe, data.longest()),
                .reach = {},
                .first_steps = {},
                .hardware = find_rank_hardware(recipe, local_ranks),
                .memory = {}};
  for (std::int64_t row = 0; row < run.num_rows; ++row) run.num_tokens += data.training.length(row);
  if (data.validation) run.num_validation_rows = data.validation->size();
  run.reach = context_reach(recipe, ranks, run.capacity);
  const CostModel cost = planning_cost(recipe, model, run.hardware);
  run.cost_name = cost.name;
  plan_first_steps(recipe, data, cost, run);
  run.memory =
      expected_memory(recipe, model, ranks, run.reach.largest_group, run.capacity, run.hardware);
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
  if (run.reach.largest_group > 1) {
    text += fmt::format("context     {}: groups of up to {} ranks of {} tokens, rows of up to {}\n",
                        run.context, run.reach.largest_group, run.capacity, run.reach.longest);
  }
  for (std::size_t i = 0; i < run.first_steps.size(); ++i) {
    const PlannedStep& step = run.first_steps[i];
    text +=
        fmt::format("step {:<6} {} predicted ({}), imbalance {:.4f}{}\n", i + 1,
                    seconds(step.predicted_ns), run.cost_name, step.imbalance, groups_text(step));
  }
  const ExpectedMemory& memory = run.memory;
  text += fmt::format(
      "memory of a device\n  weights     {}\n  gradients   {}\n  optimizer   {}\n  activations {}\n"
      "  working set {}\n  context     {}\n  reserve     {}\n  expected    {}\n",
      gib(memory.weights), gib(memory.gradients), gib(memory.optimizer), gib(memory.activations),
      gib(memory.working), gib(memory.context), gib(memory.reserve), gib(memory.total()));
  if (run.hardware) {
    text += fmt::format("  {:<11} {}: {}\n", run.hardware->name, gib(run.hardware->hbm_bytes),
                        run.fits() ? "it fits" : "too small");
  } else {
    text += "  the device is not known; engine.hardware names it\n";
  }
  return text;
}

}  // namespace isochron
