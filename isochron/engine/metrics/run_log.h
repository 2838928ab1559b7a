#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

#include "isochron/engine/metrics/step_lines.h"
#include "isochron/engine/metrics/step_log.h"

namespace isochron {

struct RunLogOptions {
  std::int64_t first_step = 1;
  std::int64_t num_steps = 0;
  bool console = true;      // a line per step
  bool is_terminal = true;  // with a bar and the time that is left
};

// What rank 0 writes: metrics.jsonl, a line {"step": N, "data": {name: number}} per step, without
// numbers that are not finite; and lines for people.
class RunLog : public StepLog {
 public:
  using Write = std::function<void(std::string_view)>;
  using Clock = std::function<std::chrono::duration<double>()>;  // since any fixed moment

  // Lines of metrics.jsonl from first_step on, of an earlier run, are cut.
  RunLog(const std::filesystem::path& run_folder, const RunLogOptions& options, Write write,
         Clock clock);

  void note(std::string_view line) override;

 private:
  void write_numbers(std::int64_t step, const Numbers& numbers) override;

  RunLogOptions options_;
  Write write_;
  Clock clock_;
  std::chrono::duration<double> start_;
  StepLines lines_;
};

// "1:02:03", "2:03"
[[nodiscard]] std::string duration_text(double seconds);

}  // namespace isochron
