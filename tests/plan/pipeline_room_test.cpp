// What a pipeline can do in a time, with how many slots and how long ones: bounds beside what
// simulated pipelines do, and the slots that come near them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "isochron/core/random.h"
#include "isochron/plan/least_areas.h"
#include "isochron/plan/pipelines/cell_builder.h"
#include "isochron/plan/pipelines/pipeline_bubble.h"
#include "isochron/plan/pipelines/pipeline_grid.h"
#include "isochron/plan/pipelines/rank_room.h"
#include "isochron/plan/pipelines/slot_heights.h"
#include "isochron/plan/pipelines/uneven_stages.h"
#include "isochron/simulate/pipeline_time.h"
#include "tests/plan/singles.h"
#include "tests/plan/slot_times.h"
#include "tests/plan/tiny_question.h"
#include "tests/support/num_instances.h"

namespace isochron {
namespace {

PipelineShape random_shape(Random& random) {
  PipelineShape shape = {.stages = static_cast<std::int32_t>(random.between(2, 6))};
  if (random.below(2) == 0) {
    shape.virtual_ = static_cast<std::int32_t>(random.between(2, 3));
    shape.group = shape.stages + static_cast<std::int32_t>(random.below(3));
  }
  return shape;
}

TEST(PipelineBubble, OneSlotWaitsForAllOtherStages) {
  for (const std::int32_t stages : {2, 4, 7}) {
    const PipelineBubble bubble({.stages = stages}, Pass::train, 0.3, 4);
    EXPECT_NEAR(bubble.share(1), stages - 1, 1e-9);
  }
}

TEST(PipelineBubble, TwoSlotsOnTwoStages) {
  // With a first slot of 3 and a second of 2, a third of each forward, the last stage begins after
  // 1 and has work of 5, and 4/3 are left to go up: 22/3 for a work of 5. What every pair of sizes
  // takes is no less than 7/15 more than its work.
  EXPECT_NEAR(time_of({.stages = 2}, {3'000'000, 2'000'000}, third), 2 * 22e6 / 6, 10);
  const PipelineBubble bubble({.stages = 2}, Pass::train, third, 2);
  EXPECT_LE(bubble.share(2), 7.0 / 15);
  EXPECT_GE(bubble.share(2), 0.45);
}

TEST(PipelineBubble, EqualSlotsOfAForwardPassMeetIt) {
  const PipelineShape shape = {.stages = 4, .virtual_ = 2, .group = 4};
  const PipelineBubble bubble(shape, Pass::forward, third, 8);
  const std::vector<Nanoseconds> slots(8, 3'000'000);
  const double work = sum_of(slots) / 3;
  EXPECT_NEAR(time_of(shape, slots, third, Pass::forward), work * (1 + bubble.share(8)), 100);
}

TEST(PipelineBubble, NeverGrowsWithMoreSlots) {
  for (const PipelineShape& shape :
       {PipelineShape{.stages = 4}, PipelineShape{.stages = 3, .virtual_ = 2, .group = 4}}) {
    const PipelineBubble bubble(shape, Pass::train, third, 60);
    for (std::int32_t count = 2; count <= 60; ++count) {
      EXPECT_LE(bubble.share(count), bubble.share(count - 1)) << count;
    }
    EXPECT_GT(bubble.share(60), 0);
    EXPECT_EQ(bubble.share(61 + shape.group), 0) << "more than it was made for";
  }
}

TEST(UnevenStages, OneSlotTakesAllItCosts) {
  for (const Pass pass : {Pass::train, Pass::forward}) {
    const UnevenStages two({.stages = 2, .shares = {third, 1 - third}}, pass, 0.3, 4);
    EXPECT_NEAR(two.part(1), 1, 1e-9);
    const UnevenStages three({.stages = 3, .shares = {0.2, 0.5, 0.3}}, pass, 0.3, 4);
    EXPECT_NEAR(three.part(1), 1, 1e-9);
  }
}

TEST(UnevenStages, EqualOnesAreAPipelineOfThem) {
  const std::vector<double> shares(4, 0.25);
  const UnevenStages stages({.stages = 4, .shares = shares}, Pass::train, third, 20);
  const PipelineBubble bubble({.stages = 4}, Pass::train, third, 20);
  for (std::int32_t count = 1; count <= 20; ++count) {
    EXPECT_GE(stages.part(count), (1 + bubble.share(count)) / 4 * (1 - 1e-12)) << count;
  }
}

TEST(UnevenStages, ManySlotsWaitForTheLargestStage) {
  const UnevenStages stages({.stages = 3, .shares = {0.3, 0.4, 0.3}}, Pass::train, third, 64);
  EXPECT_DOUBLE_EQ(stages.part(65), 0.4);
  for (std::int32_t count = 2; count <= 64; ++count) {
    EXPECT_LE(stages.part(count), stages.part(count - 1)) << count;
  }
  EXPECT_GT(stages.part(4), 0.42) << "few wait for the other stages too";
}

// Slots of every size from 0 to 3, in every order, on stages of random sizes.
TEST(UnevenStages, HoldForAllSizesOfFewSlots) {
  double nearest = 2;
  for (std::uint64_t seed = 0; seed < num_asked(60); ++seed) {
    Random random(seed);
    PipelineShape shape{.stages = static_cast<std::int32_t>(random.between(2, 5))};
    for (std::int32_t stage = 0; stage < shape.stages; ++stage) {
      shape.shares.push_back(0.2 + random.unit());
    }
    const double sum = std::accumulate(shape.shares.begin(), shape.shares.end(), 0.0);
    for (double& share : shape.shares) share /= sum;
    const Pass pass = random.below(2) == 0 ? Pass::train : Pass::forward;
    const double forward_share = 0.2 + 0.6 * random.unit();
    const auto count = static_cast<std::int32_t>(random.between(1, 5));
    const UnevenStages stages(shape, pass, forward_share, count);
    const double of_pass = pass == Pass::train ? 1 : forward_share;
    std::vector<Nanoseconds> slots(static_cast<std::size_t>(count), 0);
    for (std::int32_t code = 1; code < 1 << (2 * count); ++code) {
      for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = (code >> (2 * i) & 3) * 1'000'000;
      const double time = time_of(shape, slots, forward_share, pass) / shape.stages;
      const double least = stages.part(count) * sum_of(slots) * of_pass;
      ASSERT_LE(least, time + 100) << "seed " << seed << ", slots " << code;
      nearest = std::min(nearest, time / std::max(1.0, least));
    }
  }
  EXPECT_LT(nearest, is_sampled ? 1.5 : 1.001) << "it says little";
}

// All sizes from 0 to 4 of up to four blocks of equal slots, and of up to five slots.
TEST(PipelineBubble, HoldsForAllSizesOfFewSlots) {
  for (const PipelineShape& shape :
       {PipelineShape{.stages = 2}, PipelineShape{.stages = 3}, PipelineShape{.stages = 4},
        PipelineShape{.stages = 2, .virtual_ = 2, .group = 2},
        PipelineShape{.stages = 3, .virtual_ = 2, .group = 3},
        PipelineShape{.stages = 2, .virtual_ = 3, .group = 3}}) {
    const std::int32_t most = shape.virtual_ > 1 ? 2 * shape.group : 5;
    const PipelineBubble bubble(shape, Pass::train, third, most);
    for (std::int32_t count = shape.group; count <= most; count += shape.group) {
      double least = 100;
      std::vector<Nanoseconds> slots(static_cast<std::size_t>(count), 0);
      const auto num_ways = static_cast<std::int64_t>(std::pow(5, count));
      for (std::int64_t way = 1; way < num_ways; ++way) {
        std::int64_t digits = way;
        for (Nanoseconds& slot : slots) {
          slot = digits % 5 * 18'000'000;
          digits /= 5;
        }
        least = std::min(least, time_of(shape, slots, third) / sum_of(slots) - 1);
      }
      EXPECT_LE(bubble.share(count), least + 1e-6) << shape.stages << " stages, " << count;
      EXPECT_GE(bubble.share(count), 0.8 * least) << shape.stages << " stages, " << count;
    }
  }
}

TEST(PipelineBubble, HoldsForRandomSlots) {
  for (std::uint64_t seed = 0; seed < num_instances(3000); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const PipelineShape shape = random_shape(random);
    const Pass pass = random.below(5) == 0 ? Pass::forward : Pass::train;
    const double forward_share = 0.1 + 0.8 * random.unit();
    const std::int32_t count =
        shape.group * static_cast<std::int32_t>(random.between(1, shape.virtual_ > 1 ? 6 : 20));
    // Near the best sizes, or far from them.
    std::vector<Nanoseconds> slots =
        in_nanoseconds(slot_heights(shape, pass, forward_share, count, 1));
    const double spread = std::vector{0.0, 0.02, 0.3, 1.0}[random.below(4)];
    for (Nanoseconds& slot : slots) {
      slot = std::llround(static_cast<double>(slot) * (1 + spread * (random.unit() - 0.5)));
    }
    const PipelineBubble bubble(shape, pass, forward_share, count);
    const double share = pass == Pass::train ? 1 : forward_share;
    EXPECT_GE(time_of(shape, slots, forward_share, pass) + 100,
              share * sum_of(slots) * (1 + bubble.share(count)));
  }
}

TEST(SlotHeights, DoNearlyAllThatTheBubbleLeaves) {
  for (const std::int32_t stages : {2, 4, 8}) {
    for (const std::int32_t count : {2, 5, 12, 32}) {
      const PipelineShape shape{.stages = stages};
      const auto slots = in_nanoseconds(slot_heights(shape, Pass::train, third, count, 1));
      const PipelineBubble bubble(shape, Pass::train, third, count);
      EXPECT_NEAR(time_of(shape, slots, third), 1e12, 1e6) << "the time is all used";
      EXPECT_GE(sum_of(slots) * (1 + bubble.share(count)), 0.97e12) << count << " slots";
    }
  }
}

TEST(SlotHeights, BeatEqualSlotsOfVirtualStages) {
  const PipelineShape shape{.stages = 4, .virtual_ = 2, .group = 4};
  const auto slots = in_nanoseconds(slot_heights(shape, Pass::train, third, 16, 1));
  const std::vector<Nanoseconds> equal(16, std::llround(sum_of(slots) / 16));
  const double work = sum_of(slots);
  EXPECT_LT(time_of(shape, slots, third) - work, 0.8 * (time_of(shape, equal, third) - work));
}

TEST(SlotHeights, AreEqualWhereNothingIsGained) {
  const std::vector<double> equal(6, 1.0 / 9);
  EXPECT_EQ(slot_heights({.stages = 4}, Pass::forward, third, 6, 1), equal);
}

// The slowest stage counts every slot, the others one.
TEST(SlotHeights, UseTheTimeOfAForwardPassThroughUnequalStages) {
  const PipelineShape shape{.stages = 4, .shares = {0.2, 0.33, 0.21, 0.26}};
  const auto slots = in_nanoseconds(slot_heights(shape, Pass::forward, third, 9, 1));
  EXPECT_NEAR(time_of(shape, slots, third, Pass::forward), third * 1e12, 1e4);
  for (const double longest : {0.12, 0.16, 0.2, 0.24}) {
    const auto heights = peak_heights(shape, Pass::forward, third, 9, 1, longest, 1e-4);
    ASSERT_EQ(heights.size(), 9U) << longest;
    EXPECT_EQ(*std::max_element(heights.begin(), heights.end()), longest);
    EXPECT_LE(time_of(shape, in_nanoseconds(heights), third, Pass::forward), third * 1e12 + 1e4);
    EXPECT_GE(time_of(shape, in_nanoseconds(heights), third, Pass::forward), 0.95 * third * 1e12);
  }
}

TEST(SlotHeights, APeakIsAsLongAsAskedAndKeepsTheTime) {
  const PipelineShape shape{.stages = 4};
  for (const double longest : {0.12, 0.16, 0.2, 0.23}) {
    const auto heights = peak_heights(shape, Pass::train, third, 12, 1, longest, 1e-4);
    ASSERT_EQ(heights.size(), 12U);
    EXPECT_EQ(*std::max_element(heights.begin(), heights.end()), longest);
    EXPECT_LE(time_of(shape, in_nanoseconds(heights), third), 1.03e12);
    // Nearly what the room of such a rank is.
    const RankRoom room(shape, Pass::train, third, 0, 12);
    EXPECT_GE(std::accumulate(heights.begin(), heights.end(), 0.0),
              0.93 * room.area(1, longest, {.least = 12, .most = 12}));
  }
  EXPECT_TRUE(peak_heights(shape, Pass::train, third, 12, 1, 0.251, 1e-4).empty());
}

// With virtual stages whole blocks are as long as their longest slot, unless that is worked out.
TEST(SlotHeights, RoughPeaksOfVirtualStagesKeepTheTimeAndDoLess) {
  const PipelineShape shape{.stages = 4, .virtual_ = 2, .group = 4};
  double rough_work = 0;
  double proper_work = 0;
  for (const double longest : {0.1, 0.14, 0.18}) {
    for (const PeakCare care : {PeakCare::rough, PeakCare::proper}) {
      const auto heights = peak_heights(shape, Pass::train, third, 16, 1, longest, 1e-4, care);
      ASSERT_EQ(heights.size(), 16U);
      EXPECT_GE(*std::max_element(heights.begin(), heights.end()), longest);
      EXPECT_LE(time_of(shape, in_nanoseconds(heights), third), 1.05e12);
      (care == PeakCare::rough ? rough_work : proper_work) +=
          std::accumulate(heights.begin(), heights.end(), 0.0);
    }
  }
  EXPECT_LT(rough_work, proper_work);
  EXPECT_GT(time_of_peak(shape, Pass::train, 16), 10 * time_of_peak(shape, Pass::forward, 16));
}

// Slots that hide a long one best: rising and falling as steeply as a path that gains no more than
// `rise` and `fall` on either side allows, in units of the longest forward and backward.
std::vector<Nanoseconds> smooth_slots(std::size_t depth, double forward_share, double rise,
                                      double fall) {
  const auto side = [&](double ratio, double gain) {
    std::vector<double> sizes;  // from the end to the middle
    while (sizes.size() < 60 && (sizes.empty() || sizes.back() < 0.999)) {
      double window = 0;
      for (std::size_t i = 0; i < std::min(depth, sizes.size()); ++i) {
        window += sizes[sizes.size() - 1 - i];
      }
      sizes.push_back(std::min(1.0, (gain + window / static_cast<double>(depth)) / ratio));
    }
    return sizes;
  };
  const double ratio = (1 - forward_share) / forward_share;
  std::vector<double> sizes = side(1 / ratio, rise);
  const std::vector<double> falling = side(ratio, fall);
  sizes.insert(sizes.end(), falling.rbegin(), falling.rend());
  std::vector<Nanoseconds> slots;
  for (const double size : sizes) slots.push_back(std::llround(size * 3e9));
  return slots;
}

TEST(RankRoom, HoldsWhatEveryPipelineDoes) {
  double least = 2;  // room over work
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const PipelineShape shape = {.stages = static_cast<std::int32_t>(random.between(2, 7))};
    const double forward_share = 0.15 + 0.3 * random.unit();
    const double ratio = (1 - forward_share) / forward_share;
    std::vector<Nanoseconds> slots =
        smooth_slots(static_cast<std::size_t>(shape.stages - 1), forward_share,
                     0.02 + 0.3 * random.unit(), (ratio - 1) * (1 + 0.4 * random.unit()));
    if (seed % 3 == 0) slots.resize(1 + random.below(slots.size()));
    std::vector<PassCost> passes;
    Nanoseconds work = 0;
    for (const Nanoseconds slot : slots) {
      passes.push_back(split_cost(slot, forward_share));
      work += slot;
    }
    const auto count = static_cast<std::int32_t>(slots.size());
    const double time = static_cast<double>(
        PipelineTime(shape, count, Pass::train).makespan(passes) * shape.stages);
    const RankRoom room(shape, Pass::train, forward_share, 0, count);
    const auto longest = static_cast<double>(*std::max_element(slots.begin(), slots.end()));
    const double area = room.area(time + room.lost(), longest, {.least = count, .most = count});
    EXPECT_GE(area, static_cast<double>(work));
    least = std::min(least, area / static_cast<double>(work));
  }
  EXPECT_LT(least, 1.02);
}

// A slot that stands out among smaller ones, on any shape.
TEST(RankRoom, HoldsBesideALongSlot) {
  double least = 10;
  for (std::uint64_t seed = 0; seed < num_instances(3000); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const PipelineShape shape = random_shape(random);
    const double forward_share = 0.1 + 0.8 * random.unit();
    const std::int32_t count =
        shape.group * static_cast<std::int32_t>(random.between(1, shape.virtual_ > 1 ? 3 : 9));
    const double longest = (0.5 + 0.5 * random.unit()) / shape.stages;
    auto heights =
        peak_heights(shape, Pass::train, forward_share, count, 1, longest, 1e-4 * random.unit());
    if (heights.empty() || random.below(3) == 0) {
      heights.assign(static_cast<std::size_t>(count), 0);
      for (double& height : heights) height = 0.3 * longest * random.unit();
      heights[random.below(heights.size())] = longest;
    }
    // A block of slots need not be as long as its longest.
    const auto peak = std::max_element(heights.begin(), heights.end());
    for (auto height = heights.begin(); height != heights.end(); ++height) {
      if (*height == *peak && height != peak) *height *= random.unit();
    }
    const auto slots = in_nanoseconds(heights);
    const RankRoom room(shape, Pass::train, forward_share, 0, count);
    const double area =
        room.area(time_of(shape, slots, forward_share) + room.lost() + 100,
                  static_cast<double>(*std::max_element(slots.begin(), slots.end())),
                  {.least = count, .most = count});
    EXPECT_GE(area, sum_of(slots));
    least = std::min(least, area / sum_of(slots));
  }
  EXPECT_LT(least, 1.02);
}

TEST(RankRoom, ALongSlotMakesItsJourney) {
  // Four stages, a slot of 240 in a time of 1000: its journey takes 960, and of what else there is
  // a third counts at least. So there is no more than 240 + 3 * 40.
  const RankRoom room({.stages = 4}, Pass::train, third, 0, 100);
  EXPECT_NEAR(room.area(1000, 240, {.least = 1, .most = 100}), 360, 1e-9);
  EXPECT_LT(room.area(1000, 251, {.least = 1, .most = 100}), 251);
}

TEST(RankRoom, SlotsArePaidFor) {
  const RankRoom room({.stages = 4}, Pass::train, third, 7, 10);
  const RankRoom free({.stages = 4}, Pass::train, third, 0, 10);
  const SlotRange range{.least = 5, .most = 10};
  EXPECT_NEAR(room.area(1000, 0, range), free.area(1000, 0, range) - 35, 7.1);
}

std::vector<double> random_speeds(Random& random, const StepQuestion& question) {
  std::vector<double> speeds;
  for (std::int32_t rank = 0; rank < question.topology.ranks; ++rank) {
    speeds.push_back(random.below(3) == 0 ? 0.5 + random.unit() / 2 : 1);
  }
  return speeds;
}

// Drafts hold every item once, where it fits, and take no longer than they say.
TEST(CellBuilder, BuildsCellsThatKeepTheirTime) {
  int num_found = 0;
  int num_wide = 0;
  int num_spent = 0;
  int num_slow = 0;
  int num_timed = 0;
  for (std::uint64_t seed = 0; seed < num_instances(300); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const Sync sync = random.below(3) == 0 ? Sync::microbatch : Sync::step;
    StepQuestion question =
        random_question(seed, {.most_sequences = static_cast<std::size_t>(random.between(4, 80)),
                               .most_ranks = 16,
                               .options = {.context = "dynamic", .sync = sync},
                               .stages = static_cast<std::int32_t>(random.between(2, 4))});
    if (random.below(2) == 0) question.topology.rank_speed = random_speeds(random, question);
    const Problem problem(singles(question.batch.lengths), question.topology, question.cost,
                          resolved(question.options, question.topology));
    if (!are_all_held(problem)) continue;
    const PipelineShape& shape = problem.topology().pipeline;
    const RankRoom room(shape, Pass::train, question.cost.forward_share,
                        static_cast<double>(problem.microbatch()), 64);
    SlotHeights heights(shape, Pass::train, question.cost.forward_share);
    const double nanoseconds = random.below(2) == 0 ? 500 : 1e12;
    const RestRanks rest = random.below(2) == 0 ? RestRanks::idle : RestRanks::cells;
    CellBuilder builder(problem, problem.capacity(), room, heights, rest, nanoseconds);
    const double area = narrow_area(problem);
    const auto num_slots = static_cast<std::int32_t>(random.between(1, 12));
    const double asked = (1 + 3 * random.unit()) * area / problem.total_speed() +
                         2.0 * num_slots * static_cast<double>(problem.microbatch());
    if (!builder.builds_cells(num_slots, asked)) continue;
    ++num_found;
    num_slow += problem.has_speeds() ? 1 : 0;
    num_spent += builder.is_spent() ? 1 : 0;
    EXPECT_FALSE(builder.is_spent() && nanoseconds > 1e9);
    EXPECT_LE(builder.time(), 1.03 * asked);
    const CellDraft draft = builder.draft();
    std::set<ItemId> seen;
    int num_idle = 0;
    const auto slots_per_cell = static_cast<std::size_t>(num_slots);
    std::vector<std::vector<std::int32_t>> taken(
        slots_per_cell,
        std::vector<std::int32_t>(static_cast<std::size_t>(problem.num_ranks()), 0));
    ASSERT_EQ(draft.bins.size(), draft.cells.size() * slots_per_cell);
    for (std::size_t i = 0; i < draft.bins.size(); ++i) {
      const CellDraft::Bin& bin = draft.bins[i];
      const RankRange& ranks = draft.cells[i / slots_per_cell].ranks;
      const auto size = static_cast<std::int32_t>(ranks.size);
      num_wide += bin.is_closed ? 1 : 0;
      num_idle += bin.items.empty() && !bin.is_closed ? 1 : 0;
      EXPECT_TRUE(!bin.is_closed || bin.items.empty());
      Tokens tokens = 0;
      for (const ItemId item : bin.items) {
        EXPECT_TRUE(seen.insert(item).second) << "item " << item << " twice";
        EXPECT_TRUE(problem.item_fits(size, item));
        tokens += problem.tokens(size, item);
      }
      EXPECT_LE(tokens, problem.capacity() * size);
      for (std::int64_t rank = ranks.first; !bin.items.empty() && rank < ranks.first + size;
           ++rank) {
        EXPECT_EQ(++taken[i % slots_per_cell][static_cast<std::size_t>(rank)], 1);
      }
    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(problem.num_items()));
    if (num_idle > 0) continue;  // a placeholder takes time too
    ++num_timed;
    const GridShape of_grid{.num_slots = num_slots, .capacity = problem.capacity()};
    const Grid grid = improved_grid(problem, draft, of_grid, 0, 0);
    const double planned = static_cast<double>(grid.time - room.transfers()) * shape.stages;
    const double rounded = 2.0 * num_slots * shape.stages * shape.stages;
    EXPECT_NEAR(planned, builder.time(), builder.time() * 1e-6 + rounded);
  }
  EXPECT_GT(num_found, 50);
  EXPECT_GT(num_slow, 20);
  EXPECT_GT(num_timed, 50);
  EXPECT_GT(num_wide, 0);
  EXPECT_GT(num_spent, 0);
}

}  // namespace
}  // namespace isochron
