#include "isochron/schedule/known_schedule.h"

#include <gtest/gtest.h>

#include "isochron/schedule/execution_order.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

TEST(KnownSchedule, IsTheScheduleAndAnOrderOfAllStages) {
  const PipelineShape interleaved{.stages = 3, .virtual_ = 2, .group = 4};
  for (const PipelineShape& shape : {PipelineShape{}, PipelineShape{.stages = 4}, interleaved}) {
    for (const Pass pass : {Pass::train, Pass::forward}) {
      for (const std::int32_t num_slots : {0, 4, 4, 1200}) {
        const auto known = known_schedule(shape, num_slots, pass);
        EXPECT_EQ(known->stages, pipeline_schedule(shape, num_slots, pass));
        EXPECT_EQ(known->operations, find_execution_order(known->stages, shape, num_slots));
      }
    }
  }
}

TEST(KnownSchedule, IsKeptIfItIsSmall) {
  const PipelineShape shape{.stages = 2};
  EXPECT_EQ(known_schedule(shape, 6, Pass::train), known_schedule(shape, 6, Pass::train));
  EXPECT_NE(known_schedule(shape, 6, Pass::train), known_schedule(shape, 6, Pass::forward));
  EXPECT_NE(known_schedule(shape, 3000, Pass::train), known_schedule(shape, 3000, Pass::train));
}

// What is known of the same stages does not excuse shares that are none.
TEST(KnownSchedule, RefusesWhatTheScheduleRefuses) {
  PipelineShape shape{.stages = 2};
  static_cast<void>(known_schedule(shape, 2, Pass::train));
  shape.shares = {0.5, 0.6};
  EXPECT_EQ(message_of([&] { static_cast<void>(known_schedule(shape, 2, Pass::train)); }),
            message_of([&] { static_cast<void>(pipeline_schedule(shape, 2, Pass::train)); }));
  shape = {.stages = 2, .virtual_ = 2, .group = 2};
  EXPECT_EQ(message_of([&] { static_cast<void>(known_schedule(shape, 3, Pass::train)); }),
            "[schedule] num_slots is 3, must be a multiple of pipeline.group 2");
}

}  // namespace
}  // namespace isochron
