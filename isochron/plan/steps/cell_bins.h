#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "isochron/core/units.h"

namespace isochron {

// Packs what a cell runs into its micro-batches, in as few as it finds.
class CellBins {
 public:
  // At most `capacity` tokens and `max_sequences` a micro-batch; 0: any number of sequences.
  CellBins(Tokens capacity, std::int32_t max_sequences)
      : capacity_(capacity), max_sequences_(max_sequences) {}

  // Items by their tokens and sequences (not asked for if any number may share a micro-batch). How
  // many micro-batches they take; what it took is taken off `work`.
  std::int32_t pack(std::span<const Tokens> tokens, std::span<const std::int32_t> sequences,
                    std::int64_t& work);

  // The micro-batch of each item that was packed last.
  [[nodiscard]] std::span<const std::int32_t> bin_of() const { return bin_of_; }

 private:
  struct Room {
    Tokens tokens = 0;
    std::int32_t sequences = 0;
  };

  // A subset of the items that are left, one for each bin in turn.
  struct Fill {
    std::vector<std::size_t> places = {};
    Tokens room = 0;  // that it leaves
  };

  std::int32_t first_fit(std::span<const Tokens> tokens, std::span<const std::int32_t> sequences);
  bool pack_tightly(std::span<const Tokens> tokens, std::int32_t count, Tokens slack,
                    std::int64_t& work);
  void fill(std::span<const Tokens> tokens, std::size_t from, Tokens room, Tokens enough,
            std::int32_t& nodes);

  Tokens capacity_;
  std::int32_t max_sequences_;
  std::vector<Room> rooms_;
  std::vector<std::int32_t> bin_of_;
  std::vector<std::size_t> left_;  // places of items without a bin, largest first
  Fill trial_;
  Fill best_;
};

}  // namespace isochron
