#include "isochron/engine/train/run_recorder.h"

#include <fmt/format.h>

#include <fstream>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace isochron {

namespace {

namespace fs = std::filesystem;

fs::path trace_path(const fs::path& run_folder, std::int32_t rank) {
  fs::create_directories(run_folder / "trace");
  return run_folder / "trace" / fmt::format("rank_{}.json", rank);
}

// Whole or not at all, for whoever watches the run.
void write_plan(const fs::path& path, const StepPlan& plan) {
  fs::path temporary = path;
  temporary += ".tmp";
  std::ofstream stream(temporary, std::ios::binary);
  stream << to_json(plan) << std::flush;
  if (!stream) throw std::runtime_error(fmt::format("[{}] cannot be written", temporary.string()));
  fs::rename(temporary, path);
}

}  // namespace

RunRecorder::RunRecorder(fs::path run_folder, const Place& place, Machine machine,
                         std::int64_t last_step, const RunCounters& counters, StepLog& log)
    : run_folder_(std::move(run_folder)),
      writes_plans_(place.rank == 0),
      machine_(std::move(machine)),
      counters_(counters),
      log_(log),
      trace_(trace_path(run_folder_, place.rank), place.rank, last_step) {
  if (writes_plans_) fs::create_directories(run_folder_ / "plans");
}

void RunRecorder::add(std::int64_t step, std::size_t index,
                      std::chrono::system_clock::time_point begin, const StepPlan& plan,
                      const StepResult& result, const Tracer& tracer) {
  trace_.write(step, begin, tracer.scopes());
  if (writes_plans_) {
    const std::string name = index == 0 ? fmt::format("step_{}.json", step)
                                        : fmt::format("step_{}_update_{}.json", step, index);
    write_plan(run_folder_ / "plans" / name, plan);
  }
  counters_.total_tokens +=
      std::accumulate(plan.batch.lengths.begin(), plan.batch.lengths.end(), std::int64_t{0});
  if (result.skipped) {
    ++counters_.skipped_updates;
    log_.note(fmt::format("step {}: the gradient is not finite, no weight was changed", step));
  }
  log_.add(step_numbers(plan, result, machine_));
  add_counters();
}

void RunRecorder::add_nothing(std::int64_t step) {
  ++counters_.skipped_updates;
  log_.note(fmt::format("step {}: the batch has no trained token, no weight was changed", step));
  add_counters();
}

void RunRecorder::add_counters() {
  log_.add({{"train/total_tokens(B)", static_cast<double>(counters_.total_tokens) / 1e9},
            {"train/skipped_updates", static_cast<double>(counters_.skipped_updates)}});
}

}  // namespace isochron
