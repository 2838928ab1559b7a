#include "isochron/plan/problem.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "isochron/core/random.h"
#include "tests/plan/singles.h"

namespace isochron {
namespace {

TEST(Problem, AGroupIsAsSlowAsItsSlowestRank) {
  Random random(1);
  for (const std::int32_t ranks : {1, 2, 3, 7, 8, 33}) {
    Topology topology{.ranks = ranks, .capacity = 100};
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      topology.rank_speed.push_back(0.25 * static_cast<double>(random.between(1, 8)));
    }
    const Problem problem(singles({10}), topology, plain_cost(),
                          resolved({.context = "dynamic:any"}, topology));
    const auto& speeds = topology.rank_speed;
    for (std::int32_t first = 0; first < ranks; ++first) {
      for (std::int32_t size = 1; first + size <= ranks; ++size) {
        const double slowest =
            *std::min_element(speeds.begin() + first, speeds.begin() + first + size);
        EXPECT_EQ(problem.slowness({.first = first, .size = size}), 1 / slowest)
            << size << " of " << ranks << " ranks from " << first;
      }
    }
  }
}

TEST(Problem, RanksOfOneSpeedAreNotSlow) {
  const Topology topology{.ranks = 4, .capacity = 100};
  const Problem problem(singles({10}), topology, plain_cost(), resolved({}, topology));
  EXPECT_EQ(problem.slowness({.first = 1, .size = 3}), 1);
  EXPECT_EQ(Problem::slowed(7, 1), 7);
  EXPECT_EQ(Problem::slowed(7, 1.5), 11);  // llround(10.5)
}

}  // namespace
}  // namespace isochron
