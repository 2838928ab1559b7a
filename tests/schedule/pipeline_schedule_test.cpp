#include "isochron/schedule/pipeline_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "isochron/schedule/execution_order.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

// "F0 F1 B0": direction and slot, with the chunk behind a dot if a stage has several.
std::string text_of(const std::vector<PipelineOperation>& operations, std::int32_t num_virtual) {
  std::string text;
  for (const PipelineOperation& operation : operations) {
    if (!text.empty()) text += ' ';
    text += operation.direction == Direction::forward ? 'F' : 'B';
    text += std::to_string(operation.slot);
    if (num_virtual > 1) text.append(1, '.').append(std::to_string(operation.chunk));
  }
  return text;
}

std::vector<std::string> texts_of(const PipelineShape& shape, std::int32_t num_slots,
                                  Pass pass = Pass::train) {
  std::vector<std::string> texts;
  for (const auto& operations : pipeline_schedule(shape, num_slots, pass)) {
    texts.push_back(text_of(operations, shape.virtual_));
  }
  return texts;
}

using Texts = std::vector<std::string>;

TEST(PipelineSchedule, AlternatesAfterAWarmUp) {
  EXPECT_EQ(texts_of({.stages = 2}, 4),
            (Texts{"F0 F1 B0 F2 B1 F3 B2 B3", "F0 B0 F1 B1 F2 B2 F3 B3"}));
  EXPECT_EQ(texts_of({.stages = 3}, 4), (Texts{"F0 F1 F2 B0 F3 B1 B2 B3", "F0 F1 B0 F2 B1 F3 B2 B3",
                                               "F0 B0 F1 B1 F2 B2 F3 B3"}));
}

TEST(PipelineSchedule, RunsOneStageSlotBySlot) {
  EXPECT_EQ(texts_of({}, 3), (Texts{"F0 B0 F1 B1 F2 B2"}));
}

TEST(PipelineSchedule, HasFewerSlotsThanStages) {
  EXPECT_EQ(texts_of({.stages = 3}, 0), (Texts{"", "", ""}));
  EXPECT_EQ(texts_of({.stages = 3}, 1), (Texts{"F0 B0", "F0 B0", "F0 B0"}));
  EXPECT_EQ(texts_of({.stages = 3}, 2), (Texts{"F0 F1 B0 B1", "F0 F1 B0 B1", "F0 B0 F1 B1"}));
}

TEST(PipelineSchedule, InterleavesAsMegatronDoes) {
  // Warm-up: 2 (2 - 1 - stage) + (2 - 1) * 2, which is 4 and 2.
  EXPECT_EQ(texts_of({.stages = 2, .virtual_ = 2, .group = 2}, 4),
            (Texts{"F0.0 F1.0 F0.2 F1.2 F2.0 B0.2 F3.0 B1.2 F2.2 B0.0 F3.2 B1.0 B2.2 B3.2 B2.0 "
                   "B3.0",
                   "F0.1 F1.1 F0.3 B0.3 F1.3 B1.3 F2.1 B0.1 F3.1 B1.1 F2.3 B2.3 F3.3 B3.3 B2.1 "
                   "B3.1"}));
}

TEST(PipelineSchedule, KeepsAWiderGroupTogether) {
  // Warm-up 2 * 1 + 1 * 3 = 5 and 3.
  EXPECT_EQ(texts_of({.stages = 2, .virtual_ = 2, .group = 3}, 3),
            (Texts{"F0.0 F1.0 F2.0 F0.2 F1.2 F2.2 B0.2 B1.2 B2.2 B0.0 B1.0 B2.0",
                   "F0.1 F1.1 F2.1 F0.3 B0.3 F1.3 B1.3 F2.3 B2.3 B0.1 B1.1 B2.1"}));
}

TEST(PipelineSchedule, SaysTheSameOfTheFirstStageAlone) {
  for (const PipelineShape& shape :
       {PipelineShape{.stages = 3}, PipelineShape{.stages = 2, .virtual_ = 3, .group = 4}}) {
    for (const Pass pass : {Pass::train, Pass::forward}) {
      EXPECT_EQ(first_stage_schedule(shape, 8, pass), pipeline_schedule(shape, 8, pass).front());
    }
  }
}

TEST(PipelineSchedule, RunsForwardsAloneInOrder) {
  EXPECT_EQ(texts_of({.stages = 2}, 3, Pass::forward), (Texts{"F0 F1 F2", "F0 F1 F2"}));
  EXPECT_EQ(texts_of({.stages = 2, .virtual_ = 2, .group = 2}, 2, Pass::forward),
            (Texts{"F0.0 F1.0 F0.2 F1.2", "F0.1 F1.1 F0.3 F1.3"}));
}

TEST(PipelineSchedule, NamesWhatItRejects) {
  const auto message = [](const PipelineShape& shape, std::int32_t num_slots) {
    return message_of([&] { (void)pipeline_schedule(shape, num_slots, Pass::train); });
  };
  EXPECT_EQ(message({.stages = 2}, -1), "[schedule] num_slots is -1, must be at least 0");
  EXPECT_EQ(message({.stages = 2, .virtual_ = 2, .group = 2}, 3),
            "[schedule] num_slots is 3, must be a multiple of pipeline.group 2");
  EXPECT_EQ(message({.stages = 0}, 3), "[plan] pipeline.stages is 0, must be 1 to 4096");
  EXPECT_EQ(message({.stages = 3, .virtual_ = 2, .group = 2}, 2),
            "[plan] pipeline.group is 2, must be at least the 3 stages");
}

TEST(ExecutionOrder, ExistsForEveryShape) {
  for (const Pass pass : {Pass::train, Pass::forward}) {
    for (const std::int32_t stages : {1, 2, 3, 4, 5, 7, 8, 13}) {
      for (std::int32_t num_slots = 0; num_slots < 20; ++num_slots) {
        const PipelineShape shape = {.stages = stages};
        EXPECT_TRUE(
            find_execution_order(pipeline_schedule(shape, num_slots, pass), shape, num_slots))
            << stages << " stages, " << num_slots << " slots";
      }
    }
    for (const std::int32_t stages : {2, 3, 4, 5, 7, 8}) {
      for (const std::int32_t num_virtual : {2, 3, 4, 7}) {
        for (std::int32_t group = stages; group <= 2 * stages + 1; ++group) {
          for (std::int32_t rounds = 0; rounds < 4; ++rounds) {
            const PipelineShape shape = {.stages = stages, .virtual_ = num_virtual, .group = group};
            const std::int32_t num_slots = rounds * group;
            EXPECT_TRUE(
                find_execution_order(pipeline_schedule(shape, num_slots, pass), shape, num_slots))
                << stages << " stages of " << num_virtual << ", groups of " << group << ", "
                << num_slots << " slots";
          }
        }
      }
    }
  }
}

TEST(ExecutionOrder, IsMissingWhereStagesWaitForEachOther) {
  const PipelineShape shape = {.stages = 2};
  PipelineSchedule schedule = pipeline_schedule(shape, 2, Pass::train);
  ASSERT_EQ(text_of(schedule[0], 1), "F0 F1 B0 B1");
  std::swap(schedule[0][1], schedule[0][3]);  // stage 0 waits for B1 before it sends slot 1
  EXPECT_FALSE(find_execution_order(schedule, shape, 2));
}

}  // namespace
}  // namespace isochron
