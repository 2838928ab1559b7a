#include "isochron/check/check.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/isochron/input_file.h"
#include "apps/isochron/option_flags.h"
#include "apps/isochron/output_file.h"
#include "apps/isochron/plan_file.h"
#include "apps/isochron/verb.h"
#include "isochron/step/step_plan.h"

namespace isochron {

namespace {

struct CheckArguments {
  std::string result;
  std::string lengths;
};

// The plans of a data set, one per line, each of the batch that follows the one before.
std::optional<std::string> find_line_violation(const std::vector<std::string>& lines,
                                               const Batch* expected) {
  std::size_t num_rows = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const StepPlan plan = step_plan_from_json(lines[i]);
    if (auto violation = find_violation(lines[i])) {
      return fmt::format("line {}: {}", i + 1, *violation);
    }
    if (plan.first_sequence != static_cast<std::int64_t>(num_rows)) {
      return fmt::format("line {}: first_sequence is {}, the lines before have {} sequences", i + 1,
                         plan.first_sequence, num_rows);
    }
    const std::size_t size = plan.batch.lengths.size();
    if (expected != nullptr && num_rows + size <= expected->lengths.size() &&
        plan.batch != cut_batch(*expected, num_rows, size)) {
      return fmt::format("line {}: the plan is about other sequences than the expected batch",
                         i + 1);
    }
    num_rows += size;
  }
  if (expected != nullptr && num_rows != expected->lengths.size()) {
    return fmt::format("the plans are about {} sequences, the expected batch has {}", num_rows,
                       expected->lengths.size());
  }
  return std::nullopt;
}

ExitCode run_check(const CheckArguments& arguments) {
  const std::string text = read_file(arguments.result);
  const std::vector<std::string> lines = split_plans(text, "check");
  Batch batch;
  if (!arguments.lengths.empty()) batch = read_batch(arguments.lengths);
  const Batch* expected = arguments.lengths.empty() ? nullptr : &batch;
  const auto violation =
      lines.size() == 1 ? find_violation(text, expected) : find_line_violation(lines, expected);
  print(violation.value_or("valid") + "\n");
  return violation ? exit_no_answer : exit_done;
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
      "Prints \"valid\", or the first violation in words (exit 1).\n\nExamples:\n"
      "  isochron check result.json\n"
      "  isochron check result.json --lengths lengths.txt\n"
      "  isochron balance --lengths lengths.txt --ranks 8 --json - | isochron check -");
  return {.flags = flags, .run = [arguments] { return run_check(*arguments); }};
}

}  // namespace isochron
