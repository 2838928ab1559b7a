// Prints docs/options.md: every option of every verb, out of the lists that the program itself
// reads. `make docs` writes the file, a test compares it.

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "isochron/balance/balance.h"
#include "isochron/core/field_text.h"
#include "isochron/pack/pack.h"
#include "isochron/step/plan_options.h"

namespace isochron {
namespace {

// A cell of a table: a bar would end it.
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

template <class Options>
void print_options(std::string_view verb) {
  fmt::print("\n## isochron {}\n\n", verb);
  fmt::print("| option | value | default | meaning |\n|---|---|---|---|\n");
  Options::describe([]<class Owner, class T>(const Field<Owner, T>& field) {
    fmt::print("| `{}` | {} | {} | {} |\n", flag_of(field), cell(type_text(field)),
               cell(value_text(Owner{}.*field.member)), cell(field.help));
  });
}

}  // namespace
}  // namespace isochron

int main() {
  fmt::print(
      "# Options\n\nWritten by `make docs`. An option is a flag of the verb, a field of `options` "
      "in "
      "its JSON\n(`--min-count` is `min_count`, `--no-balance` sets `balance` to false) and a "
      "member of its options struct.\n");
  isochron::print_options<isochron::BalanceOptions>("balance");
  isochron::print_options<isochron::PackOptions>("pack");
  isochron::print_options<isochron::PlanOptions>("plan");
}
