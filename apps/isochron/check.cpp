#include "isochron/check/check.h"

#include <memory>
#include <string>

#include "apps/isochron/input_file.h"
#include "apps/isochron/option_flags.h"
#include "apps/isochron/output_file.h"
#include "apps/isochron/verb.h"

namespace isochron {

namespace {

struct CheckArguments {
  std::string result;
  std::string lengths;
};

ExitCode run_check(const CheckArguments& arguments) {
  const std::string result = read_file(arguments.result);
  Batch expected;
  if (!arguments.lengths.empty()) expected = read_batch(arguments.lengths);
  const auto violation = find_violation(result, arguments.lengths.empty() ? nullptr : &expected);
  print(violation.value_or("valid") + "\n");
  return violation ? exit_no_answer : exit_done;
}

}  // namespace

Verb add_check(CLI::App& program) {
  CLI::App* flags = program.add_subcommand(
      "check", "Verify a result of balance or pack, independently of what made it");
  auto arguments = std::make_shared<CheckArguments>();
  add_text_flag(*flags, "result", arguments->result, "file",
                "result in JSON; - reads standard input")
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
