#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "isochron/plan/problem.h"

namespace isochron {

// The ranks in the order in which cells take them, the widest first. Aligned blocks stay whole, and
// of two halves of one that is first of whose speed its slowest rank leaves less unused. In their
// own order where groups are not aligned, or all are equally fast.
class RankOrder {
 public:
  explicit RankOrder(const Problem& problem);

  // The ranks at so many places; none unless a group may have them: they are consecutive.
  [[nodiscard]] std::optional<RankRange> find_ranks(std::int64_t first_place,
                                                    std::int32_t size) const;

  // How many ranks of speed 1 do as much as those at the places from `first_place` to `end`.
  [[nodiscard]] double speed(std::int64_t first_place, std::int64_t end) const;

  // The speed of the fastest rank and of the slowest; 1 where all are equally fast.
  [[nodiscard]] double fastest() const { return fastest_; }
  [[nodiscard]] double slowest() const { return slowest_; }

 private:
  struct Block {
    std::int64_t first = 0;
    std::int64_t size = 0;
  };
  [[nodiscard]] double part_unused(const Problem& problem, const Block& block) const;
  void add(const Problem& problem, const Block& block);

  std::vector<std::int64_t> rank_at_;  // by place; empty: ranks are in their own order
  std::vector<double> speed_before_;   // of all ranks at earlier places; empty: all are equal
  double fastest_ = 1;
  double slowest_ = 1;
};

}  // namespace isochron
