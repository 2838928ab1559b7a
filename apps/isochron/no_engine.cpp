// The verbs that need the engine, in a program that was built without it.

#include <memory>
#include <stdexcept>

#include "apps/isochron/train_arguments.h"
#include "apps/isochron/verb.h"

namespace isochron {

Verb add_train(CLI::App& program) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* flags = add_train_flags(program, *arguments);
  return {.flags = flags, .run = [arguments]() -> ExitCode {
            throw std::runtime_error(
                "[train] this program was built without the engine; `make build` builds it in");
          }};
}

}  // namespace isochron
