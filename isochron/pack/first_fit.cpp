// First-fit decreasing: the start that pack() improves on and is never worse than.
//
// Longest first, each sequence goes to the first micro-batch that has room. A tree of maxima
// finds that one in O(log n): go right only where the left half has no room. At most 11/9 of
// the optimum plus a constant (Johnson et al., 1974).
//
//   largest room         16
//                    5        16        length 4: left (5 >= 4), then right (2 < 4)
//   room           2   5    16  16

#include "isochron/pack/first_fit.h"

#include <algorithm>
#include <bit>

namespace isochron {

namespace {

struct Room {
  Tokens tokens;
  std::int64_t size;
};

class RoomTree {
 public:
  RoomTree(std::size_t num_bins, Room room)
      : leaves_(std::bit_ceil(std::max<std::size_t>(num_bins, 1))), rooms_(2 * leaves_, room) {}

  // The first bin with that much room; with both kinds limited a subtree may promise what no
  // single bin of it keeps, so that the search goes on to its right.
  [[nodiscard]] std::size_t first_with(Room wanted) const {
    std::size_t node = 1;
    while (true) {
      const bool has_room =
          rooms_[node].tokens >= wanted.tokens && rooms_[node].size >= wanted.size;
      if (has_room && node >= leaves_) return node - leaves_;
      if (has_room) {
        node = 2 * node;
      } else {
        while (node % 2 == 1) node /= 2;  // from a right child up to where a left one begins
        node += 1;
      }
    }
  }

  void take(std::size_t bin, Room used) {
    std::size_t node = leaves_ + bin;
    rooms_[node].tokens -= used.tokens;
    rooms_[node].size -= used.size;
    for (node /= 2; node >= 1; node /= 2) {
      const Room& left = rooms_[2 * node];
      const Room& right = rooms_[2 * node + 1];
      rooms_[node] = {std::max(left.tokens, right.tokens), std::max(left.size, right.size)};
    }
  }

 private:
  std::size_t leaves_;
  std::vector<Room> rooms_;  // node i has the children 2i and 2i+1
};

}  // namespace

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
