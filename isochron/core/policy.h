#pragma once

#include "isochron/core/enum_names.h"

namespace isochron {

// What to do with a sequence that exceeds what its micro-batch may hold.
enum class Oversize {
  error,  // there is no answer, and the sequence is named
  alone,  // a micro-batch of its own, over the capacity, and listed as such
  widen,  // a larger group of ranks; only where groups may grow
};

// What to do when there are fewer sequences than the micro-batches that are asked for.
enum class Short {
  empty,  // micro-batches without a sequence fill the count
  error,  // there is no answer
  drop,   // leave out the shortest suffix of the input after which the count holds
};

// What to do when the rows of a mini-batch do not divide.
enum class Pad {
  uneven,  // run them as they are
  rows,    // add synthetic rows, spread evenly, never counted
  error,   // there is no answer
};

// Where sequences of one prompt have to stay together.
enum class KeepGroups {
  none,
  rank,        // on the same rank
  microbatch,  // in the same micro-batch
};

template <>
struct EnumNames<Oversize> {
  static constexpr std::array<std::pair<Oversize, std::string_view>, 3> values = {
      {{Oversize::error, "error"}, {Oversize::alone, "alone"}, {Oversize::widen, "widen"}}};
};

template <>
struct EnumNames<Short> {
  static constexpr std::array<std::pair<Short, std::string_view>, 3> values = {
      {{Short::empty, "empty"}, {Short::error, "error"}, {Short::drop, "drop"}}};
};

template <>
struct EnumNames<Pad> {
  static constexpr std::array<std::pair<Pad, std::string_view>, 3> values = {
      {{Pad::uneven, "uneven"}, {Pad::rows, "rows"}, {Pad::error, "error"}}};
};

template <>
struct EnumNames<KeepGroups> {
  static constexpr std::array<std::pair<KeepGroups, std::string_view>, 3> values = {
      {{KeepGroups::none, "none"},
       {KeepGroups::rank, "rank"},
       {KeepGroups::microbatch, "microbatch"}}};
};

}  // namespace isochron
