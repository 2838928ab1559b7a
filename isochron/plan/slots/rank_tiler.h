#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "isochron/plan/problem.h"
#include "isochron/plan/slots/slot_places.h"

namespace isochron {

// What a load takes on groups of each of the sizes of the problem; negative: they do not hold it.
using TimesBySize = std::vector<Nanoseconds>;

// Cuts the ranks into groups, one for each load, that leave none out.
class RankTiler {
 public:
  explicit RankTiler(const Problem& problem);

  // A micro-batch of these items, at the cheapest place of every size. `max_sequences` is not
  // looked at.
  [[nodiscard]] TimesBySize times_of(std::span<const ItemId> items) const;

  // The group of each load, such that the slowest ends as early as is found. Nothing if they do not
  // fill the ranks.
  [[nodiscard]] std::vector<RankRange> find(std::span<const TimesBySize> loads) const;

 private:
  struct Load {
    TimesBySize times = {};  // without the fixed part; empty: not known
    std::vector<Tokens> tokens = {};
  };
  using Places = std::vector<std::size_t>;  // of the size of each load, in the sizes

  [[nodiscard]] const Load& load_of(ItemId item) const;
  [[nodiscard]] Places smallest(std::span<const TimesBySize> loads) const;
  [[nodiscard]] std::int32_t num_idle(const Places& places) const;
  [[nodiscard]] std::size_t next_place(const TimesBySize& load, std::size_t place) const;
  [[nodiscard]] Places widen(std::span<const TimesBySize> loads, Places places) const;
  [[nodiscard]] Places choose(std::span<const TimesBySize> loads, const Places& places) const;
  [[nodiscard]] std::vector<RankRange> ranges(const Places& places) const;

  const Problem& problem_;
  SlotPlaces slot_places_;
  std::vector<std::int32_t> sizes_;
  mutable std::vector<Load> loads_;  // of the items
};

}  // namespace isochron
