#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace isochron {

struct TrainArguments {
  std::string recipe;
  std::vector<std::string> overrides;
  std::optional<std::int32_t> nproc = {};  // none: one rank, or as many as a launcher started
  bool dry_run = false;
};

// What to call a program with so that it reads these again.
[[nodiscard]] std::vector<std::string> call_of(const TrainArguments& arguments);

// The verb `train` with its flags. `arguments` outlives the parsing.
CLI::App* add_train_flags(CLI::App& program, TrainArguments& arguments);

}  // namespace isochron
