// Ranks that idle in a slot share what stands beside them: by hand, and that nothing gets longer.

#include "isochron/plan/slots/widen_groups.h"

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

std::vector<std::int64_t> sizes_of(const std::vector<DraftGroup>& slot) {
  std::vector<std::int64_t> sizes;
  for (const DraftGroup& group : slot) sizes.push_back(group.ranks.size);
  return sizes;
}

Problem synced(const std::vector<Tokens>& lengths, const Topology& topology,
               const CostModel& cost = plain_cost(10), PlanOptions options = {}) {
  if (options.context == PlanOptions{}.context) options.context = "dynamic";
  options.sync = Sync::microbatch;
  return {singles(lengths), topology, cost, resolved(options, topology)};
}

TEST(WidenGroups, TheSlowestSharesFirst) {
  const Problem problem = synced({80, 60, 20}, {.ranks = 4, .capacity = 100});
  DraftSlots slots = {{on(0, 1, {0}), on(1, 1, {1}), on(2, 1, {2})}};
  EXPECT_TRUE(widen_groups(problem, slots));
  EXPECT_EQ(sizes_of(slots.front()), (std::vector<std::int64_t>{2, 1, 1}));
  EXPECT_EQ(slots_time(problem, slots), 70);
}

TEST(WidenGroups, TheSameGroupMaySeveralTimes) {
  const Problem problem = synced({80, 10}, {.ranks = 8, .capacity = 100});
  DraftSlots slots = {{on(0, 1, {0}), on(1, 1, {1})}};
  widen_groups(problem, slots);
  EXPECT_EQ(sizes_of(slots.front()), (std::vector<std::int64_t>{4, 4}));
}

// Seven ranks: aligned groups of two leave one that nobody can share.
TEST(WidenGroups, WhatIsLeftOverStaysIdle) {
  const Problem problem =
      synced({80, 60, 40}, {.ranks = 7, .capacity = 100}, plain_cost(10), {.max_context_size = 2});
  DraftSlots slots = {{on(0, 1, {0}), on(1, 1, {1}), on(2, 1, {2})}};
  widen_groups(problem, slots);
  EXPECT_EQ(sizes_of(slots.front()), (std::vector<std::int64_t>{2, 2, 2}));
}

TEST(WidenGroups, NotWhereTrafficTakesLongerThanTheSlot) {
  CostModel cost = plain_cost(10);
  cost.context = {{.kind = ContextKind::all_gather_kv,
                   .bytes_per_token = 1,
                   .links = {{.max_ranks = 1 << 20, .gb_per_s = 1, .latency_us = 1}}}};
  const Problem problem = synced({80, 60}, {.ranks = 4, .capacity = 100}, cost);
  const DraftSlots before = {{on(0, 1, {0}), on(1, 1, {1})}};
  DraftSlots slots = before;
  EXPECT_FALSE(widen_groups(problem, slots));
  EXPECT_EQ(sizes_of(slots.front()), sizes_of(before.front()));
}

// A sequence of 3 tokens is padded to 12 on two ranks, each of three: 33 of them fit one rank
// alone.
TEST(WidenGroups, NotBeyondTheCapacity) {
  const Problem problem = synced(std::vector<Tokens>(33, 3), {.ranks = 2, .capacity = 99},
                                 plain_cost(10), {.tensor_parallel = 3});
  std::vector<ItemId> all(33);
  std::iota(all.begin(), all.end(), ItemId{0});
  ASSERT_EQ(problem.tokens(1, 0) * 33, 99);
  ASSERT_GT(problem.tokens(2, 0) * 33, 2 * 99);
  DraftSlots slots = {{on(0, 1, all)}};
  EXPECT_FALSE(widen_groups(problem, slots));
}

TEST(WidenGroups, NoGroupsAndNoIdleRanksStayAsTheyAre) {
  const Problem problem = synced({80, 60}, {.ranks = 2, .capacity = 100});
  DraftSlots slots = {{}, {on(0, 1, {0}), on(1, 1, {1})}};
  EXPECT_FALSE(widen_groups(problem, slots));
  EXPECT_TRUE(slots.front().empty());
  EXPECT_EQ(sizes_of(slots.back()), (std::vector<std::int64_t>{1, 1}));
}

TEST(WidenGroups, NothingGetsLongerOrLost) {
  for (std::uint64_t seed = 0; seed < num_instances(2000); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const auto ranks = static_cast<std::int32_t>(random.between(1, 40));
    const std::int64_t count = random.between(1, ranks);
    std::vector<Tokens> lengths;
    for (std::int64_t i = 0; i < count; ++i) lengths.push_back(random.between(1, 16'384));
    const Problem problem = synced(lengths, {.ranks = ranks, .capacity = 16'384}, cost_7b_h100(),
                                   {.context = random.below(2) == 0 ? "dynamic" : "dynamic:any"});
    DraftSlots slots(static_cast<std::size_t>(random.between(1, 2)));
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      auto& slot = slots[i % slots.size()];
      slot.push_back(on(static_cast<std::int64_t>(slot.size()), 1, {static_cast<ItemId>(i)}));
    }
    const Nanoseconds before = slots_time(problem, slots);
    widen_groups(problem, slots);
    EXPECT_LE(slots_time(problem, slots), before);
    std::size_t num_items = 0;
    for (const auto& slot : slots) {
      std::vector<int> uses(static_cast<std::size_t>(ranks), 0);
      for (const DraftGroup& group : slot) {
        ASSERT_GE(problem.price_of(group.ranks), 0);
        ASSERT_EQ(
            group.ranks.first % problem.first_step(static_cast<std::int32_t>(group.ranks.size)), 0);
        for (std::int64_t r = 0; r < group.ranks.size; ++r) {
          ++uses[static_cast<std::size_t>(group.ranks.first + r)];
        }
        num_items += group.items.size();
      }
      EXPECT_LE(*std::max_element(uses.begin(), uses.end()), 1);
    }
    EXPECT_EQ(num_items, lengths.size());
  }
}

}  // namespace
}  // namespace isochron
