#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "isochron/core/json.h"
#include "isochron/engine/execute/engine.h"
#include "isochron/engine/metrics/step_log.h"
#include "isochron/engine/metrics/step_numbers.h"
#include "isochron/engine/train/trace_file.h"

namespace isochron {

// Sums over the whole run, which a resumed one continues.
struct RunCounters {
  std::int64_t total_tokens = 0;
  std::int64_t skipped_updates = 0;  // the gradient was not finite, or nothing was trained

  bool operator==(const RunCounters&) const = default;
};

// What a run leaves behind of every update: numbers, the plan, what was measured. Plans are written
// by rank 0, traces by every rank.
class RunRecorder {
 public:
  RunRecorder(std::filesystem::path run_folder, const Place& place, Machine machine,
              std::int64_t last_step, const RunCounters& counters, StepLog& log);

  [[nodiscard]] const RunCounters& counters() const { return counters_; }

  // `index`: which update of its step; `begin`: when it began.
  void add(std::int64_t step, std::size_t index, std::chrono::system_clock::time_point begin,
           const StepPlan& plan, const StepResult& result, const Tracer& tracer);
  // A step without an update, because there is nothing to train on.
  void add_nothing(std::int64_t step);

 private:
  void add_counters();

  std::filesystem::path run_folder_;
  bool writes_plans_;
  Machine machine_;
  RunCounters counters_;
  StepLog& log_;
  TraceFile trace_;
};

}  // namespace isochron
