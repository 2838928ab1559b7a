// Slots around one that is long, in pipelines with virtual stages: what they can do, and no more.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "isochron/core/random.h"
#include "isochron/plan/pipelines/long_slots.h"
#include "isochron/plan/pipelines/virtual_peak.h"
#include "tests/plan/slot_times.h"
#include "tests/support/num_instances.h"

namespace isochron {
namespace {

// The most that a linear program of all operations allows: 0.8453, 0.9060, 0.9163, 0.7601 and 0.56.
TEST(VirtualPeak, DoesNearlyAllThatThereIsTimeFor) {
  const PipelineShape shape{.stages = 4, .virtual_ = 2, .group = 4};
  struct Known {
    std::int32_t num_slots;
    double longest;
    double most;
  };
  for (const auto& [num_slots, longest, most] :
       {Known{8, 0.15, 0.8453}, Known{12, 0.15, 0.906}, Known{16, 0.15, 0.9163},
        Known{12, 0.2, 0.7601}, Known{8, 0.23, 0.56}}) {
    const auto heights = virtual_peak(shape, third, num_slots, longest, 0);
    const double work = std::accumulate(heights.begin(), heights.end(), 0.0);
    EXPECT_LE(work, most + 1e-4);
    EXPECT_GE(work, 0.98 * most) << num_slots << " slots, the longest " << longest;
  }
}

TEST(VirtualPeak, OneSlotHasNoTimeToBeLongerThanItsJourney) {
  const PipelineShape shape{.stages = 4, .virtual_ = 2, .group = 4};
  EXPECT_TRUE(virtual_peak(shape, third, 8, 0.2501, 0).empty());
  EXPECT_TRUE(virtual_peak(shape, third, 8, 0.24, 0.2).empty()) << "the others leave no time";
  EXPECT_TRUE(virtual_peak(shape, third, 40, 0.1, 0.05).empty()) << "too many";
  const auto alone = virtual_peak(shape, third, 4, 0.2499, 0);
  ASSERT_EQ(alone.size(), 4U);
  EXPECT_EQ(*std::max_element(alone.begin(), alone.end()), 0.2499);
}

TEST(VirtualPeak, KeepsItsLimitsOnEveryShape) {
  int num_found = 0;
  for (std::uint64_t seed = 0; seed < num_instances(300); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const PipelineShape shape = random_virtual_shape(random);
    const double forward_share = 0.1 + 0.8 * random.unit();
    const auto count = static_cast<std::int32_t>(shape.group * random.between(1, 7));
    const double longest = (0.2 + 0.85 * random.unit()) / shape.stages;
    const double shortest = random.below(2) == 0 ? 0 : 0.3 * longest * random.unit() / count;
    const auto heights = virtual_peak(shape, forward_share, count, longest, shortest);
    if (heights.empty()) {
      EXPECT_GT(longest * shape.stages + shortest * count, 0.8);
      continue;
    }
    ++num_found;
    ASSERT_EQ(heights.size(), static_cast<std::size_t>(count));
    EXPECT_NEAR(*std::max_element(heights.begin(), heights.end()), longest, 1e-12);
    EXPECT_GE(*std::min_element(heights.begin(), heights.end()), shortest * (1 - 1e-9));
    EXPECT_LE(time_of(shape, in_nanoseconds(heights), forward_share), 1.0001e12);
  }
  EXPECT_GT(num_found, 200);
}

// How far the slots are from a line, of which the longest is the one at `peak`, in parts of it.
double distance(const PipelineShape& shape, double forward_share, const RoomLine& line,
                const std::vector<double>& heights, std::size_t peak) {
  const double time = time_of(shape, in_nanoseconds(heights), forward_share) / 1e12;
  const double work = std::accumulate(heights.begin(), heights.end(), 0.0);
  return (time - work * (1 - line.slope)) / heights[peak] - line.wait;
}

// Slots that are changed one by one until they are as close to a line as that gets.
TEST(LongSlots, NoSlotsBreakALine) {
  for (std::uint64_t seed = 0; seed < num_instances(120); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const PipelineShape shape = random_virtual_shape(random);
    const double forward_share = seed % 2 == 0 ? third : 0.1 + 0.8 * random.unit();
    const std::vector<RoomLine> lines = long_slot_lines(shape, forward_share);
    ASSERT_FALSE(lines.empty());
    const RoomLine& line = lines[random.below(lines.size())];
    const auto count = static_cast<std::size_t>(shape.group * random.between(1, 5));
    const std::size_t peak = random.below(count);
    std::vector<double> heights(count);
    for (double& height : heights) height = random.unit() * random.unit();
    heights[peak] = 1;
    double least = distance(shape, forward_share, line, heights, peak);
    for (const double step : {0.3, 0.1, 0.03}) {
      for (std::size_t i = 0; i < 4 * count; ++i) {
        const std::size_t slot = random.below(count);
        if (slot == peak) continue;
        const double before = heights[slot];
        heights[slot] = std::clamp(before + step * (2 * random.unit() - 1), 0.0, 1.0);
        const double changed = distance(shape, forward_share, line, heights, peak);
        if (changed > least) heights[slot] = before;
        least = std::min(least, changed);
      }
    }
    EXPECT_GE(least, -1e-6) << shape.stages << " stages, " << shape.virtual_ << " virtual, group "
                            << shape.group << ", slope " << line.slope << ", wait " << line.wait;
  }
}

// Slots with which the least time is reached, by a linear program of all operations.
TEST(LongSlots, LinesAreNearTheBestSlots) {
  const PipelineShape shape{.stages = 4, .virtual_ = 2, .group = 4};
  const std::vector<double> steep = {0.133, 0.133, 0.133, 0.133, 0.133, 1, 0.933, 0.867};
  const std::vector<double> flat = {0.22, 0.22, 0.22, 0.22, 0.56, 1,
                                    0.77, 0.52, 0.5,  0.5,  0.5,  0.5};
  for (const auto& [heights, within] : {std::pair(steep, 0.15), std::pair(flat, 0.3)}) {
    double least = 10;
    for (const RoomLine& line : long_slot_lines(shape, third)) {
      least = std::min(least, distance(shape, third, line, heights, 5));
    }
    EXPECT_GE(least, 0);
    EXPECT_LE(least, within);
  }
}

TEST(LongSlots, OneSlotAloneTakesItsJourney) {
  // Three stages of two chunks: whatever the line, a slot alone takes three times its work on one.
  for (const RoomLine& line : long_slot_lines({.stages = 3, .virtual_ = 2, .group = 3}, third)) {
    EXPECT_LE(line.wait + 1 - line.slope, 3 + 1e-9);
    EXPECT_GT(line.slope, 0);
    EXPECT_LT(line.slope, 1);
  }
}

}  // namespace
}  // namespace isochron
