#include "isochron/engine/metrics/run_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "isochron/core/json.h"

namespace isochron {

namespace {

constexpr std::int64_t bar_width = 20;

std::optional<std::int64_t> step_of_line(std::string_view line) {
  return parse_json(line, "metrics").at("step").get<std::int64_t>();
}

// What a line for people shows of the numbers, with its name there and its form.
struct Shown {
  const char* name;
  const char* label;
  const char* form;
};

constexpr std::array<Shown, 9> shown_numbers = {{{"train/loss", "loss", "{:.4f}"},
                                                 {"val/loss", "val loss", "{:.4f}"},
                                                 {"train/grad_norm", "grad norm", "{:.3f}"},
                                                 {"train/lr", "lr", "{:.3g}"},
                                                 {"perf/step_ms", "ms", "{:.0f}"},
                                                 {"perf/tokens_per_s", "tokens/s", "{:.0f}"},
                                                 {"perf/straggler_share", "straggler", "{:.3f}"},
                                                 {"train/mfu", "mfu", "{:.3f}"},
                                                 {"train/skipped_updates", "skipped", "{:.0f}"}}};

std::string numbers_text(const Numbers& numbers) {
  std::string text;
  for (const Shown& shown : shown_numbers) {
    const auto found = std::find_if(numbers.begin(), numbers.end(),
                                    [&](const auto& number) { return number.first == shown.name; });
    if (found == numbers.end()) continue;
    if (std::string_view(shown.label) == "skipped" && found->second == 0) continue;
    text +=
        fmt::format("  {} {}", shown.label, fmt::format(fmt::runtime(shown.form), found->second));
  }
  return text;
}

}  // namespace

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::clamp(seconds, 0.0, 1e9)));
  const std::string tail = fmt::format("{:02d}", whole % 60);
  if (whole < 3600) return fmt::format("{}:{}", whole / 60, tail);
  return fmt::format("{}:{:02d}:{}", whole / 3600, whole / 60 % 60, tail);
}

RunLog::RunLog(const std::filesystem::path& run_folder, const RunLogOptions& options, Write write,
               Clock clock)
    : options_(options),
      write_(std::move(write)),
      clock_(std::move(clock)),
      start_(clock_()),
      lines_(run_folder / "metrics.jsonl", options.first_step - 1, step_of_line) {}

void RunLog::note(std::string_view line) { write_(fmt::format("{}\n", line)); }

void RunLog::write_numbers(std::int64_t step, const Numbers& numbers) {
  Json data = Json::object();
  for (const auto& [name, value] : numbers) {
    if (std::isfinite(value)) data[name] = value;
  }
  lines_.write(Json{{"step", step}, {"data", std::move(data)}}.dump() + "\n");
  if (!options_.console) return;

  const std::string progress = fmt::format("step {}/{}", step, options_.num_steps);
  if (!options_.is_terminal) return note(progress + numbers_text(numbers));
  const double per_step =
      (clock_() - start_).count() / static_cast<double>(step - options_.first_step + 1);
  const std::int64_t filled = bar_width * step / options_.num_steps;
  note(fmt::format("[{:<{}}] {}{}  {} left", std::string(static_cast<std::size_t>(filled), '#'),
                   bar_width, progress, numbers_text(numbers),
                   duration_text(per_step * static_cast<double>(options_.num_steps - step))));
}

}  // namespace isochron
