// The order in which cells take ranks that are not equally fast: by hand, and that every place has
// a rank of its own in whole blocks.

#include "isochron/plan/pipelines/rank_order.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "isochron/core/random.h"
#include "tests/plan/singles.h"
#include "tests/support/num_instances.h"

namespace isochron {
namespace {

Problem on_ranks(const std::vector<double>& speeds, const std::string& context = "dynamic") {
  Topology topology{.ranks = static_cast<std::int32_t>(speeds.size()), .capacity = 100};
  topology.rank_speed = speeds;
  return {singles({10, 20, 30}), topology, plain_cost(10),
          resolved({.context = context}, topology)};
}

std::vector<std::int64_t> order_of(const std::vector<double>& speeds,
                                   const std::string& context = "dynamic") {
  const RankOrder order(on_ranks(speeds, context));
  std::vector<std::int64_t> ranks;
  for (std::int64_t place = 0; place < std::ssize(speeds); ++place) {
    ranks.push_back(order.find_ranks(place, 1)->first);
  }
  return ranks;
}

using Ranks = std::vector<std::int64_t>;

TEST(RankOrder, WhatASlowRankSpoilsComesLast) {
  EXPECT_EQ(order_of({0.5, 1, 1, 1}), (Ranks{2, 3, 0, 1}));
  EXPECT_EQ(order_of({1, 1, 1, 0.5, 1, 1, 1, 1}), (Ranks{4, 5, 6, 7, 0, 1, 2, 3}));
  // A node that is slow as a whole spoils nothing.
  EXPECT_EQ(order_of({0.5, 0.5, 1, 1}), (Ranks{0, 1, 2, 3}));
}

TEST(RankOrder, EqualRanksAndGroupsOfAnySizeStayAsTheyAre) {
  EXPECT_EQ(order_of({1, 1, 1}), (Ranks{0, 1, 2}));
  EXPECT_EQ(order_of({0.5, 1, 1, 1}, "dynamic:any"), (Ranks{0, 1, 2, 3}));
  EXPECT_EQ(order_of({0.5}), (Ranks{0}));
}

TEST(RankOrder, AGroupHasConsecutiveRanks) {
  const RankOrder order(on_ranks({0.5, 1, 1, 1}));
  EXPECT_EQ(order.find_ranks(0, 2), (RankRange{.first = 2, .size = 2}));
  EXPECT_EQ(order.find_ranks(2, 2), (RankRange{.first = 0, .size = 2}));
  EXPECT_EQ(order.find_ranks(1, 2), std::nullopt);
  EXPECT_EQ(order.find_ranks(0, 4), (RankRange{.first = 0, .size = 4}));
  EXPECT_EQ(order.speed(0, 2), 2);
  EXPECT_EQ(order.speed(2, 4), 1.5);
  EXPECT_EQ(order.fastest(), 1);
  EXPECT_EQ(order.slowest(), 0.5);
}

TEST(RankOrder, EveryAlignedBlockIsWhole) {
  for (std::uint64_t seed = 0; seed < num_instances(300); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const std::int64_t num_ranks = random.between(1, 97);
    std::vector<double> speeds;
    for (std::int64_t rank = 0; rank < num_ranks; ++rank) {
      speeds.push_back(random.below(4) == 0 ? 0.5 + random.unit() / 2 : 1);
    }
    const Problem problem = on_ranks(speeds);
    const RankOrder order(problem);
    for (std::int32_t size = 1; size <= num_ranks; size *= 2) {
      std::set<std::int64_t> seen;
      double speed = 0;
      for (std::int64_t place = 0; place + size <= num_ranks; place += size) {
        const auto ranks = order.find_ranks(place, size);
        ASSERT_NE(ranks, std::nullopt);
        EXPECT_EQ(ranks->first % size, 0);
        EXPECT_TRUE(seen.insert(ranks->first).second);
        for (std::int64_t rank = ranks->first; rank < ranks->first + size; ++rank) {
          speed += speeds[static_cast<std::size_t>(rank)];
        }
        EXPECT_NEAR(order.speed(0, place + size), speed, 1e-9);
      }
    }
  }
}

}  // namespace
}  // namespace isochron
