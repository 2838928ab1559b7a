#include "isochron/check/cost_rule.h"

#include <gtest/gtest.h>

namespace isochron::check {
namespace {

TEST(CostRule, IsExactWithIntegerCoefficients) {
  // verl's workload; 2^53 would lose the last digit in double.
  EXPECT_EQ(find_cost({.quadratic_ns = 1, .linear_ns = 24576}, 1000, 7), 25'576'007);
  EXPECT_EQ(find_cost({.quadratic_ns = 1, .linear_ns = 1}, 2147483647, 0),
            4'611'686'016'279'904'256);
  EXPECT_EQ(find_cost({.quadratic_ns = 0, .linear_ns = 0}, 1, max_total_cost), max_total_cost);
}

TEST(CostRule, RoundsOnceAndHalvesAwayFromZero) {
  EXPECT_EQ(find_cost({.quadratic_ns = 0, .linear_ns = 0.5}, 1, 0), 1);
  EXPECT_EQ(find_cost({.quadratic_ns = 0.25, .linear_ns = 0.2}, 1, 0), 0);
  EXPECT_EQ(
      find_cost({.quadratic_ns = 1.5903579373104146, .linear_ns = 91057.53405864509}, 4096, 0),
      399'653'438);
}

TEST(CostRule, FindsNothingAbove2To62) {
  EXPECT_FALSE(find_cost({.quadratic_ns = 0, .linear_ns = 1}, 1, max_total_cost));
  EXPECT_FALSE(find_cost({.quadratic_ns = 4, .linear_ns = 0}, max_length, 0));
  EXPECT_FALSE(find_cost({.quadratic_ns = 1e300, .linear_ns = 0}, 1, 0));
  EXPECT_FALSE(find_cost({.quadratic_ns = 1e308, .linear_ns = 0.5}, max_length, 0));
}

}  // namespace
}  // namespace isochron::check
