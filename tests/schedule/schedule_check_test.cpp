#include "isochron/schedule/schedule_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "isochron/core/random.h"
#include "isochron/schedule/in_flight.h"

namespace isochron {
namespace {

TEST(ScheduleCheck, AcceptsWhatPipelineScheduleMakes) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    const auto draw = [&](std::int64_t low, std::int64_t high) {
      return static_cast<std::int32_t>(random.between(low, high));
    };
    PipelineShape shape = {.stages = draw(1, 17)};
    std::int32_t num_slots = draw(0, 40);
    if (shape.stages > 1 && draw(0, 1) == 1) {
      shape.virtual_ = draw(2, 6);
      shape.group = draw(shape.stages, 3 * shape.stages);
      num_slots = shape.group * draw(0, 4);
    }
    const Pass pass = draw(0, 3) == 0 ? Pass::forward : Pass::train;
    const auto schedule = pipeline_schedule(shape, num_slots, pass);
    EXPECT_EQ(find_schedule_violation(schedule, shape, num_slots, pass), std::nullopt)
        << "seed " << seed;
  }
}

// What the check says of 1F1B of 3 slots on 2 stages after `change`.
template <class Change>
std::string violation_after(Change change) {
  const PipelineShape shape = {.stages = 2};
  PipelineSchedule schedule = pipeline_schedule(shape, 3, Pass::train);
  change(schedule);
  return find_schedule_violation(schedule, shape, 3, Pass::train).value_or("none");
}

TEST(ScheduleCheck, NamesTheFirstViolation) {
  using Schedule = PipelineSchedule;
  EXPECT_EQ(violation_after([](Schedule&) {}), "none");
  EXPECT_EQ(violation_after([](Schedule& s) { s.pop_back(); }), "there are 1 stages, must be 2");
  EXPECT_EQ(violation_after([](Schedule& s) { s[1].pop_back(); }),
            "1 of 12 operations are missing");
  EXPECT_EQ(violation_after([](Schedule& s) { s[1][0] = s[1][2]; }),
            "stage 1 has the forward of slot 1 on chunk 1 twice");
  EXPECT_EQ(violation_after([](Schedule& s) { std::swap(s[0][0], s[1][0]); }),
            "stage 0 has the forward of slot 0 on chunk 1, which is on stage 1");
  EXPECT_EQ(violation_after([](Schedule& s) { s[0][0].slot = 3; }),
            "stage 0 has the forward of slot 3 on chunk 0, which is not in the step");
  // F0 B0 F1 B1 F2 B2 on stage 1 with the first two exchanged.
  EXPECT_EQ(violation_after([](Schedule& s) { std::swap(s[1][0], s[1][1]); }),
            "the stages wait for each other for ever");
  // F0 F1 B0 F2 B1 B2 on stage 0 with B0 after F2.
  EXPECT_EQ(violation_after([](Schedule& s) { std::swap(s[0][2], s[0][3]); }),
            "stage 0 has 3 visits in flight, must be at most 2");
}

TEST(ScheduleCheck, KnowsNoBackwardInAForwardPass) {
  const PipelineShape shape = {};
  EXPECT_EQ(
      find_schedule_violation(pipeline_schedule(shape, 1, Pass::train), shape, 1, Pass::forward),
      "stage 0 has the backward of slot 0 on chunk 0, which is not in the step");
}

TEST(PeakInFlight, IsTheLargestWindowOfConsecutiveSlots) {
  // Stage 0 of three holds three slots: 1 + 5 + 2, then 5 + 2 + 4, then 2 + 4 + 3; stage 2 one.
  const std::vector<std::int64_t> bytes = {1, 5, 2, 4, 3};
  const auto schedule = pipeline_schedule({.stages = 3}, 5, Pass::train);
  const auto bytes_of = [&](std::int32_t slot, std::int32_t) {
    return bytes[static_cast<std::size_t>(slot)];
  };
  EXPECT_EQ(peak_in_flight(schedule[0], Pass::train, bytes_of), 11);
  EXPECT_EQ(peak_in_flight(schedule[1], Pass::train, bytes_of), 7);
  EXPECT_EQ(peak_in_flight(schedule[2], Pass::train, bytes_of), 5);
}

TEST(PeakInFlight, OfInterleavedUniformSlotsIsThatOfTheFormula) {
  // Stages x chunks of the first stage, times 1 + (p - 1) / (p v).
  for (const std::int32_t stages : {2, 3, 4, 8}) {
    for (const std::int32_t num_virtual : {2, 3, 4}) {
      const PipelineShape shape = {.stages = stages, .virtual_ = num_virtual, .group = stages};
      const auto schedule = pipeline_schedule(shape, 8 * stages, Pass::train);
      EXPECT_EQ(
          peak_in_flight(schedule[0], Pass::train, [](std::int32_t, std::int32_t) { return 1; }),
          stages * num_virtual + stages - 1);
    }
  }
}

}  // namespace
}  // namespace isochron
