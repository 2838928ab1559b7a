#include "isochron/check/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/isochron/input_file.h"
#include "apps/isochron/option_flags.h"
#include "apps/isochron/output_file.h"
#include "apps/isochron/plan_file.h"
#include "apps/isochron/verb.h"
#include "isochron/plan/plan.h"
#include "isochron/step/step_plan.h"

namespace isochron {

namespace {

struct CheckArguments {
  std::string result;
  std::string lengths;
};

// A bound above what the planner proves when it is asked again. Nobody else can prove it; but a
// planner of another version may know more, and so it breaks no rule.
std::optional<std::string> find_unproven_bound(const StepPlan& plan) {
  if (!plan.options.balance) return std::nullopt;  // the batch as it is dealt is the only plan
  const StepPlan again = plan_step(plan.batch, plan.topology, plan.cost, plan.options);
  const Nanoseconds proven = again.lower_bound_ns;
  const bool has_answer = !again.microbatches.empty();
  if (!has_answer || plan.lower_bound_ns <= proven) return std::nullopt;
  return fmt::format("lower_bound_ns is {}, this version proves no more than {}",
                     plan.lower_bound_ns, proven);
}

// What is wrong with a result. What cannot be judged is said beside it.
std::vector<std::string> findings_of(const std::string& document, const Batch* expected,
                                     std::string_view place = "") {
  Findings findings = find_violations(document, expected);
  if (findings.has_places && findings.violations.empty()) {
    const auto unproven = find_unproven_bound(step_plan_from_json(document, PlanHash::ignored));
    if (unproven) fmt::print(stderr, "isochron: [check] {}{}\n", place, *unproven);
  }
  return std::move(findings.violations);
}

// The plans of a data set, one per line, each of the batch that follows the one before.
std::vector<std::string> findings_of_lines(const std::vector<std::string>& lines,
                                           const Batch* expected) {
  std::vector<std::string> findings;
  std::size_t num_rows = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string place = fmt::format("line {}: ", i + 1);
    const auto add = [&](std::string_view finding) {
      findings.push_back(fmt::format("{}{}", place, finding));
    };
    const StepPlan plan = step_plan_from_json(lines[i], PlanHash::ignored);
    for (const std::string& finding : findings_of(lines[i], nullptr, place)) add(finding);
    if (plan.first_sequence != static_cast<std::int64_t>(num_rows)) {
      add(fmt::format("first_sequence is {}, the lines before have {} sequences",
                      plan.first_sequence, num_rows));
    }
    const std::size_t size = plan.batch.lengths.size();
    if (expected != nullptr && num_rows + size <= expected->lengths.size() &&
        plan.batch != cut_batch(*expected, num_rows, size)) {
      add("the plan is about other sequences than the expected batch");
    }
    num_rows += size;
  }
  if (expected != nullptr && num_rows != expected->lengths.size()) {
    findings.push_back(fmt::format("the plans are about {} sequences, the expected batch has {}",
                                   num_rows, expected->lengths.size()));
  }
  return findings;
}

ExitCode run_check(const CheckArguments& arguments) {
  const std::string text = read_file(arguments.result);
  const std::vector<std::string> lines = split_plans(text, "check");
  Batch batch;
  if (!arguments.lengths.empty()) batch = read_batch(arguments.lengths);
  const Batch* expected = arguments.lengths.empty() ? nullptr : &batch;
  const std::vector<std::string> findings =
      lines.size() == 1 ? findings_of(text, expected) : findings_of_lines(lines, expected);
  print(findings.empty() ? "valid\n" : fmt::format("{}\n", fmt::join(findings, "\n")));
  return findings.empty() ? exit_done : exit_no_answer;
}

}  // namespace

Verb add_check(CLI::App& program) {
  CLI::App* flags = program.add_subcommand(
      "check", "Verify a result of balance, pack or plan, independently of what made it");
  auto arguments = std::make_shared<CheckArguments>();
  add_text_flag(*flags, "result", arguments->result, "file",
                "result in JSON, or one plan per line; - reads standard input")
      ->required();
  flags
      ->add_option("--lengths", arguments->lengths,
                   std::string("also compare with these ") + lengths_help)
      ->type_name("file");
  flags->footer(
      "Prints \"valid\", or what is wrong in words, one finding per line (exit 1). The bound of a\n"
      "valid plan is proven again, which takes as long as planning did; one that this version\n"
      "cannot prove is named on standard error.\n\nExamples:\n"
      "  isochron check result.json\n"
      "  isochron check result.json --lengths lengths.txt\n"
      "  isochron balance --lengths lengths.txt --ranks 8 --json - | isochron check -");
  return {.flags = flags, .run = [arguments] { return run_check(*arguments); }};
}

}  // namespace isochron
