#include "isochron/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/isochron/input_file.h"
#include "apps/isochron/option_flags.h"
#include "apps/isochron/output_file.h"
#include "apps/isochron/plan_file.h"
#include "apps/isochron/progress.h"
#include "apps/isochron/run_folder.h"
#include "apps/isochron/verb.h"
#include "isochron/report/beside_baselines.h"
#include "isochron/report/run_report.h"

namespace isochron {

namespace {

struct ReportArguments {
  std::vector<std::string> inputs;  // plans, or run folders
  std::string output;               // empty: report.html, for a run in its folder
};

std::string output_of(const ReportArguments& arguments) {
  if (!arguments.output.empty()) return arguments.output;
  const auto& inputs = arguments.inputs;
  const bool is_one_run = inputs.size() == 1 && is_folder(inputs[0]);
  return is_one_run ? (std::filesystem::path(inputs[0]) / "report.html").string() : "report.html";
}

ReportEntry entry_of_file(const std::string& path) {
  ReportEntry entry = {.name = path == "-" ? "standard input" : path, .steps = {}};
  const std::string text = read_file(path);
  try {
    for (const std::string& document : split_plans(text, "report")) {
      entry.steps.push_back({.plan = step_plan_from_json(document, PlanHash::ignored),
                             .violation = violation_text(document)});
    }
  } catch (const std::invalid_argument& error) {  // of which of the files?
    throw std::invalid_argument(fmt::format("{}, in {}", error.what(), entry.name));
  }
  return entry;
}

// A line for each invalid step, the first few; the page has all.
std::string invalid_steps_text(const std::vector<ReportEntry>& entries) {
  constexpr std::size_t max_lines = 8;
  std::vector<std::string> lines;
  for (const auto& [name, steps] : entries) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const std::string& violation = steps[i].violation;
      if (violation.empty()) continue;
      const std::string step = steps.size() == 1 ? "" : fmt::format(", step {}", i + 1);
      lines.push_back(fmt::format("{}{}: invalid: {}\n", name, step, violation));
    }
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(lines.size(), max_lines); ++i) text += lines[i];
  if (lines.size() > max_lines) {
    text += fmt::format("and {} more invalid steps\n", lines.size() - max_lines);
  }
  return text;
}

ExitCode report_plans(const std::vector<std::string>& paths, const std::string& output) {
  std::vector<ReportEntry> entries;
  if (paths.size() == 1) {
    entries = beside_baselines(entry_of_file(paths[0]));
  } else {
    for (const std::string& path : paths) entries.push_back(entry_of_file(path));
  }
  write_output(output, report_html(entries));
  if (output == "-") return exit_done;
  print(fmt::format("{}\n{}", output, invalid_steps_text(entries)));
  return exit_done;
}

std::vector<RunRecord> read_with_progress(const std::vector<std::string>& folders) {
  constexpr std::int64_t mb = 1'000'000;
  Progress progress = standard_progress("MB", run_bytes(folders) / mb);
  std::int64_t bytes = 0;
  return read_run_folders(folders, [&](std::size_t more) {
    bytes += static_cast<std::int64_t>(more);
    progress.set_done(bytes / mb);
  });
}

ExitCode report_runs(const std::vector<std::string>& folders, const std::string& output) {
  const std::vector<RunRecord> runs = read_with_progress(folders);
  write_output(output, run_report_html(runs));
  if (output == "-") return exit_done;
  std::string text = fmt::format("{}\n", output);
  for (const RunRecord& run : runs) {
    for (const std::string& note : run.notes) text += fmt::format("{}: {}\n", run.name, note);
  }
  print(text);
  return exit_done;
}

ExitCode run_report(const ReportArguments& arguments) {
  const auto& inputs = arguments.inputs;
  const auto folder = std::find_if(inputs.begin(), inputs.end(), is_folder);
  const auto plan = std::find_if_not(inputs.begin(), inputs.end(), is_folder);
  require(folder == inputs.end() || plan == inputs.end(), "report",
          "\"{}\" is a folder and \"{}\" is not, must be run folders or plans alone",
          folder == inputs.end() ? "" : *folder, plan == inputs.end() ? "" : *plan);
  return folder == inputs.end() ? report_plans(inputs, output_of(arguments))
                                : report_runs(inputs, output_of(arguments));
}

CallFiles files_of(const ReportArguments& arguments) {
  CallFiles files = {.inputs = {}, .outputs = {{.flag = "--output", .path = output_of(arguments)}}};
  for (const std::string& input : arguments.inputs) {
    files.inputs.push_back({.flag = "an input", .path = input});
  }
  return files;
}

}  // namespace

Verb add_report(CLI::App& program) {
  CLI::App* flags = program.add_subcommand(
      "report", "Draw plans, or training runs, side by side as one HTML file: before and after");
  auto arguments = std::make_shared<ReportArguments>();
  flags
      ->add_option(
          "inputs", arguments->inputs,
          "plans in JSON (- reads standard input), or run folders; the first is \"before\"")
      ->type_name("path")
      ->required();
  add_text_flag(*flags, "-o,--output", arguments->output, "file",
                "the page; - is standard output [report.html; of one run RUN/report.html]");
  flags->footer(
      "A plan alone stands beside naive packing and verl 0.9.1 on the same lengths. An invalid\n"
      "plan is drawn hatched, with the rule that it breaks. A file with one plan per line is a "
      "page on\n"
      "which the step can be chosen.\n\n"
      "A run folder shows loss, tokens/s and, step by step, the plan over what was measured. The "
      "run may\n"
      "still be going on. Plans and run folders cannot be mixed.\n\nExamples:\n"
      "  isochron report plan.json\n"
      "  isochron report static.json dynamic.json -o comparison.html\n"
      "  isochron plan --lengths lengths.txt --ranks 8 --capacity 16384 --json - | isochron report "
      "-\n"
      "  isochron report runs/unbalanced runs/balanced -o speedup.html");
  return {.flags = flags,
          .run = [arguments] { return run_report(*arguments); },
          .files = [arguments] { return files_of(*arguments); }};
}

}  // namespace isochron
