#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "isochron/core/units.h"

namespace isochron {

// What a bin still takes.
struct Room {
  Tokens tokens = 0;
  std::int64_t size = 0;  // sequences
};

// Bins of equal room, and the first of them that takes something: a tree of maxima, so that both
// operations are logarithmic where one kind of room decides.
//
//   largest room         16
//                    5        16        length 4: left (5 >= 4), then right (2 < 4)
//   room           2   5    16  16
class RoomTree {
 public:
  RoomTree(std::size_t num_bins, Room room)
      : leaves_(std::bit_ceil(std::max<std::size_t>(num_bins, 1))), rooms_(2 * leaves_, room) {}

  // The first bin with that much room, which some bin has. With both kinds limited a subtree may
  // promise what no single bin of it keeps; the search then goes on to its right.
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

}  // namespace isochron
