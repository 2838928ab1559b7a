#include "isochron/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "apps/isochron/input_file.h"
#include "apps/isochron/option_flags.h"
#include "apps/isochron/output_file.h"
#include "apps/isochron/plan_file.h"
#include "apps/isochron/verb.h"
#include "isochron/check/check.h"
#include "isochron/plan/baselines.h"

namespace isochron {

namespace {

struct ReportArguments {
  std::vector<std::string> plans;
  std::string output = "report.html";
};

ReportEntry entry_of_file(const std::string& path) {
  ReportEntry entry = {.name = path == "-" ? "standard input" : path, .steps = {}};
  for (const std::string& document : split_plans(read_file(path), "report")) {
    entry.steps.push_back({.plan = step_plan_from_json(document),
                           .violation = find_violation(document).value_or("")});
  }
  return entry;
}

using MakeBaseline = StepPlan (*)(const Batch&, const Topology&, const CostModel&,
                                  const PlanOptions&, Nanoseconds);

// What would be run instead of each plan, through the same checker.
ReportEntry baseline_of(const ReportEntry& planned, const char* name, MakeBaseline make) {
  ReportEntry entry = {.name = name, .steps = {}};
  for (const auto& [plan, violation] : planned.steps) {
    ReportedStep& step = entry.steps.emplace_back();
    step.plan = make(plan.batch, plan.topology, plan.cost, plan.options, plan.lower_bound_ns);
    step.plan.first_sequence = plan.first_sequence;
    step.violation = step.plan.microbatches.empty()
                         ? fmt::format("{} raises: {}", name, step.plan.reason)
                         : find_violation(to_json(step.plan)).value_or("");
  }
  return entry;
}

ExitCode run_report(const ReportArguments& arguments) {
  require(std::count(arguments.plans.begin(), arguments.plans.end(), "-") <= 1, "report",
          "standard input is given more than once, must be once");
  std::vector<ReportEntry> entries;
  if (arguments.plans.size() == 1) {
    ReportEntry planned = entry_of_file(arguments.plans[0]);
    entries.push_back(baseline_of(planned, "naive", naive_plan));
    entries.push_back(baseline_of(planned, "verl 0.9.1", verl_plan));
    entries.push_back(std::move(planned));
  } else {
    for (const std::string& path : arguments.plans) entries.push_back(entry_of_file(path));
  }
  write_output(arguments.output, report_html(entries));
  if (arguments.output == "-") return exit_done;
  std::string text = fmt::format("{}\n", arguments.output);
  for (const auto& [name, steps] : entries) {
    for (const auto& [plan, violation] : steps) {
      if (!violation.empty()) text += fmt::format("{}: invalid: {}\n", name, violation);
    }
  }
  print(text);
  return exit_done;
}

}  // namespace

Verb add_report(CLI::App& program) {
  CLI::App* flags = program.add_subcommand(
      "report", "Draw plans side by side as one HTML file: before and after");
  auto arguments = std::make_shared<ReportArguments>();
  flags
      ->add_option("plans", arguments->plans,
                   "plans in JSON, the first is \"before\"; - reads standard input")
      ->type_name("file")
      ->required();
  add_text_flag(*flags, "-o,--output", arguments->output, "file",
                "the page; - is standard output [report.html]");
  flags->footer(
      "A plan alone stands beside naive packing and verl 0.9.1 on the same lengths. An invalid\n"
      "plan is drawn hatched, with the rule that it breaks. A file with one plan per line is a "
      "page on\n"
      "which the step can be chosen.\n\nExamples:\n"
      "  isochron report plan.json\n"
      "  isochron report static.json dynamic.json -o comparison.html\n"
      "  isochron plan --lengths lengths.txt --ranks 8 --capacity 16384 --json - | isochron report "
      "-");
  return {.flags = flags, .run = [arguments] { return run_report(*arguments); }};
}

}  // namespace isochron
