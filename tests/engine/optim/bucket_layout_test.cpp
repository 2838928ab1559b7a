#include "isochron/engine/optim/bucket_layout.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace isochron {
namespace {

Parameter parameter(std::int64_t elements, at::ScalarType dtype = at::kFloat) {
  return {"p", at::zeros({elements}, dtype)};
}

TEST(BucketLayout, GoesBackwardsThroughTheForward) {
  const std::vector<Parameter> parameters{parameter(64), parameter(10), parameter(100)};
  const auto layouts = bucket_layouts(parameters, 2, 1 << 20);
  ASSERT_EQ(layouts.size(), 1u);
  // On multiples of 64, the whole a multiple of 2 ranks * 16.
  EXPECT_EQ(layouts[0], (BucketLayout{{{2, 0, 100}, {1, 128, 10}, {0, 192, 64}}, 128}));
}

TEST(BucketLayout, BeginsAnotherBucketWhereOneIsFullOrTheTypeChanges) {
  const std::vector<Parameter> parameters{parameter(64), parameter(64), parameter(1000),
                                          parameter(64, at::kBFloat16)};
  const auto layouts = bucket_layouts(parameters, 1, 128 * 4);
  ASSERT_EQ(layouts.size(), 3u);
  EXPECT_EQ(layouts[0].slices, (std::vector<BucketSlice>{{3, 0, 64}}));
  EXPECT_EQ(layouts[1].slices, (std::vector<BucketSlice>{{2, 0, 1000}}));  // larger than a bucket
  EXPECT_EQ(layouts[2].slices, (std::vector<BucketSlice>{{1, 0, 64}, {0, 64, 64}}));
}

TEST(BucketLayout, KeepsJoinedParametersTogetherInTheirOwnOrder) {
  std::vector<Parameter> parameters{parameter(64), parameter(10), parameter(20), parameter(30),
                                    parameter(5)};
  parameters[2].joined = true;
  parameters[3].joined = true;
  const auto layouts = bucket_layouts(parameters, 1, 40 * 4);
  ASSERT_EQ(layouts.size(), 3u);
  EXPECT_EQ(layouts[0].slices, (std::vector<BucketSlice>{{4, 0, 5}}));
  EXPECT_EQ(layouts[1].slices, (std::vector<BucketSlice>{{1, 0, 10}, {2, 10, 20}, {3, 30, 30}}));
  EXPECT_EQ(layouts[2].slices, (std::vector<BucketSlice>{{0, 0, 64}}));
}

}  // namespace
}  // namespace isochron
