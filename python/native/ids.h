#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "isochron/core/ids.h"
#include "python/native/arrays.h"

// Ids are plain integers in Python.

namespace isochron::python {

namespace nb = nanobind;

template <class Id>
[[nodiscard]] nb::typed<nb::list, int> id_list(std::span<const Id> ids) {
  nb::list list;
  for (const Id id : ids) list.append(id.value());
  return list;
}

[[nodiscard]] inline nb::typed<nb::list, int> id_list(const std::vector<SequenceId>& ids) {
  return id_list(std::span<const SequenceId>(ids));
}

// Ids as numpy has them: an id is its number and nothing else.
template <class Id>
[[nodiscard]] View<std::int32_t> id_view(const std::vector<Id>& ids) {
  static_assert(sizeof(Id) == sizeof(std::int32_t) && std::is_standard_layout_v<Id>);
  static const std::int32_t nothing = 0;
  return View<std::int32_t>(
      ids.empty() ? &nothing : reinterpret_cast<const std::int32_t*>(ids.data()), {ids.size()});
}

using IdLists = nb::typed<nb::list, nb::typed<nb::list, int>>;

[[nodiscard]] inline IdLists id_lists(const std::vector<std::vector<SequenceId>>& lists) {
  nb::list result;
  for (const auto& ids : lists) result.append(id_list(ids));
  return result;
}

// Such lists as an argument. Throws std::invalid_argument for what is none, and for numbers that no
// id can be.
[[nodiscard]] std::vector<std::vector<SequenceId>> id_lists_of(nb::handle lists,
                                                               std::string_view where,
                                                               std::string_view name);

}  // namespace isochron::python
