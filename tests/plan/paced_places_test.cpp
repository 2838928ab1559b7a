// Micro-batches of a slot on ranks that suit them: by hand, against all ways to place single ranks,
// and that no slot ends later or loses anything.

#include "isochron/plan/slots/paced_places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "isochron/core/random.h"
#include "tests/plan/equal_counts.h"
#include "tests/support/num_instances.h"

namespace isochron {
namespace {

Problem paced(const std::vector<Tokens>& lengths, const std::vector<double>& speeds,
              const std::string& context = "dynamic", const CostModel& cost = plain_cost(10)) {
  Topology topology{.ranks = static_cast<std::int32_t>(speeds.size()), .capacity = 1000};
  topology.rank_speed = speeds;
  return {singles(lengths), topology, cost,
          resolved({.context = context, .sync = Sync::microbatch}, topology)};
}

TEST(PacedPlaces, TheShortestGoesToTheSlowRank) {
  const Problem problem = paced({90, 40, 90, 90}, {0.5, 1, 1, 1});
  const DraftSlots slots =
      with_paced_places(problem, {{on(0, 1, {0}), on(1, 1, {1}), on(2, 1, {2}), on(3, 1, {3})}});
  EXPECT_EQ(slots_time(problem, slots), 100);
}

// The pair moves away from the slow rank with all that a block of two holds.
TEST(PacedPlaces, BlocksChangePlacesWithAllThatTheyHold) {
  const Problem problem = paced({180, 10, 30}, {1, 0.5, 1, 1});
  const DraftSlots slots =
      with_paced_places(problem, {{on(0, 2, {0}), on(2, 1, {1}), on(3, 1, {2})}});
  EXPECT_EQ(slots_time(problem, slots), 100);
}

TEST(PacedPlaces, WhatAGroupCrossesStays) {
  const Problem problem = paced({150, 40, 90}, {1, 1, 1, 0.5}, "dynamic:any");
  const DraftSlots slots =
      with_paced_places(problem, {{on(0, 1, {1}), on(1, 2, {0}), on(3, 1, {2})}});
  EXPECT_EQ(slots.front()[1].ranks, (RankRange{.first = 1, .size = 2}));
  EXPECT_EQ(slots_time(problem, slots), 100) << "the other two change places";
}

TEST(PacedPlaces, EqualRanksAndEmptySlotsStayAsTheyAre) {
  const Problem equal = paced({90, 40}, {1, 1});
  const DraftSlots slots = {{on(0, 1, {0}), on(1, 1, {1})}};
  EXPECT_EQ(with_paced_places(equal, slots).front()[0].ranks.first, 0);
  EXPECT_TRUE(with_paced_places(paced({90}, {0.5, 1}), {}).empty());
}

TEST(PacedPlaces, SingleRanksAreTheBestOfAllWays) {
  for (std::uint64_t seed = 0; seed < num_instances(300); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const auto count = static_cast<std::size_t>(random.between(1, 6));
    std::vector<Tokens> lengths;
    std::vector<double> speeds;
    for (std::size_t i = 0; i < count; ++i) {
      lengths.push_back(random.between(1, 500));
      speeds.push_back(0.5 + random.unit() / 2);
    }
    const Problem problem = paced(lengths, speeds);
    std::vector<std::int64_t> ranks(count);
    std::iota(ranks.begin(), ranks.end(), 0);
    const auto slots_on = [&] {
      DraftSlots slots(1);
      for (std::size_t i = 0; i < count; ++i) {
        slots.front().push_back(on(ranks[i], 1, {static_cast<ItemId>(i)}));
      }
      return slots;
    };
    const Nanoseconds found = slots_time(problem, with_paced_places(problem, slots_on()));
    Nanoseconds best = found + 1;
    do {
      best = std::min(best, slots_time(problem, slots_on()));
    } while (std::next_permutation(ranks.begin(), ranks.end()));
    EXPECT_LE(found, best + 1);  // costs are rounded
  }
}

TEST(PacedPlaces, NothingGetsLongerOrLost) {
  int num_shorter = 0;
  for (std::uint64_t seed = 0; seed < num_instances(1000); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const std::int64_t num_ranks = random.between(1, 24);
    const bool is_any = random.below(2) == 0;
    const bool is_linked = random.below(2) == 0;  // within nodes of four ranks alone
    std::vector<double> speeds;
    for (std::int64_t rank = 0; rank < num_ranks; ++rank) {
      speeds.push_back(random.below(3) == 0 ? 0.5 + random.unit() / 2 : 1);
    }
    std::vector<Tokens> lengths;
    DraftSlots slots(1);
    for (std::int64_t first = 0; first < num_ranks;) {
      std::int64_t size = random.between(1, std::min<std::int64_t>(8, num_ranks - first));
      while (!is_any && ((size & (size - 1)) != 0 || first % size != 0)) --size;
      if (random.below(8) > 0) {
        slots.front().push_back(on(first, size, {static_cast<ItemId>(lengths.size())}));
        lengths.push_back(random.between(1, 900));
      }
      first += size;
    }
    if (lengths.empty()) continue;
    CostModel cost = plain_cost(10);
    if (is_linked) {
      cost.context = {{.kind = ContextKind::all_gather_kv, .links = {{4, 100, 0}}}};
      const auto leaves_node = [](const DraftGroup& group) {
        return group.ranks.first / 4 != (group.ranks.first + group.ranks.size - 1) / 4;
      };
      std::erase_if(slots.front(), leaves_node);
    }
    const Problem problem = paced(lengths, speeds, is_any ? "dynamic:any" : "dynamic", cost);
    const DraftSlots placed = with_paced_places(problem, slots);
    EXPECT_LE(slots_time(problem, placed), slots_time(problem, slots));
    num_shorter += slots_time(problem, placed) < slots_time(problem, slots) ? 1 : 0;
    ASSERT_EQ(placed.front().size(), slots.front().size());
    std::vector<int> taken(static_cast<std::size_t>(num_ranks), 0);
    for (std::size_t i = 0; i < placed.front().size(); ++i) {
      const DraftGroup& group = placed.front()[i];
      EXPECT_EQ(group.items, slots.front()[i].items);
      EXPECT_EQ(group.ranks.size, slots.front()[i].ranks.size);
      EXPECT_TRUE(is_any || group.ranks.first % group.ranks.size == 0);
      EXPECT_GE(problem.price_of(group.ranks), 0);
      for (std::int64_t rank = group.ranks.first; rank < group.ranks.first + group.ranks.size;
           ++rank) {
        ASSERT_LT(rank, num_ranks);
        EXPECT_EQ(++taken[static_cast<std::size_t>(rank)], 1);
      }
    }
  }
  EXPECT_GT(num_shorter, 300);
}

}  // namespace
}  // namespace isochron
