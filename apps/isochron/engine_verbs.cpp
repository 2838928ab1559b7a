// Verbs that need the engine: `isochron-engine`, the same program with torch, takes over.

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/isochron/train_arguments.h"
#include "apps/isochron/verb.h"

namespace isochron {

namespace {

// Becomes the program beside this one; returns only by throwing.
[[noreturn]] void hand_over(std::vector<std::string> call) {
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe").replace_filename("isochron-engine");
  std::string name = "isochron";
  std::vector<char*> argv = {name.data()};
  for (std::string& argument : call) argv.push_back(argument.data());
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  if (errno == ENOENT) {
    throw std::runtime_error(fmt::format(
        "[{}] this program was built without the engine; `make build` builds it", call.front()));
  }
  throw std::runtime_error(fmt::format("[{}] {} cannot be started: {}", call.front(),
                                       program.string(), std::strerror(errno)));
}

}  // namespace

Verb add_train(CLI::App& program) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* flags = add_train_flags(program, *arguments);
  return {.flags = flags, .run = [arguments]() -> ExitCode { hand_over(call_of(*arguments)); }};
}

}  // namespace isochron
