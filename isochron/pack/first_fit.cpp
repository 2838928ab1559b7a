// First-fit decreasing: the start that pack() improves on and is never worse than.
//
// Longest first, each sequence goes to the first micro-batch that has room. At most 11/9 of the
// optimum plus a constant (Johnson et al., 1974).

#include "isochron/pack/first_fit.h"

#include <algorithm>

#include "isochron/pack/room_tree.h"

namespace isochron {

FirstFit first_fit_decreasing(const Units& units, Tokens capacity, std::int64_t max_size) {
  FirstFit result;
  result.bin_of.resize(units.count());
  RoomTree tree(units.count(), {capacity, max_size});
  for (const std::int32_t id : dearest_first(units.tokens).units) {
    const auto unit = static_cast<std::size_t>(id);
    const Room used{units.tokens_of(unit), units.size_of(unit)};
    const std::size_t bin = tree.first_with(used);
    tree.take(bin, used);
    result.bin_of[unit] = static_cast<std::int32_t>(bin);
    result.num_bins = std::max(result.num_bins, static_cast<std::int32_t>(bin) + 1);
  }
  return result;
}

}  // namespace isochron
