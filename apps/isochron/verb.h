#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "apps/isochron/call_files.h"

namespace isochron {

// What the program says to whoever started it (DESIGN 5.5).
enum ExitCode : int {
  exit_done = 0,
  exit_no_answer = 1,     // invalid, infeasible or unknown
  exit_bad_input = 2,     // the caller's mistake: std::invalid_argument
  exit_world_failed = 3,  // a missing file, a full disk: any other exception
};

// A verb of the command line: its flags, and what runs once they are read. The files that it writes
// are made sure of before.
struct Verb {
  CLI::App* flags = nullptr;
  std::function<ExitCode()> run;
  std::function<CallFiles()> files = [] { return CallFiles{}; };
};

[[nodiscard]] Verb add_balance(CLI::App& program);
[[nodiscard]] Verb add_pack(CLI::App& program);
[[nodiscard]] Verb add_plan(CLI::App& program);
[[nodiscard]] Verb add_check(CLI::App& program);
[[nodiscard]] Verb add_simulate(CLI::App& program);
[[nodiscard]] Verb add_report(CLI::App& program);
[[nodiscard]] Verb add_train(CLI::App& program);

}  // namespace isochron
