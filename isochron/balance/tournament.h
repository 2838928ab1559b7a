#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "isochron/core/units.h"

namespace isochron {

// Which bin has the smallest key, the lowest number among equals. A new key is replayed up one
// path, without a branch that nobody could predict: a binary heap takes 1.5 times as long for 256
// bins, 3.5 times for 512.
class Tournament {
 public:
  // The key of a bin that is out of it; one more still fits.
  static constexpr Nanoseconds out = std::numeric_limits<Nanoseconds>::max() - 1;

  explicit Tournament(std::span<const Nanoseconds> keys) : leaves_(std::bit_ceil(keys.size())) {
    key_.assign(2 * leaves_, out);
    bin_.assign(2 * leaves_, 0);
    for (std::size_t i = 0; i < leaves_; ++i) bin_[leaves_ + i] = static_cast<std::int32_t>(i);
    std::copy(keys.begin(), keys.end(), key_.begin() + static_cast<std::ptrdiff_t>(leaves_));
    for (std::size_t i = leaves_; i-- > 1;) {
      const std::size_t winner = key_[2 * i + 1] < key_[2 * i] ? 2 * i + 1 : 2 * i;
      key_[i] = key_[winner];
      bin_[i] = bin_[winner];
    }
  }

  [[nodiscard]] bool is_empty() const { return key_[1] == out; }
  [[nodiscard]] Nanoseconds key() const { return key_[1]; }
  [[nodiscard]] std::int32_t bin() const { return bin_[1]; }

  void set(std::int32_t bin, Nanoseconds key) {
    std::size_t i = leaves_ + static_cast<std::size_t>(bin);
    key_[i] = key;
    while (i > 1) {
      const Nanoseconds rival_key = key_[i ^ 1];
      const std::int32_t rival = bin_[i ^ 1];
      // A left rival wins a tie: all of its bins have lower numbers.
      const bool is_beaten = rival_key < key + static_cast<Nanoseconds>(i & 1);
      key = is_beaten ? rival_key : key;
      bin = is_beaten ? rival : bin;
      i /= 2;
      key_[i] = key;
      bin_[i] = bin;
    }
  }

 private:
  std::size_t leaves_;
  std::vector<Nanoseconds> key_;   // of the winner below each node; node 1 is the root
  std::vector<std::int32_t> bin_;  // the winner
};

}  // namespace isochron
