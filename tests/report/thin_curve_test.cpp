#include "isochron/report/thin_curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace isochron {
namespace {

using testing::Contains;
using testing::ElementsAre;

MetricCurve long_curve(std::int64_t count) {
  MetricCurve curve = {.name = "train/loss", .steps = {}, .values = {}};
  for (std::int64_t step = 1; step <= count; ++step) {
    curve.steps.push_back(step);
    curve.values.push_back(static_cast<double>(step * 7919 % 1000));
  }
  return curve;
}

TEST(ThinCurve, LeavesAShortCurveAsItIs) {
  const MetricCurve curve = long_curve(40);
  const MetricCurve thinned = thin_curve(curve, 10);
  EXPECT_EQ(thinned.steps, curve.steps);
  EXPECT_EQ(thinned.values, curve.values);
}

TEST(ThinCurve, KeepsFirstLastSmallestAndLargestOfAStretch) {
  const MetricCurve curve = {.name = "x",
                             .steps = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
                             .values = {5, 9, 1, 5, 5, 5, 0, 5, 7, 5}};
  const MetricCurve thinned = thin_curve(curve, 2);
  EXPECT_THAT(thinned.steps, ElementsAre(0, 1, 2, 4, 5, 6, 8, 9));
  EXPECT_THAT(thinned.values, ElementsAre(5, 9, 1, 5, 5, 0, 7, 5));
}

TEST(ThinCurve, KeepsASingleSpikeAmongAHundredThousandSteps) {
  MetricCurve curve = long_curve(100'000);
  curve.values[61'803] = 1e6;
  curve.values[27'182] = -1e6;
  const MetricCurve thinned = thin_curve(curve, 700);
  EXPECT_LE(thinned.steps.size(), 4u * 700);
  EXPECT_THAT(thinned.values, Contains(1e6));
  EXPECT_THAT(thinned.values, Contains(-1e6));
  EXPECT_EQ(thinned.steps.front(), 1);
  EXPECT_EQ(thinned.steps.back(), 100'000);
  EXPECT_TRUE(std::is_sorted(thinned.steps.begin(), thinned.steps.end()));
}

TEST(ThinCurve, CutsByStepAndNotByPlace) {
  MetricCurve curve = {.name = "x", .steps = {}, .values = {}};
  for (std::int64_t step = 0; step < 100; ++step) {  // dense at first, then two far away
    curve.steps.push_back(step);
    curve.values.push_back(1);
  }
  curve.steps.insert(curve.steps.end(), {900'000, 999'999});
  curve.values.insert(curve.values.end(), {2, 3});
  EXPECT_THAT(thin_curve(curve, 10).steps, ElementsAre(0, 99, 900'000, 999'999));
}

TEST(ThinCurve, LeavesAGapWhereAStretchHasNoNumbers) {
  MetricCurve curve = long_curve(100);
  std::fill(curve.values.begin() + 50, curve.values.end(), std::nan(""));
  const MetricCurve thinned = thin_curve(curve, 2);
  EXPECT_TRUE(std::isnan(thinned.values.back()));
  EXPECT_EQ(std::count_if(thinned.values.begin(), thinned.values.end(),
                          [](double value) { return std::isnan(value); }),
            2);
}

}  // namespace
}  // namespace isochron
