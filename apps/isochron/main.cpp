// The command line: reads the flags, runs one verb, and turns what it throws into one line on
// standard error and an exit code.

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/isochron/output_file.h"
#include "apps/isochron/verb.h"
#include "isochron/core/field_text.h"

namespace isochron {
namespace {

// Messages may quote arguments and files: they stay one line and cannot steer a terminal.
ExitCode report(std::string message, ExitCode code) {
  std::replace_if(
      message.begin(), message.end(),
      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, ' ');
  fmt::print(stderr, "isochron: {}\n", message);
  return code;
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// The flag whose meaning begins with this word, or else the one that is spelled most like it.
std::string nearest_flag(const std::string& name, const CLI::App& app) {
  const std::string meaning = name.substr(2) + " ";
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_description().starts_with(meaning) && !option->get_lnames().empty()) {
      return "--" + option->get_lnames().front();
    }
  }
  return nearest_name(name, flag_names(app));
}

// A mistyped flag or verb is named before the parser says that another one is missing.
void require_known_words(const std::vector<std::string>& arguments, const CLI::App& program,
                         const std::vector<Verb>& verbs) {
  std::vector<std::string> verb_names;
  for (const Verb& verb : verbs) verb_names.push_back(verb.flags->get_name());
  require(!arguments.empty(), "command line", "a verb is missing, must be one of {}",
          fmt::join(verb_names, ", "));
  const CLI::App* scope = &program;
  if (!arguments[0].starts_with('-')) {
    const auto found = std::find(verb_names.begin(), verb_names.end(), arguments[0]);
    if (found == verb_names.end()) {
      reject("command line", "unknown verb \"{}\", did you mean \"{}\"?", arguments[0],
             nearest_name(arguments[0], verb_names));
    }
    scope = verbs[static_cast<std::size_t>(found - verb_names.begin())].flags;
  }
  const std::vector<std::string> known = flag_names(*scope);
  for (const std::string& argument : arguments) {
    if (!argument.starts_with("--") || argument.size() == 2) continue;
    const std::string name = argument.substr(0, argument.find('='));
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      reject(scope == &program ? "command line" : scope->get_name(),
             "unknown flag {}, did you mean {}?", name, nearest_flag(name, *scope));
    }
  }
}

ExitCode run(const std::vector<std::string>& arguments) {
  CLI::App program(
      "isochron: every rank finishes at the same time.\n"
      "Plans which rank runs which sequences of a batch, proves how far that is from the best, "
      "and trains by it.");
  program.name("isochron");
  program.set_version_flag("--version", std::string("isochron ") + ISOCHRON_VERSION);
  program.footer(
      "Examples:\n"
      "  isochron balance --lengths builtin:1024 --ranks 16\n"
      "  isochron pack --lengths lengths.txt --capacity 16384\n"
      "  isochron plan --lengths lengths.txt --ranks 64 --capacity 16384 --context dynamic\n"
      "  isochron check result.json\n"
      "  isochron report plan.json\n"
      "  isochron train recipe.yaml --nproc 2\n"
      "Help of a verb: isochron balance --help\n"
      "Exit: 0 done, 1 invalid, infeasible or unknown, 2 bad input, 3 a file or the machine "
      "failed");
  program.get_formatter()->column_width(42);  // of the longest flag and its values
  program.require_subcommand(1);
  const std::vector<Verb> verbs = {add_balance(program), add_pack(program),     add_plan(program),
                                   add_check(program),   add_simulate(program), add_report(program),
                                   add_train(program)};
  require_known_words(arguments, program, verbs);

  const std::string where = arguments[0].starts_with('-') ? "command line" : arguments[0];
  try {
    program.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    const auto verb = program.get_subcommands();
    print(verb.empty() ? program.help() : verb[0]->help("isochron"));
    return exit_done;
  } catch (const CLI::CallForVersion& version) {
    print(std::string(version.what()) + "\n");
    return exit_done;
  } catch (const CLI::ParseError& error) {
    reject(where, "{}", error.what());
  }
  for (const Verb& verb : verbs) {
    if (!verb.flags->parsed()) continue;
    require_separate(verb.files(), where);
    return verb.run();
  }
  return exit_bad_input;  // the parser demands a verb
}

}  // namespace
}  // namespace isochron

int main(int argc, char** argv) {
  using namespace isochron;
  try {
    return run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::invalid_argument& error) {
    return report(error.what(), exit_bad_input);
  } catch (const std::bad_alloc&) {
    return report("[memory] not enough memory", exit_world_failed);
  } catch (const std::exception& error) {
    return report(error.what(), exit_world_failed);
  }
}
