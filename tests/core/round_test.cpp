#include "isochron/core/round.h"

#include <gtest/gtest.h>

#include <cmath>

#include "isochron/core/random.h"

namespace isochron {
namespace {

template <class Check>
void for_many_numbers(const Check& check) {
  for (const double number : {0.0, 0.25, 0.5, 1.5, 2.5, 0.49999999999999994, 0x1p52 - 0.5,
                              0x1p52 + 1, 0x1p53 + 2, 0x1p62}) {
    check(number);
    check(std::nextafter(number, 0));
  }
  Random random(1);
  for (int i = 0; i < 10'000; ++i) {
    check(std::ldexp(static_cast<double>(random.below(1 << 30)),
                     static_cast<int>(random.below(32)) - 20));
  }
}

TEST(Rounded, IsLlround) {
  for_many_numbers(
      [](double number) { EXPECT_EQ(rounded(number), std::llround(number)) << number; });
}

TEST(Rounded, UpIsCeil) {
  for_many_numbers([](double number) {
    EXPECT_EQ(static_cast<double>(rounded_up(number)), std::ceil(number)) << number;
  });
}

}  // namespace
}  // namespace isochron
