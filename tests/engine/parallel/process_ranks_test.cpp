#include "tests/support/process_ranks.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

namespace isochron {
namespace {

TEST(ProcessRanks, ReturnWhatTheirBodiesReturn) {
  const auto results = run_ranks(
      3, [](World& world) { return fmt::format("{}/{}", world.place().rank, world.place().size); });
  EXPECT_EQ(results, (std::vector<std::string>{"0/3", "1/3", "2/3"}));
}

TEST(ProcessRanks, SeeWhatEarlierCallsReturned) {
  const auto first = expect_ranks(2, [](const Place& place) {
    return fmt::format("{}{}", place.rank, std::string("\0\n", 2));
  });
  const auto second = expect_ranks(1, [&](const Place&) { return first[0] + first[1]; });
  EXPECT_EQ(second[0], first[0] + first[1]);
}

TEST(ProcessRanks, AreProcessesOfTheirOwn) {
  const auto ids = expect_ranks(2, [](const Place&) { return std::to_string(getpid()); });
  EXPECT_NE(ids[0], ids[1]);
  EXPECT_NE(ids[0], std::to_string(getpid()));
}

TEST(ProcessRanks, EndBadlyIfAnExpectationFailsInThem) {
  const auto outcomes = rank_outcomes(2, [](const Place& place) -> std::string {
    EXPECT_EQ(place.rank, 0) << "only rank 0 agrees";
    return {};
  });
  EXPECT_EQ(outcomes[0].exit, 0);
  EXPECT_EQ(outcomes[1].exit, 1);
  EXPECT_THAT(outcomes[1].output, testing::HasSubstr("only rank 0 agrees"));
}

TEST(ProcessRanks, TellHowTheyEnded) {
  const auto outcomes = rank_outcomes(4,
                                      [](const Place& place) -> std::string {
                                        if (place.rank == 1)
                                          throw std::runtime_error("rank 1 gives up");
                                        if (place.rank == 2) raise(SIGKILL);
                                        if (place.rank == 3)
                                          std::this_thread::sleep_for(std::chrono::minutes{5});
                                        return "fine";
                                      },
                                      {.limit = std::chrono::seconds{10}});
  EXPECT_EQ(outcomes[0].exit, 0);
  EXPECT_EQ(outcomes[0].result, "fine");
  EXPECT_EQ(outcomes[1].exit, 3);
  EXPECT_THAT(outcomes[1].output, testing::EndsWith("rank 1 gives up\n"));
  EXPECT_EQ(outcomes[2].exit, -SIGKILL);
  EXPECT_EQ(outcomes[3].exit, -SIGKILL) << "at the limit";
  EXPECT_GE(outcomes[3].seconds, 10);
}

}  // namespace
}  // namespace isochron
