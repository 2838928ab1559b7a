#include "apps/isochron/rank_speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/message_of.h"

namespace isochron {
namespace {

using testing::ElementsAre;

std::string message_of_text(std::string_view text) {
  return message_of([&] { (void)parse_rank_speed(text); });
}

TEST(RankSpeed, IsOneNumberALine) {
  EXPECT_THAT(parse_rank_speed("# two nodes\n1\n\n 0.5 \r\n2e0"), ElementsAre(1, 0.5, 2));
}

TEST(RankSpeed, MayBeAJsonArray) {
  EXPECT_THAT(parse_rank_speed("\n[1, 0.5,\n1000]\n"), ElementsAre(1, 0.5, 1000));
}

TEST(RankSpeed, NamesTheLineOfWhatIsNoSpeed) {
  EXPECT_EQ(message_of_text("1\n# x\nfast\n"),
            "[rank-speed] line 3: the speed is \"fast\", must be a number from 0.001 to 1000");
  EXPECT_EQ(message_of_text("1\n0\n"),
            "[rank-speed] line 2: the speed is \"0\", must be a number from 0.001 to 1000");
  EXPECT_EQ(message_of_text("1001"),
            "[rank-speed] line 1: the speed is \"1001\", must be a number from 0.001 to 1000");
  EXPECT_EQ(message_of_text("nan"),
            "[rank-speed] line 1: the speed is \"nan\", must be a number from 0.001 to 1000");
  EXPECT_EQ(message_of_text("1 2"),
            "[rank-speed] line 1: the speed is \"1 2\", must be a number from 0.001 to 1000");
  EXPECT_EQ(message_of_text("[1, true]"),
            "[rank-speed] position 1: the speed is true, must be a number from 0.001 to 1000");
  EXPECT_EQ(message_of_text("[]"), "[rank-speed] no speed found, must be one for each rank");
  EXPECT_EQ(message_of_text(""), "[rank-speed] no speed found, must be one for each rank");
}

}  // namespace
}  // namespace isochron
