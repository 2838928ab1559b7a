// The linear program of covers: by hand, and primal beside dual on random sets.

#include "isochron/plan/bundles/set_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "isochron/core/random.h"
#include "isochron/plan/bundles/cover_basis.h"
#include "tests/support/num_instances.h"

namespace isochron {
namespace {

SetProgram::Set set_of(std::size_t num_elements, const std::vector<std::uint8_t>& members,
                       double cost) {
  SetProgram::Set set(num_elements, cost);
  std::copy(members.begin(), members.end(), set.members.begin());
  return set;
}

double sum_of(std::span<const double> numbers) {
  double sum = 0;
  for (const double number : numbers) sum += number;
  return sum;
}

// Three pairs of three elements: half of each covers all, which no two whole ones do.
TEST(CoverBasis, AColumnThatCoversTwoTakesThePlaceOfOne) {
  CoverBasis basis;
  basis.begin(std::vector<double>{1, 0.5});
  EXPECT_EQ(basis.uses()[1], 2);  // twice half of it
  basis.prices()[0] = 1;
  basis.prices()[1] = 2;
  basis.begin_column();
  basis.add(0, 1);
  basis.add(1, 1);
  EXPECT_EQ(basis.exchange(1 + 2 - 1), 0U);  // it costs 1
  EXPECT_EQ(basis.uses()[0], 1);
  EXPECT_EQ(basis.uses()[1], 0);
  EXPECT_EQ(basis.prices()[0], -1);  // both together are worth what covers them
  EXPECT_EQ(basis.prices()[1], 2);
  basis.begin_column();
  basis.add(0, -1);
  EXPECT_EQ(basis.exchange(1), 1U);  // more of the first than there is: the other is free again
  EXPECT_EQ(basis.prices()[0], 0);
  EXPECT_EQ(basis.prices()[1], 1);
  basis.begin_column();
  basis.add(1, -1);
  EXPECT_FALSE(basis.exchange(1));  // as much as one likes
}

TEST(SetProgram, HalvesOfThreePairsCoverATriangle) {
  const std::vector<SetProgram::Set> pairs = {set_of(3, {0, 1}, 1), set_of(3, {1, 2}, 1),
                                              set_of(3, {0, 2}, 1)};
  SetProgram program(3, 2, pairs);
  EXPECT_NEAR(sum_of(program.prices(3)), 1.5, 1e-9);
  for (const double use : program.uses(3)) EXPECT_NEAR(use, 0.5, 1e-9);
  // Without the last pair one element is alone, and with none all are.
  EXPECT_NEAR(sum_of(program.prices(2)), 3, 1e-9);
  EXPECT_NEAR(sum_of(program.prices(0)), 6, 1e-9);
  EXPECT_NEAR(sum_of(program.prices(3)), 1.5, 1e-9);
}

TEST(SetProgram, WhatIsCheapAloneHasNoSet) {
  const std::vector<SetProgram::Set> pair = {set_of(2, {0, 1}, 1)};
  SetProgram program(2, 0.25, pair);
  EXPECT_NEAR(sum_of(program.prices(1)), 0.5, 1e-9);
  EXPECT_EQ(program.uses(1), std::vector<double>{0});
}

// No set costs less than its elements, and a cover costs as much as all elements: so both are best.
TEST(SetProgram, PricesAddUpToWhatTheCoverCosts) {
  for (std::uint64_t seed = 0; seed < num_asked(500); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const auto size = static_cast<std::size_t>(random.between(1, 24));
    const double alone = static_cast<double>(random.between(1, 20)) / 10;
    std::vector<SetProgram::Set> sets;
    for (std::int64_t k = random.between(0, 400); k > 0; --k) {
      std::vector<std::uint8_t> members;
      for (std::int64_t m = random.between(1, 5); m > 0; --m) {
        const auto member = static_cast<std::uint8_t>(random.below(size));
        if (std::find(members.begin(), members.end(), member) == members.end()) {
          members.push_back(member);
        }
      }
      sets.push_back(set_of(size, members, static_cast<double>(random.between(5, 20)) / 10));
    }
    SetProgram program(size, alone, sets);
    for (int round = 0; round < 4; ++round) {
      const auto count = static_cast<std::size_t>(random.below(sets.size() + 1));
      const auto prices = program.prices(count);
      for (const double price : prices) EXPECT_LE(price, alone + 1e-9);
      const std::vector<double> uses = program.uses(count);
      ASSERT_EQ(uses.size(), count);
      std::vector<double> left(size, 1);
      double cost = 0;
      for (std::size_t k = 0; k < count; ++k) {
        double worth = 0;
        for (const std::uint8_t member : sets[k].members) {
          if (member == size) continue;
          worth += prices[member];
          left[member] -= uses[k];
        }
        EXPECT_LE(worth, sets[k].cost + 1e-9);
        EXPECT_GE(uses[k], 0);
        cost += uses[k] * sets[k].cost;
      }
      for (const double each : left) {
        EXPECT_GE(each, -1e-6);
        cost += each * alone;
      }
      EXPECT_NEAR(sum_of(prices), cost, 1e-6);
    }
  }
}

}  // namespace
}  // namespace isochron
