#include "isochron/engine/train/training.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/isochron/input_file.h"
#include "apps/isochron/local_ranks.h"
#include "apps/isochron/option_flags.h"
#include "apps/isochron/output_file.h"
#include "apps/isochron/signals.h"
#include "apps/isochron/train_arguments.h"
#include "apps/isochron/verb.h"
#include "isochron/core/units.h"
#include "isochron/engine/parallel/launcher.h"
#include "isochron/engine/train/dry_run.h"

namespace isochron {

namespace {

std::optional<std::string> find_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

ExitCode run_dry(const Recipe& recipe, const Place& place) {
  const DryRun run = dry_run(recipe, place.size, place.local_size);
  if (place.rank == 0) print(to_text(run));
  return run.fits() ? exit_done : exit_no_answer;
}

ExitCode run_train(const TrainArguments& arguments) {
  Place place = launched_place(find_variable);
  const std::int32_t nproc = arguments.nproc.value_or(1);
  require(nproc >= 1 && nproc <= max_ranks, "train", "--nproc is {}, must be from 1 to {}", nproc,
          max_ranks);
  require(!arguments.nproc || place.size == 1, "train",
          "--nproc is {}, but a launcher has already started {} ranks", nproc, place.size);
  // Read here too, so that what is wrong with it is said once.
  const Recipe recipe = read_recipe(read_file(arguments.recipe), arguments.overrides);
  if (nproc > 1 && !arguments.dry_run) {
    TrainArguments rank = arguments;
    rank.nproc.reset();
    return static_cast<ExitCode>(run_local_ranks(nproc, call_of(rank)));
  }
  if (nproc > 1) place.size = place.local_size = nproc;
  if (arguments.dry_run) return run_dry(recipe, place);
  catch_stop_signal();
  ignore_broken_pipes();
  run_training(recipe, place,
               {.say = [](std::string_view text) { print(text); },
                .is_terminal = ::isatty(STDOUT_FILENO) != 0,
                .is_stop_wanted = is_stop_signalled});
  return exit_done;
}

}  // namespace

Verb add_train(CLI::App& program) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* flags = add_train_flags(program, *arguments);
  return {.flags = flags, .run = [arguments] { return run_train(*arguments); }};
}

}  // namespace isochron
