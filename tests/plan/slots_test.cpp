// Slots of micro-batches: what fills them, by hand, and that no step of the search loses an item.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "isochron/core/random.h"
#include "isochron/plan/slots/fewer_slots.h"
#include "isochron/plan/slots/slot_anneal.h"
#include "isochron/plan/slots/slot_builder.h"
#include "isochron/plan/slots/slot_items.h"
#include "isochron/plan/slots/slot_packer.h"
#include "isochron/plan/slots/slot_places.h"
#include "isochron/plan/slots/slot_pool.h"
#include "isochron/plan/slots/tight_slots.h"
#include "tests/plan/singles.h"
#include "tests/support/num_instances.h"

namespace isochron {
namespace {

PlanOptions synced(const std::string& context, const Topology& topology) {
  return resolved({.context = context, .sync = Sync::microbatch}, topology);
}

PackedGroup group_of(const SlotItems& items, const std::vector<ItemId>& members) {
  PackedGroup group = items.group_at(0);
  for (const ItemId item : members) items.put(group, item);
  return group;
}

// Everything there once, within the capacity and the ranks, and as long as is said.
void expect_whole(const SlotItems& items, const std::vector<PackedSlot>& slots) {
  const Problem& problem = items.problem();
  std::vector<int> count(static_cast<std::size_t>(problem.num_items()), 0);
  for (const PackedSlot& slot : slots) {
    std::int32_t ranks = 0;
    Nanoseconds longest = 0;
    for (const PackedGroup& group : slot.groups) {
      ranks += group.size;
      Nanoseconds time = items.fixed(static_cast<std::size_t>(group.place));
      Tokens tokens = 0;
      for (const ItemId item : group.items) {
        ++count[static_cast<std::size_t>(item)];
        time += items.cost(static_cast<std::size_t>(group.place), item);
        tokens += problem.tokens(group.size, item);
      }
      EXPECT_EQ(time, group.time);
      EXPECT_LE(tokens, problem.capacity() * group.size);
      longest = std::max(longest, time);
    }
    EXPECT_LE(ranks, problem.num_ranks());
    EXPECT_EQ(longest, slot.time);
  }
  EXPECT_TRUE(std::all_of(count.begin(), count.end(), [](int times) { return times == 1; }));
}

// Many short sequences, some that need a few ranks, few that need a node.
std::vector<Tokens> long_tailed(Random& random, std::size_t count, Tokens capacity) {
  std::vector<Tokens> lengths;
  for (std::size_t i = 0; i < count; ++i) {
    const Tokens longest = capacity << (random.below(16) == 0 ? 3 : random.below(4) == 0 ? 1 : 0);
    lengths.push_back(random.between(longest / 16, longest));
  }
  return lengths;
}

TEST(SlotPool, FindsTheDearestItemWithinTimeAndTokens) {
  const Topology topology{.ranks = 2, .capacity = 10};
  const Problem problem(singles({3, 9, 5, 7}), topology, plain_cost(),
                        synced("static:1", topology));
  const SlotItems items(problem);
  SlotPool pool(items, items.dearest());
  constexpr std::int32_t any_number = std::numeric_limits<std::int32_t>::max();
  const auto found = [&](Nanoseconds time, Tokens tokens) {
    const std::int32_t position = pool.first_within(0, 0, time, tokens, any_number);
    return position == SlotPool::none ? -1 : pool.item(position);
  };
  EXPECT_EQ(found(10, 10), 1);
  EXPECT_EQ(found(8, 10), 3);
  EXPECT_EQ(found(10, 6), 2);
  pool.take(items.position(2));
  EXPECT_EQ(found(10, 6), 0);
  EXPECT_EQ(found(2, 10), -1);
  EXPECT_EQ(pool.left(), (std::vector<ItemId>{1, 3, 0}));
}

TEST(AnnealSlots, PutsWhatTakesEquallyLongIntoOneSlot) {
  const Topology topology{.ranks = 2, .capacity = 10};
  const Problem problem(singles({9, 5, 9, 5}), topology, plain_cost(),
                        synced("static:1", topology));
  const SlotItems items(problem);
  std::vector<PackedSlot> slots(2);
  slots[0].groups = {group_of(items, {0}), group_of(items, {1})};
  slots[1].groups = {group_of(items, {2}), group_of(items, {3})};
  for (PackedSlot& slot : slots) slot.time = 10;
  const std::vector<PackedSlot> best = anneal_slots(items, slots, 0, 2000);
  EXPECT_EQ(total_time(best), 16);
  expect_whole(items, best);
}

TEST(AnnealSlots, LosesNoItemAndIsNeverLonger) {
  for (std::uint64_t seed = 0; seed < num_instances(200); ++seed) {
    Random random(seed);
    const Topology topology{.ranks = 8, .capacity = 4096};
    const Problem problem(singles(long_tailed(random, 8 + random.below(60), 4096)), topology,
                          cost_7b_h100(), synced("dynamic", topology));
    const SlotItems items(problem);
    const SlotPlaces places(problem);
    const SlotBuilder builder(items, places);
    std::int64_t work = 1000;
    const std::vector<PackedSlot> slots =
        TightSlots(items, places, builder).build(items.dearest(), {}, work);
    const std::vector<PackedSlot> best = anneal_slots(items, slots, 0, 5000);
    expect_whole(items, best);
    EXPECT_LE(total_time(best), total_time(slots));
  }
}

// Two slots of a hundred each, which no single move makes one of.
TEST(FewerSlots, ASlotIsGivenUpThatAnotherHasRoomFor) {
  const Topology topology{.ranks = 2, .capacity = 10};
  const Problem problem(singles({6, 6, 4, 4}), topology, plain_cost(100),
                        synced("static:1", topology));
  const SlotItems items(problem);
  const SlotPlaces places(problem);
  std::vector<PackedSlot> slots(2);
  slots[0] = {.groups = {group_of(items, {0}), group_of(items, {1})}, .time = 106};
  slots[1] = {.groups = {group_of(items, {2}), group_of(items, {3})}, .time = 104};
  std::int64_t work = 100;
  const std::vector<PackedSlot> fewer = fewer_slots(items, places, slots, work);
  EXPECT_EQ(fewer.size(), 1U);
  EXPECT_EQ(total_time(fewer), 110);
  EXPECT_LT(work, 100);
  expect_whole(items, fewer);
}

// By time 3 joins 6, and of the others one finds no room. It fills the rank of 7.
TEST(FewerSlots, WhatFindsNoRoomByTimeIsPackedTightly) {
  const Topology topology{.ranks = 2, .capacity = 10};
  const Problem problem(singles({7, 6, 3, 2, 2}), topology, plain_cost(100),
                        synced("static:1", topology));
  const SlotItems items(problem);
  std::vector<PackedSlot> slots(2);
  slots[0] = {.groups = {group_of(items, {0}), group_of(items, {1})}, .time = 107};
  slots[1] = {.groups = {group_of(items, {2}), group_of(items, {3, 4})}, .time = 104};
  std::int64_t work = 100;
  const std::vector<PackedSlot> fewer = fewer_slots(items, SlotPlaces(problem), slots, work);
  EXPECT_EQ(total_time(fewer), 110);
  expect_whole(items, fewer);
}

TEST(FewerSlots, LoseNoItemAndAreNeverLonger) {
  int num_shorter = 0;
  for (std::uint64_t seed = 0; seed < num_instances(200); ++seed) {
    Random random(seed);
    const Topology topology{.ranks = static_cast<std::int32_t>(random.between(2, 12)),
                            .capacity = 4096};
    CostModel cost = cost_7b_h100();
    cost.microbatch_ns = 2e8;
    const Tokens longest = 4096 * std::min(4, topology.ranks);
    std::vector<Tokens> lengths = long_tailed(random, 4 + random.below(40), 4096);
    for (Tokens& length : lengths) length = std::min(length, longest);
    const Problem problem(singles(lengths), topology, cost, synced("dynamic", topology));
    const SlotItems items(problem);
    const SlotPlaces places(problem);
    std::int64_t work = 1000;
    std::vector<PackedSlot> slots =
        SlotBuilder(items, places).build(items.dearest(), {.limit = 1, .is_quick = true}, work);
    places.settle(slots);
    work = 10'000;
    const std::vector<PackedSlot> fewer = fewer_slots(items, places, slots, work);
    EXPECT_LE(total_time(fewer), total_time(slots));
    num_shorter += total_time(fewer) < total_time(slots) ? 1 : 0;
    std::size_t count = 0;
    for (const PackedSlot& slot : fewer) {
      EXPECT_FALSE(places.placed(slot).first.empty());
      for (const PackedGroup& group : slot.groups) count += group.items.size();
    }
    EXPECT_EQ(count, lengths.size());
  }
  EXPECT_GT(num_shorter, 10);
}

// Groups of two, three and four ranks among ten start at multiples of their size.
TEST(SlotPlaces, CountTheGroupsThatFitBesideOthers) {
  const Topology topology{.ranks = 10, .capacity = 10};
  const Problem problem(singles({5}), topology, cost_7b_h100(), synced("dynamic", topology));
  const SlotItems items(problem);
  const SlotPlaces places(problem);
  ASSERT_FALSE(places.is_simple());
  const auto sizes = problem.sizes();
  const auto of_size = [&](std::int32_t size) {
    return items.group_at(
        static_cast<std::size_t>(std::find(sizes.begin(), sizes.end(), size) - sizes.begin()));
  };
  const PackedSlot slot{.groups = {of_size(5)}};
  EXPECT_EQ(places.num_beside(slot, 1), 5);
  EXPECT_EQ(places.num_beside(slot, 2), 2);
  EXPECT_EQ(places.num_beside(slot, 5), 1);
  EXPECT_EQ(places.num_beside({.groups = {of_size(8)}}, 2), 1);
  EXPECT_EQ(places.num_beside({.groups = {of_size(8)}}, 4), 0);
  EXPECT_EQ(places.num_beside({.groups = {of_size(10)}}, 1), 0);
}

// One by one, in any order, groups find a place as long as all of them together do.
TEST(SlotRoom, TakesWhatFindsAPlaceWithAllOthers) {
  int num_refused = 0;
  for (std::uint64_t seed = 0; seed < num_instances(500); ++seed) {
    Random random(seed);
    const Topology topology{.ranks = static_cast<std::int32_t>(random.between(5, 70)),
                            .capacity = 10};
    const Problem problem(singles({5}), topology, cost_7b_h100(), synced("dynamic", topology));
    const SlotPlaces places(problem);
    if (places.is_simple()) continue;
    SlotRoom room(places, topology.ranks);
    std::vector<std::int32_t> sizes;
    for (int i = 0; i < 60; ++i) {
      const std::int32_t size = problem.sizes()[random.below(problem.sizes().size())];
      const bool has_ranks = size <= room.num_free();
      sizes.push_back(size);
      const bool has_place = has_ranks && !places.find(sizes).empty();
      ASSERT_EQ(room.take(size), has_place) << "seed " << seed << ", group " << i;
      if (!has_place) sizes.pop_back();
      num_refused += has_ranks && !has_place ? 1 : 0;
    }
  }
  EXPECT_GT(num_refused, 20);
}

// In whatever order limits are asked for.
TEST(SlotItems, FindTheSmallestSizeThatEndsInTime) {
  for (std::uint64_t seed = 0; seed < num_instances(100); ++seed) {
    Random random(seed);
    const Topology topology{.ranks = static_cast<std::int32_t>(random.between(2, 40)),
                            .capacity = 4096};
    std::vector<Tokens> lengths = long_tailed(random, 8, 4096);
    for (Tokens& length : lengths) length = std::min<Tokens>(length, 4096 * topology.ranks);
    const Problem problem(singles(lengths), topology, cost_7b_h100(),
                          synced("dynamic:any", topology));
    const SlotItems items(problem);
    for (int i = 0; i < 200; ++i) {
      const auto item = static_cast<ItemId>(random.below(lengths.size()));
      const std::size_t base = random.below(2) * random.below(items.num_places());
      const Nanoseconds limit = random.between(0, 4'000'000'000);
      std::size_t best = items.smallest_from(base, item);
      Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
      for (std::size_t place = best; place < items.num_places() && least > limit; ++place) {
        if (!items.fits(place, item)) continue;
        const Nanoseconds time = items.cost(place, item) + items.fixed(place);
        if (time >= least) continue;
        least = time;
        best = place;
      }
      ASSERT_EQ(items.smallest_within(base, limit, item), best) << "seed " << seed;
    }
  }
}

TEST(TightSlots, ForesightLosesNoItemAndIsShorterOnAverage) {
  double with = 0;
  double without = 0;
  for (std::uint64_t seed = 0; seed < num_instances(60); ++seed) {
    Random random(seed);
    const Topology topology{.ranks = 32, .capacity = 4096};
    const Problem problem(singles(long_tailed(random, 300, 4096)), topology, cost_7b_h100(),
                          synced(seed % 2 == 0 ? "dynamic" : "dynamic:any", topology));
    const SlotItems items(problem);
    const SlotPlaces places(problem);
    const SlotBuilder builder(items, places);
    const TightSlots tight(items, places, builder);
    std::int64_t work = 0;
    for (const bool looks_ahead : {false, true}) {
      const std::vector<PackedSlot> slots =
          tight.build(items.dearest(), {.looks_ahead = looks_ahead}, work);
      expect_whole(items, slots);
      (looks_ahead ? with : without) += static_cast<double>(total_time(slots));
    }
  }
  EXPECT_LT(with, without);
}

TEST(SlotPacker, GivesUpOnceItTakesTooLong) {
  const Topology topology{.ranks = 4, .capacity = 100};
  const Problem problem(singles({100, 60, 50, 40, 30, 20}), topology, plain_cost(1),
                        synced("dynamic", topology));
  const SlotPacker packer(problem);
  const SlotDraft packed = packer.pack(100, 1, PackCare::rough);
  ASSERT_FALSE(packed.slots.empty());
  // All of it is 300 tokens on four ranks, and the longest has a limit of its own.
  EXPECT_FALSE(packer.pack(100, 1, PackCare::rough, packed.time).slots.empty());
  EXPECT_TRUE(packer.pack(100, 1, PackCare::rough, 74).slots.empty());
  // Packing once more is the same.
  EXPECT_EQ(packer.pack(100, 1, PackCare::rough).time, packed.time);
}

}  // namespace
}  // namespace isochron
