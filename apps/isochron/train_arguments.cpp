#include "apps/isochron/train_arguments.h"

#include "apps/isochron/option_flags.h"

namespace isochron {

std::vector<std::string> call_of(const TrainArguments& arguments) {
  std::vector<std::string> call = {"train", arguments.recipe};
  call.insert(call.end(), arguments.overrides.begin(), arguments.overrides.end());
  if (arguments.nproc) call.insert(call.end(), {"--nproc", std::to_string(*arguments.nproc)});
  if (arguments.dry_run) call.emplace_back("--dry-run");
  return call;
}

CLI::App* add_train_flags(CLI::App& program, TrainArguments& arguments) {
  CLI::App* flags = program.add_subcommand("train", "Train a model as a recipe says");
  add_text_flag(*flags, "recipe", arguments.recipe, "file", "the recipe, as YAML")->required();
  flags->add_option("overrides", arguments.overrides, "key=value over what the recipe says")
      ->type_name("key=value ..");
  add_value_flag(*flags, "--nproc", arguments.nproc, "start so many ranks on this host [1]",
                 IntegerRange{1});
  flags->add_flag("--dry-run", arguments.dry_run,
                  "plan and count memory, load nothing; exit 1 if the device is too small");
  flags->footer(
      "Examples:\n"
      "  isochron train recipe.yaml --nproc 2\n"
      "  isochron train recipe.yaml data.train_batch_size=64 optim.lr=1e-5\n"
      "  isochron train recipe.yaml --nproc 8 --dry-run\n"
      "  torchrun --no-python --nproc-per-node 8 isochron train recipe.yaml\n"
      "  srun isochron train recipe.yaml\n"
      "All keys: docs/options.md");
  return flags;
}

}  // namespace isochron
