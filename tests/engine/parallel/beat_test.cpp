#include "isochron/engine/parallel/beat.h"

#include <gtest/gtest.h>

#include <vector>

namespace isochron {
namespace {

constexpr std::int64_t now_ms = 100'000;

Beat beat(std::int64_t count, std::int64_t issued) {
  return {.count = count,
          .time_ms = now_ms - 31'500,
          .since_ms = now_ms - 45'000,
          .step = 7,
          .slot = 3,
          .operation = "forward",
          .issued = {{"all ranks", issued}}};
}

const FailedCollective fifth{
    .communicator = "all ranks", .first_rank = 0, .num_ranks = 3, .number = 5};

TEST(Beat, TravelsAsJson) {
  Beat sent = beat(4, 2);
  sent.operation = "a \"b\"\n\xff";
  sent.has_left = true;
  Beat expected = sent;
  expected.operation = "a \"b\"\n\xef\xbf\xbd";  // what is no text is replaced
  EXPECT_EQ(beat_from_json(beat_json(sent)), expected);
}

TEST(LateRanks, NamesTheRankWhoseHeartStands) {
  const std::vector<Beat> before{beat(10, 5), beat(10, 4), beat(10, 4)};
  const std::vector<Beat> after{beat(12, 5), beat(12, 4), beat(10, 4)};
  EXPECT_EQ(late_ranks(fifth, before, after, now_ms),
            "rank 2 was last seen 31 s ago in step 7, slot 3, forward");
}

TEST(LateRanks, NamesThoseThatLiveButHaveNotCome) {
  std::vector<Beat> before{beat(10, 5), beat(10, 4), beat(10, 3)};
  std::vector<Beat> after{beat(12, 5), beat(12, 4), beat(12, 3)};
  after[2].slot = -1;
  after[2].operation = "save";
  EXPECT_EQ(late_ranks(fifth, before, after, now_ms),
            "rank 1 is late: for 45 s in step 7, slot 3, forward; "
            "rank 2 is late: for 45 s in step 7, save");
}

TEST(LateRanks, NamesARankThatLeftWithoutComing) {
  std::vector<Beat> before{beat(10, 5), beat(10, 4), beat(10, 5)};
  std::vector<Beat> after{beat(12, 5), beat(10, 4), beat(10, 5)};
  after[1].has_left = after[2].has_left = true;
  EXPECT_EQ(late_ranks(fifth, before, after, now_ms), "rank 1 left in step 7, slot 3, forward");
}

TEST(LateRanks, AMemberMayWaitForADeadRankOutsideOfItsGroup) {
  const FailedCollective in_group{
      .communicator = "ranks 0 to 1", .first_rank = 0, .num_ranks = 2, .number = 1};
  const std::vector<Beat> before{beat(10, 5), beat(10, 4), beat(10, 4)};
  const std::vector<Beat> after{beat(12, 5), beat(12, 4), beat(10, 4)};
  EXPECT_EQ(late_ranks(in_group, before, after, now_ms),
            "rank 2 was last seen 31 s ago in step 7, slot 3, forward");
}

TEST(LateRanks, BlamesNobodyIfAllHaveCome) {
  const std::vector<Beat> before{beat(10, 5), beat(10, 5), beat(10, 6)};
  const std::vector<Beat> after{beat(12, 5), beat(12, 5), beat(12, 6)};
  EXPECT_EQ(late_ranks(fifth, before, after, now_ms), "");
}

}  // namespace
}  // namespace isochron
