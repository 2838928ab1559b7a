#include "isochron/engine/train/horizon.h"

#include <gtest/gtest.h>

#include <vector>

#include "isochron/engine/train/learning_rate.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

std::vector<std::int64_t> steps_where(const Horizon& horizon,
                                      bool (Horizon::*is_due)(std::int64_t) const) {
  std::vector<std::int64_t> steps;
  for (std::int64_t step = 1; step <= horizon.num_steps; ++step) {
    if ((horizon.*is_due)(step)) steps.push_back(step);
  }
  return steps;
}

using Steps = std::vector<std::int64_t>;

TEST(Horizon, EndsWithTheEpochsOrTheStepsWhicheverIsFirst) {
  EXPECT_EQ(horizon_of(10, 4, false, {.total_epochs = 3}).num_steps, 6);
  EXPECT_EQ(horizon_of(10, 4, false, {.total_epochs = 3, .total_training_steps = 5}).num_steps, 5);
  EXPECT_EQ(horizon_of(10, 4, false, {.total_epochs = 3, .total_training_steps = 50}).num_steps, 6);
  EXPECT_EQ(
      horizon_of(10, 1, false, {.total_epochs = INT64_MAX, .total_training_steps = 7}).num_steps,
      7);
}

TEST(Horizon, NeedsRowsForOneBatch) {
  EXPECT_EQ(horizon_of(4, 4, false, {}).steps_per_epoch, 1);
  EXPECT_EQ(message_of([] { (void)horizon_of(3, 4, false, {}); }),
            "[data] data.train_files hold 3 rows, must be at least data.train_batch_size = 4");
}

TEST(Horizon, SavesAndValidatesAfterTheLastStepWhateverTheFrequency) {
  const Horizon never = horizon_of(12, 4, true, {.total_epochs = 2});
  EXPECT_EQ(steps_where(never, &Horizon::is_save_due), Steps({6}));
  EXPECT_EQ(steps_where(never, &Horizon::is_test_due), Steps({6}));
  const Horizon often = horizon_of(12, 4, true,
                                   {.total_epochs = 2,
                                    .total_training_steps = 5,
                                    .save_freq = {.steps = 2},
                                    .test_freq = {.each_epoch = true}});
  EXPECT_EQ(steps_where(often, &Horizon::is_save_due), Steps({2, 4, 5}));
  EXPECT_EQ(steps_where(often, &Horizon::is_test_due), Steps({3, 5}));
}

TEST(Horizon, NeverValidatesWithoutASet) {
  const Horizon horizon = horizon_of(12, 4, false, {.test_freq = {.steps = 1}});
  EXPECT_EQ(steps_where(horizon, &Horizon::is_test_due), Steps({}));
}

TEST(Horizon, CountsEpochsFromTheFirstStep) {
  const Horizon horizon = horizon_of(10, 4, false, {});
  EXPECT_EQ(horizon.left_out_rows, 2);
  EXPECT_EQ(horizon.epoch_of(1), 0);
  EXPECT_EQ(horizon.epoch_of(2), 0);
  EXPECT_EQ(horizon.epoch_of(3), 1);
  EXPECT_TRUE(horizon.is_epoch_end(2));
  EXPECT_FALSE(horizon.is_epoch_end(3));
}

// SPEC I.7.
TEST(LearningRate, FollowsTheGoldenCosine) {
  const LearningRate rate({.lr = 1,
                           .lr_scheduler_type = LearningRateSchedule::cosine,
                           .lr_warmup_steps = 5,
                           .min_lr_ratio = 0.1},
                          20);
  const std::vector<double> golden = {0, .2, .4, .6, .8, 1, .990166, .961095};
  for (std::size_t i = 0; i < golden.size(); ++i) {
    EXPECT_NEAR(rate.factor(static_cast<std::int64_t>(i)), golden[i], 5e-7) << i;
  }
  EXPECT_NEAR(rate.factor(12), .597038, 5e-7);
  EXPECT_NEAR(rate.factor(20), .1, 1e-12);
  EXPECT_NEAR(rate.factor(27), .1, 0.5);  // beyond the end the wave rises again, never below .1
  EXPECT_EQ(rate.of_step(1), 0);          // the first update of a warm-up changes nothing
  EXPECT_EQ(rate.of_step(6), 1);
}

TEST(LearningRate, WarmsUpByStepsOrByTheRatio) {
  const LearningRate by_steps({.lr = 2, .lr_warmup_steps = 4, .lr_warmup_steps_ratio = 0.5}, 10);
  EXPECT_EQ(by_steps.of_step(2), 0.5);
  EXPECT_EQ(by_steps.of_step(5), 2);
  const LearningRate by_ratio({.lr = 2, .lr_warmup_steps = 0, .lr_warmup_steps_ratio = 0.25}, 10);
  EXPECT_EQ(by_ratio.of_step(2), 1);  // int(0.25 * 10) = 2 steps
  EXPECT_EQ(by_ratio.of_step(3), 2);
  EXPECT_EQ(LearningRate({.lr = 2}, 10).of_step(1), 2);
}

TEST(LearningRate, SpansItsOwnStepsIfGivenAndMayCountFromOne) {
  const OptimOptions cosine = {.lr = 1, .lr_scheduler_type = LearningRateSchedule::cosine};
  OptimOptions half = cosine;
  half.total_training_steps = 5;
  EXPECT_NEAR(LearningRate(half, 10).factor(5), 0, 1e-12);
  OptimOptions from_one = cosine;
  from_one.zero_indexed_step = false;
  EXPECT_EQ(LearningRate(from_one, 10).factor(3), LearningRate(cosine, 10).factor(4));
}

}  // namespace
}  // namespace isochron
