#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "isochron/core/field_text.h"

namespace isochron {

// A flag with one value that is read like everywhere else, so that its errors read the same.
// `values`: the only ones that make sense, or empty; `range`: the integers that do.
template <class T>
CLI::Option* add_value_flag(CLI::App& verb, const std::string& flag, T& value,
                            std::string_view help, const IntegerRange& range = {},
                            std::string_view values = {}) {
  const std::string where = verb.get_name();
  return verb
      .add_option_function<std::string>(
          flag,
          [where, flag, range, values, &value](const std::string& text) {
            require_listed(where, flag, text, values);
            value = value_from_text<T>(where, flag, text, range);
          },
          std::string(help))
      ->type_name(values.empty() ? type_text<T>() : std::string(values));
}

// A flag with a text that is not empty: a name or a path.
inline CLI::Option* add_text_flag(CLI::App& verb, const std::string& flag, std::string& value,
                                  const char* type, const std::string& help) {
  return verb.add_option(flag, value, help)->type_name(type)->check([](const std::string& text) {
    return text.empty() ? std::string("must not be empty") : std::string();
  });
}

// Every field of an options struct as a flag: `--min-count integer  at least .. [0]`; a bool is
// `--equal-count` without a value, or `--no-balance` if it is true by default. `options` outlives
// the parsing.
template <class Options>
void add_option_flags(CLI::App& verb, Options& options) {
  Options::describe([&]<class Owner, class T>(const Field<Owner, T>& field) {
    const std::string flag = flag_of(field);
    T& value = options.*field.member;
    if constexpr (std::same_as<T, bool>) {
      verb.add_flag_callback(
          flag, [&value, changed = !value] { value = changed; }, std::string(field.help));
    } else {
      std::string help(field.help);
      bool has_default = true;  // without a value, the help says what happens
      if constexpr (is_optional<T>) has_default = value.has_value();
      if (has_default) help += fmt::format(" [{}]", value_text(value));
      add_value_flag(verb, flag, value, help, field.range, field.values);
    }
  });
}

}  // namespace isochron
