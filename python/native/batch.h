#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <string_view>

#include "isochron/core/batch.h"

namespace isochron::python {

namespace nb = nanobind;

// A batch from arguments: `lengths` is a Batch, or whole numbers with `extra_cost_ns` and `groups`
// (integers or texts, equal for sequences that belong together) beside them, each of which may be
// None. Throws std::invalid_argument("[where] ..") for numbers that are none, lists of another size
// and a Batch with something beside it. Lengths themselves are checked by what plans them.
[[nodiscard]] Batch batch_of(nb::handle lengths, nb::handle extra_cost_ns, nb::handle groups,
                             std::string_view where);

// The groups of `count` sequences, which have none yet; nothing to do for None.
void set_groups(Batch& batch, nb::handle groups, std::size_t count, std::string_view where);

// The parameters of the above in a signature.
inline constexpr std::string_view lengths_parameter =
    "lengths: isochron.arrays.IntegerArray | Batch";
inline constexpr std::string_view batch_parameters =
    "extra_cost_ns: isochron.arrays.IntegerArray | None = None, "
    "groups: collections.abc.Sequence[int] | collections.abc.Sequence[str] | "
    "isochron.arrays.IntegerArray | None = None";
inline constexpr std::string_view batch_lines =
    "\n\nArgs:\n"
    "    lengths: tokens of each sequence, or a Batch\n"
    "    extra_cost_ns: of each sequence, on top of what its length costs\n"
    "    groups: of each sequence an integer or a text, equal where sequences share a prompt";

}  // namespace isochron::python
