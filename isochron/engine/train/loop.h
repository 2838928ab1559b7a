#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "isochron/engine/checkpoint/checkpoints.h"
#include "isochron/engine/metrics/step_log.h"
#include "isochron/engine/train/horizon.h"
#include "isochron/engine/train/learning_rate.h"
#include "isochron/engine/train/run_recorder.h"
#include "isochron/engine/train/task.h"

namespace isochron {

// All that a run consists of beside its task.
struct TrainingRun {
  Engine& engine;
  Checkpoints& checkpoints;
  StepLog& log;
  RunRecorder& record;
  const Horizon& horizon;
  const LearningRate& learning_rate;
  std::function<bool()> is_stop_wanted;  // by whoever started this process
  // What a checkpoint says beside weights and optimizer: counters, and what the task says.
  std::function<std::string(const Json& task_state)> extra;
};

// Trains the steps `first_step` to the end of the horizon. At the last one everything is due, so
// that a run ends validated and saved; it ends early, saved, if any rank is asked to stop.
template <Task T>
void train(T& task, const TrainingRun& run, std::int64_t first_step) {
  Engine& engine = run.engine;
  for (std::int64_t step = first_step; step <= run.horizon.num_steps; ++step) {
    if (run.is_stop_wanted()) engine.ask_to_stop();
    const std::vector<Update> updates = task.updates(step, engine);
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const StepPlan plan = engine.plan(updates[i].rows.batch, Pass::train);
      const auto begin = std::chrono::system_clock::now();
      const StepResult result =
          engine.train(step, plan, updates[i], run.learning_rate.of_step(step));
      run.record.add(step, i, begin, plan, result, engine.tracer());
    }
    if (updates.empty()) run.record.add_nothing(step);
    run.log.add({{"train/lr", run.learning_rate.of_step(step + 1)},
                 {"train/epoch", static_cast<double>(run.horizon.epoch_of(step))}});
    if (run.horizon.is_test_due(step)) run.log.add(task.validate(step, engine));
    run.log.write(step);
    if (run.horizon.is_epoch_end(step) && run.horizon.left_out_rows > 0) {
      run.log.note(fmt::format("epoch {} is over: {} rows did not fill a batch and were left out",
                               run.horizon.epoch_of(step), run.horizon.left_out_rows));
    }
    const bool is_stopping = engine.stop_agreed();
    if (run.horizon.is_save_due(step) || is_stopping) {
      run.checkpoints.save(step, engine, run.extra(task.state(step)));
    }
    if (is_stopping) {
      run.log.note(fmt::format("asked to stop: saved step {}", step));
      break;
    }
  }
  run.checkpoints.finish();
}

}  // namespace isochron
