// Prints docs/options.md: every option of every verb, out of the lists that the program itself
// reads. `make docs` writes the file, a test compares it.

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "isochron/balance/balance.h"
#include "isochron/core/field_text.h"
#include "isochron/core/json.h"
#include "isochron/engine/train/recipe.h"
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
    const Owner defaults;
    std::string value = value_text(defaults.*field.member);
    if constexpr (is_optional<T>) {
      if (!(defaults.*field.member)) value.clear();  // the meaning says what happens
    }
    fmt::print("| `{}` | {} | {} | {} |\n", flag_of(field), cell(type_text(field)), cell(value),
               cell(field.help));
  });
}

// The keys of a recipe. The options stand in headers without torch, so that this page does not
// depend on whether the engine is built.
void print_recipe() {
  fmt::print(
      "\n## isochron train\n\nKeys of the recipe and of `key=value`; `training.md` explains "
      "them.\n\n| key | value | default | meaning |\n|---|---|---|---|\n");
  const Recipe defaults;
  for_each_options(defaults, []<class Options>(const Options& options) {
    Options::describe([&]<class Owner, class T>(const Field<Owner, T>& field) {
      const Json value = field_to_json(options.*field.member);
      const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      fmt::print("| `{}` | {}{} | {} | {} |\n", field.key, cell(type_text(field)),
                 is_optional<T> ? " or null" : "", cell(text), cell(field.help));
    });
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
  isochron::print_recipe();
}
