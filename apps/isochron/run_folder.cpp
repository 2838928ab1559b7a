#include "apps/isochron/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>

#include "apps/isochron/input_file.h"
#include "apps/isochron/run_metrics.h"
#include "apps/isochron/run_trace.h"
#include "isochron/check/check.h"
#include "isochron/core/field_text.h"
#include "isochron/core/require.h"

namespace isochron {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t max_rank = (1 << 20) - 1;
constexpr std::size_t max_named = 3;  // files with a trouble that are named, of the same kind

// The files of a folder that are called PREFIX N .json, by N.
std::map<std::int64_t, fs::path> numbered_files(const fs::path& folder, std::string_view prefix,
                                                std::int64_t highest) {
  std::map<std::int64_t, fs::path> files;
  if (!fs::is_directory(folder)) return files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix) || entry.path().extension() != ".json") continue;
    const auto number = find_integer(entry.path().stem().string().substr(prefix.size()));
    if (number && *number >= 0 && *number <= highest) files[*number] = entry.path();
  }
  return files;
}

// At most `count` of them, spread evenly from the first to the last.
std::set<std::int64_t> even_spread(const std::vector<std::int64_t>& all, std::size_t count) {
  if (all.size() <= count) return {all.begin(), all.end()};
  std::set<std::int64_t> spread = {all.front()};
  for (std::size_t i = 1; i < count; ++i) spread.insert(all[i * (all.size() - 1) / (count - 1)]);
  return spread;
}

// Names the first few files that could not be used, and counts the others.
void add_file_notes(std::vector<std::string> troubles, std::string_view what, RunRecord& run) {
  const std::size_t named = std::min(troubles.size(), max_named);
  for (std::size_t i = 0; i < named; ++i) run.notes.push_back(troubles[i]);
  if (troubles.size() > named) {
    run.notes.push_back(fmt::format("{} more {}.", troubles.size() - named, what));
  }
}

void read_plans(const fs::path& folder, std::size_t max_steps, const CountBytes& count_bytes,
                std::map<std::int64_t, RunStep>& steps, RunRecord& run) {
  const auto files = numbered_files(folder / "plans", "step_", std::int64_t{1} << 53);
  if (files.empty())
    run.notes.emplace_back("plans/ has no step_N.json: nothing can be compared with a plan.");
  std::vector<std::int64_t> all;
  for (const auto& [step, path] : files) all.push_back(step);
  std::vector<std::string> troubles;
  for (const std::int64_t step : even_spread(all, max_steps)) {
    const std::string name = fmt::format("plans/step_{}.json", step);
    try {
      const std::string document = read_file(files.at(step).string());
      if (count_bytes) count_bytes(document.size());
      StepPlan plan = step_plan_from_json(document, PlanHash::ignored);
      if (const auto violation = find_violation(document)) {
        troubles.push_back(fmt::format("{} is invalid: {}", name, *violation));
      } else {
        steps[step].plan = std::move(plan);
      }
    } catch (const std::exception& error) {  // unreadable, or still being written
      troubles.push_back(fmt::format("{} cannot be used: {}", name, error.what()));
    }
  }
  add_file_notes(std::move(troubles), "plans cannot be used", run);
  if (all.size() > max_steps) {
    run.notes.push_back(
        fmt::format("{} of {} plans were read, spread evenly.", max_steps, all.size()));
  }
}

void read_traces(const fs::path& folder, std::size_t max_steps, const CountBytes& count_bytes,
                 std::map<std::int64_t, RunStep>& steps, RunRecord& run) {
  const auto files = numbered_files(folder / "trace", "rank_", max_rank);
  if (files.empty()) run.notes.emplace_back("trace/ has no rank_R.json: no timeline was measured.");
  // Steps with a plan, then an even spread of those with a metric; without either all, up to a
  // limit.
  std::set<std::int64_t> wanted;
  for (const auto& [step, each] : steps) wanted.insert(step);
  if (!run.metrics.empty() && wanted.size() < max_steps) {
    const auto longest = std::max_element(
        run.metrics.begin(), run.metrics.end(),
        [](const auto& a, const auto& b) { return a.steps.size() < b.steps.size(); });
    wanted.merge(even_spread(longest->steps, max_steps - wanted.size()));
  }
  const bool is_open = wanted.empty();
  const auto is_wanted = [&](std::int64_t step) {
    if (wanted.contains(step)) return true;
    return is_open && wanted.size() < max_steps && wanted.insert(step).second;
  };
  std::vector<std::string> troubles;
  for (const auto& [rank, path] : files) {
    std::ifstream stream(path, std::ios::binary);
    const std::string name = fmt::format("trace/rank_{}.json", rank);
    if (!stream) {
      troubles.push_back(fmt::format("{} cannot be opened.", name));
      continue;
    }
    RankTrace trace = read_trace(stream, name, static_cast<std::int32_t>(rank), is_wanted,
                                 run.scope_names, count_bytes);
    for (std::string& note : trace.notes) troubles.push_back(std::move(note));
    for (auto& [step, scopes] : trace.scopes_of_step) {
      auto& all = steps[step].scopes;
      all.insert(all.end(), scopes.begin(), scopes.end());
    }
  }
  add_file_notes(std::move(troubles), "traces are incomplete or damaged", run);
  const auto expected = static_cast<std::int64_t>(files.empty() ? 0 : files.rbegin()->first + 1);
  if (static_cast<std::int64_t>(files.size()) < expected) {
    run.notes.push_back(fmt::format("trace/ holds {} of {} ranks.", files.size(), expected));
  }
}

}  // namespace

bool is_folder(const std::string& path) { return fs::is_directory(path); }

RunRecord read_run_folder(const std::string& path, std::size_t max_steps,
                          const CountBytes& count_bytes) {
  const fs::path folder = fs::path(path);
  const bool has_any = fs::exists(folder / "config.yaml") || fs::exists(folder / "metrics.jsonl") ||
                       fs::exists(folder / "plans") || fs::exists(folder / "trace");
  require(has_any, "report",
          "the folder \"{}\" is no run: it must hold config.yaml, metrics.jsonl, plans or trace",
          path);
  RunRecord run;
  const fs::path whole = fs::absolute(folder).lexically_normal();
  run.name = (whole.has_filename() ? whole : whole.parent_path()).filename().string();
  if (fs::exists(folder / "config.yaml")) {
    run.config = read_file((folder / "config.yaml").string());
  } else {
    run.notes.emplace_back("config.yaml is missing.");
  }
  std::ifstream metrics(folder / "metrics.jsonl", std::ios::binary);
  if (metrics) {
    RunMetrics read = read_metrics(metrics, "metrics.jsonl", count_bytes);
    run.metrics = std::move(read.curves);
    for (std::string& note : read.notes) run.notes.push_back(std::move(note));
    if (run.metrics.empty()) run.notes.emplace_back("metrics.jsonl holds no step yet.");
  } else {
    run.notes.emplace_back("metrics.jsonl is missing: there are no curves.");
  }
  std::map<std::int64_t, RunStep> steps;
  read_plans(folder, max_steps, count_bytes, steps, run);
  read_traces(folder, max_steps, count_bytes, steps, run);
  for (auto& [number, step] : steps) {
    step.step = number;
    run.steps.push_back(std::move(step));
  }
  return run;
}

std::int64_t run_bytes(const std::vector<std::string>& paths) {
  std::int64_t bytes = 0;
  const auto add = [&](const fs::path& file) {
    if (fs::is_regular_file(file)) bytes += static_cast<std::int64_t>(fs::file_size(file));
  };
  for (const std::string& path : paths) {
    add(fs::path(path) / "metrics.jsonl");
    for (const char* folder : {"plans", "trace"}) {
      if (!fs::is_directory(fs::path(path) / folder)) continue;
      for (const auto& entry : fs::directory_iterator(fs::path(path) / folder)) add(entry.path());
    }
  }
  return bytes;
}

std::vector<RunRecord> read_run_folders(const std::vector<std::string>& paths,
                                        const CountBytes& count_bytes) {
  std::vector<RunRecord> runs;
  std::map<std::string, std::size_t> count_of;
  for (const std::string& path : paths) {
    runs.push_back(read_run_folder(path, max_run_steps, count_bytes));
    ++count_of[runs.back().name];
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (count_of[runs[i].name] > 1) runs[i].name = paths[i];
  }
  return runs;
}

}  // namespace isochron
