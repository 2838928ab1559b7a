#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

namespace isochron {

// Integers from `least` to `most`.
struct IntegerRange {
  std::int64_t least = std::numeric_limits<std::int64_t>::min();
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
};

// One option: its key (JSON and YAML as it is, `--min-count` on the command line), the member that
// holds it, and what it means. An options struct lists its fields once:
//
//   template <class Row> static void describe(Row row) {
//     row(Field{"min_count", &PackOptions::min_count, "at least this many micro-batches"});
//   }
//
// and JSON, command line, help and documentation visit that list. A member is a bool, an integer,
// a double, a string, a named enumeration, a list or an optional of one of these. Where only some
// values of an enumeration or a string make sense, `values` names them: "none|rank". The integers
// that make sense are in `range`, for messages: what a combination of options allows, their owner
// says.
template <class Owner, class T>
struct Field {
  std::string_view key;
  T Owner::*member;
  std::string_view help;
  std::string_view values = {};
  IntegerRange range = {};
};
template <class Owner, class T>
Field(const char*, T Owner::*, const char*) -> Field<Owner, T>;
template <class Owner, class T>
Field(const char*, T Owner::*, const char*, const char*) -> Field<Owner, T>;
template <class Owner, class T>
Field(const char*, T Owner::*, const char*, const char*, IntegerRange) -> Field<Owner, T>;

}  // namespace isochron
