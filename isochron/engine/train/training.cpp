// From a recipe to a run: rows and horizon, then ranks, model and optimizer, then what was saved;
// from there the loop goes on.

#include "isochron/engine/train/training.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "isochron/engine/checkpoint/checkpoint_folder.h"
#include "isochron/engine/checkpoint/checkpoints.h"
#include "isochron/engine/checkpoint/save_agreement.h"
#include "isochron/engine/metrics/run_log.h"
#include "isochron/engine/model/hf_folder.h"
#include "isochron/engine/model/model_config.h"
#include "isochron/engine/train/context_reach.h"
#include "isochron/engine/train/loop.h"
#include "isochron/engine/train/planning.h"
#include "isochron/engine/train/sft_task.h"
#include "isochron/engine/train/training_data.h"

namespace isochron {

namespace {

namespace fs = std::filesystem;

at::Device device_of(const Recipe& recipe, const Place& place) {
  if (recipe.trainer.device == DeviceKind::cpu) return at::kCPU;
  const auto num_devices = at::hasCUDA() ? static_cast<std::int64_t>(at::getNumGPUs()) : 0;
  if (place.local_rank >= num_devices) {
    throw std::runtime_error(fmt::format(
        "[trainer.device] cuda: there are {} devices, local rank {} has none; trainer.device=cpu "
        "trains on the processor",
        num_devices, place.local_rank));
  }
  return {at::kCUDA, static_cast<at::DeviceIndex>(place.local_rank)};
}

void set_up_torch(const ExecutionOptions& engine, const Place& place) {
  at::set_num_threads(threads_of_rank(engine, place.local_size));
  at::manual_seed(static_cast<std::uint64_t>(engine.seed));
  at::globalContext().setDeterministicAlgorithms(engine.full_determinism, /*warn_only=*/false);
}

// Every rank looks at its share of the rows; all of them name the same bad one.
void require_sound_rows(const RowFiles& rows, std::int64_t vocabulary, World& world) {
  const Place& place = world.place();
  const auto bad = rows.find_bad_row(vocabulary, place.rank, place.size);
  // Counted from the end, so that the maximum is the first of all; 0 if there is none.
  at::Tensor first =
      at::full({1}, bad ? rows.size() - *bad : 0, at::kLong).to(world.options().device);
  world.all().all_reduce_max(first, "compare rows");
  const std::int64_t from_end = first.cpu().item<std::int64_t>();
  if (from_end > 0) reject("data", "{}", rows.defect_of(rows.size() - from_end, vocabulary));
}

// All ranks plan with the costs of rank 0, whatever device they found.
CostModel agreed_cost(const Recipe& recipe, const ModelShape& model,
                      const std::optional<Hardware>& hardware, World& world) {
  return cost_model_from_json(SaveAgreement(world, "cost").from_rank_0("agree", [&] {
    return to_json(planning_cost(recipe, model, hardware));
  }));
}

AdamWOptions adamw_options(const OptimOptions& optim) {
  return {.beta1 = optim.betas[0],
          .beta2 = optim.betas[1],
          .weight_decay = optim.weight_decay,
          .clip_grad = optim.clip_grad};
}

// What a checkpoint says beside weights and optimizer.
std::string extra_text(const RunCounters& counters, const Json& task_state, const CostModel& cost) {
  const Json extra = {{"total_tokens", counters.total_tokens},
                      {"skipped_updates", counters.skipped_updates},
                      {"task", task_state},
                      {"cost", parse_json(to_json(cost), "cost")}};
  return extra.dump(1) + "\n";
}

struct RestoredExtra {
  RunCounters counters;
  std::vector<std::string> notices;
};

RestoredExtra restore_extra(const std::string& text, const CostModel& cost, SftTask& task) {
  RestoredExtra restored;
  if (text.empty()) return restored;
  const char* where = "checkpoint";
  const Json extra = parse_json(text, where);
  require_object(extra, where, "extra.json");
  const auto counter = [&](const char* name) {
    return integer_of(member(extra, where, name), where, name, 0, INT64_MAX);
  };
  restored.counters = {.total_tokens = counter("total_tokens"),
                       .skipped_updates = counter("skipped_updates")};
  task.restore(member(extra, where, "task"));
  if (cost_model_from_json(member(extra, where, "cost").dump()) != cost) {
    restored.notices.emplace_back("plans are made with other costs than before the checkpoint");
  }
  return restored;
}

}  // namespace

void run_training(const Recipe& recipe, const Place& place, const Surroundings& surroundings) {
  const ModelConfig config = model_config_from_json(file_text(recipe.model.path + "/config.json"));
  require_executable_exchanges(recipe, config.shape);
  const TrainingData data = open_training_data(recipe, place.size);
  const at::Device device = device_of(recipe, place);
  set_up_torch(recipe.engine, place);

  World world(place, {.timeout = std::chrono::milliseconds(
                          std::llround(recipe.engine.collective_timeout_s * 1000)),
                      .device = device});
  require_sound_rows(data.training, config.shape.vocabulary, world);
  if (data.validation) require_sound_rows(*data.validation, config.shape.vocabulary, world);
  const auto hardware = find_rank_hardware(recipe, place.local_size);
  const CostModel cost = agreed_cost(recipe, config.shape, hardware, world);

  Decoder model = load_decoder(
      recipe.model.path,
      {.device = device,
       .dtype = resolved_precision(recipe) == Precision::bfloat16 ? at::kBFloat16 : at::kFloat,
       .recompute = recipe.engine.recompute});
  Tracer tracer;
  ShardedAdamW optimizer(model.parameters(), world.all(), adamw_options(recipe.optim), &tracer);
  Engine engine(world, model, &optimizer, cost, tracer,
                {.capacity = microbatch_capacity(recipe, data.longest()),
                 .plan = plan_options(recipe, place.size),
                 .head = {.chunk = recipe.engine.loss_chunk},
                 .max_context_groups = recipe.engine.max_context_groups,
                 .dropout = recipe.model.dropout,
                 .seed = recipe.engine.seed});

  const fs::path run_folder = recipe.trainer.default_local_dir;
  SftTask task(data.training, data.validation ? &*data.validation : nullptr,
               {.batch_size = recipe.data.train_batch_size, .seed = recipe.trainer.seed});
  Checkpoints checkpoints(run_folder, recipe.checkpoint, world, recipe.model.path);
  const Resumed resumed = checkpoints.resume(engine);
  const RestoredExtra restored = restore_extra(resumed.extra, cost, task);

  std::unique_ptr<StepLog> log = std::make_unique<StepLog>();
  fs::create_directories(run_folder);
  if (place.rank == 0) {
    replace_file(run_folder / "config.yaml", to_yaml(recipe));
    const auto& loggers = recipe.trainer.logger;
    log = std::make_unique<RunLog>(
        run_folder,
        RunLogOptions{
            .first_step = resumed.step + 1,
            .num_steps = data.horizon.num_steps,
            .console = std::find(loggers.begin(), loggers.end(), "console") != loggers.end(),
            .is_terminal = surroundings.is_terminal},
        surroundings.say, [] {
          return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch());
        });
  }
  log->note(fmt::format("{}: {} parameters, {} rows in batches of {}, steps {} to {} on {} rank{}",
                        recipe.model.path, num_parameters(config.shape), data.training.size(),
                        recipe.data.train_batch_size, resumed.step + 1, data.horizon.num_steps,
                        place.size, place.size == 1 ? "" : "s"));
  if (data.training.num_truncated() > 0) {
    log->note(fmt::format("{} rows are cut to {} tokens", data.training.num_truncated(),
                          recipe.data.max_length));
  }
  for (const std::string& notice : resumed.notices) log->note(notice);
  for (const std::string& notice : restored.notices) log->note(notice);

  RunRecorder record(run_folder, place, {.model = config.shape, .hardware = hardware}, resumed.step,
                     restored.counters, *log);
  const LearningRate learning_rate(recipe.optim, data.horizon.num_steps);
  train(task,
        TrainingRun{.engine = engine,
                    .checkpoints = checkpoints,
                    .log = *log,
                    .record = record,
                    .horizon = data.horizon,
                    .learning_rate = learning_rate,
                    .is_stop_wanted = surroundings.is_stop_wanted,
                    .extra =
                        [&](const Json& task_state) {
                          return extra_text(record.counters(), task_state, cost);
                        }},
        resumed.step + 1);
  if (resumed.step >= data.horizon.num_steps) log->note("all steps were done before");
}

}  // namespace isochron
