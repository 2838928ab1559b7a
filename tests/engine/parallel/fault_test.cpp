// What is left of a run when a rank dies, hangs, leaves or never comes: the others stop in time and
// say who it was.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "isochron/engine/parallel/world.h"
#include "tests/support/process_ranks.h"

namespace isochron {
namespace {

using std::chrono::milliseconds;
using testing::ContainsRegex;
using testing::HasSubstr;

const WorldOptions short_patience{.timeout = milliseconds{4000}};
constexpr double longest_seconds = 15;  // timeout, judging, start of a process on a busy machine

// Runs two steps of work with a collective each; `misbehave` comes before the second one.
template <class Misbehave>
std::vector<RankOutcome> outcomes_of(std::int32_t size, Misbehave misbehave) {
  return rank_outcomes(size,
                       [&](const Place& place) -> std::string {
                         World world(place, short_patience);
                         at::Tensor values = at::ones({10'000});
                         world.all().all_reduce_sum(values, "first sum");
                         world.set_activity(7, 3, "forward");
                         misbehave(world);
                         world.set_activity(7, 3, "reduction");
                         world.all().all_reduce_sum(values, "second sum");
                         return {};
                       },
                       {.limit = std::chrono::seconds{30}});
}

void expect_stopped(const RankOutcome& outcome, const std::string& pattern) {
  EXPECT_EQ(outcome.exit, 3) << outcome.output;
  EXPECT_LT(outcome.seconds, longest_seconds);
  EXPECT_THAT(outcome.output, ContainsRegex(pattern));
}

TEST(Fault, ARankThatDiesIsNamedWithWhatItDid) {
  const auto outcomes = outcomes_of(4, [](World& world) {
    if (world.place().rank != 2) return;
    std::this_thread::sleep_for(milliseconds{500});  // its heart beats once more
    raise(SIGKILL);
  });
  EXPECT_EQ(outcomes[2].exit, -SIGKILL);
  for (const std::size_t rank : {0u, 1u, 3u}) {
    expect_stopped(outcomes[rank],
                   "\\[world\\] second sum of all ranks failed after [0-9.]+ s: rank 2 was last "
                   "seen [0-9]+ s ago in step 7, slot 3, forward \\(");
  }
}

TEST(Fault, ARankThatIsStoppedIsNamedAfterTheTimeout) {
  const auto outcomes = outcomes_of(3, [](World& world) {
    if (world.place().rank != 1) return;
    std::this_thread::sleep_for(milliseconds{500});
    raise(SIGSTOP);
  });
  EXPECT_EQ(outcomes[1].exit, -SIGKILL) << "by the test, when the others have ended";
  for (const std::size_t rank : {0u, 2u}) {
    expect_stopped(outcomes[rank], "rank 1 was last seen [0-9]+ s ago in step 7, slot 3, forward");
  }
}

TEST(Fault, ARankThatIsLateIsNamedWithWhatItDoes) {
  const auto outcomes = outcomes_of(3, [](World& world) {
    if (world.place().rank == 1) std::this_thread::sleep_for(milliseconds{8000});
  });
  for (const std::size_t rank : {0u, 2u}) {
    expect_stopped(outcomes[rank], "rank 1 is late: for [0-9]+ s in step 7, slot 3, forward");
  }
  EXPECT_EQ(outcomes[1].exit, 3) << "it finds the others gone";
}

TEST(Fault, ARankThatLeavesIsNamed) {
  const auto outcomes = outcomes_of(3, [](World& world) {
    if (world.place().rank == 1) throw std::runtime_error("out of memory");
  });
  EXPECT_THAT(outcomes[1].output, HasSubstr("out of memory"));
  for (const std::size_t rank : {0u, 2u}) {
    expect_stopped(outcomes[rank], "rank 1 left in step 7, slot 3, forward");
  }
}

TEST(Fault, TheOthersStopWhenTheHostOfTheStoreDies) {
  const auto outcomes = outcomes_of(3, [](World& world) {
    if (world.place().rank == 0) raise(SIGKILL);
  });
  for (const std::size_t rank : {1u, 2u}) {
    expect_stopped(outcomes[rank],
                   "second sum of all ranks failed after [0-9.]+ s: the store at "
                   "127.0.0.1:[0-9]+, which rank 0 hosts, does not answer \\(");
  }
}

TEST(Fault, TheOthersStopWhenTheHostOfTheStoreIsStopped) {
  const auto outcomes = outcomes_of(3, [](World& world) {
    if (world.place().rank == 0) raise(SIGSTOP);
  });
  for (const std::size_t rank : {1u, 2u}) {
    EXPECT_EQ(outcomes[rank].exit, 3) << outcomes[rank].output;
    EXPECT_THAT(outcomes[rank].output, HasSubstr("which rank 0 hosts, does not answer"));
  }
}

TEST(Fault, ACollectiveUnderWayFailsWhereItIsAwaited) {
  const auto outcomes = outcomes_of(3, [](World& world) {
    at::Tensor all = at::ones({3'000'000});
    at::Tensor part = at::empty({1'000'000});
    if (world.place().rank == 1) raise(SIGKILL);
    const auto pending = world.all().reduce_scatter_sum(part, all, "reduce");
    pending->wait();
  });
  for (const std::size_t rank : {0u, 2u}) {
    expect_stopped(outcomes[rank], "reduce of all ranks failed .* rank 1 was last seen");
  }
}

TEST(Fault, ARankThatIsLateForAnExchangeIsNamed) {
  const auto outcomes = outcomes_of(3, [](World& world) {
    if (world.place().rank == 1) std::this_thread::sleep_for(milliseconds{8000});
    at::Tensor sent = at::ones({3'000'000});
    at::Tensor received = at::empty({3'000'000});
    world.all().all_to_all(received, sent, "exchange")->wait();
  });
  for (const std::size_t rank : {0u, 2u}) {
    expect_stopped(
        outcomes[rank],
        "exchange of all ranks failed .* rank 1 is late: for [0-9]+ s in step 7, slot 3, "
        "forward");
  }
}

TEST(Fault, AMemberThatDoesNotComeToAGroupIsNamed) {
  const auto outcomes = outcomes_of(3, [](World& world) {
    if (world.place().rank == 1) std::this_thread::sleep_for(milliseconds{8000});
    (void)world.group(0, 3);
  });
  for (const std::size_t rank : {0u, 2u}) {
    expect_stopped(
        outcomes[rank],
        "\\[world\\] ranks 0 to 2 could not connect: rank 1 is late: for [0-9]+ s in step "
        "7, slot 3, forward \\(");
  }
}

TEST(Fault, RanksThatNeverComeAreNamed) {
  const auto outcomes = rank_outcomes(5, [](const Place& place) -> std::string {
    if (place.rank % 2 == 0) World world(place, short_patience);
    return {};
  });
  for (const std::size_t rank : {0u, 2u, 4u}) {
    expect_stopped(outcomes[rank],
                   "\\[world\\] ranks 1, 3 of 5 did not come to 127.0.0.1:[0-9]+ within 4.0 s");
  }
}

TEST(Fault, AStoreThatNeverComesIsNamed) {
  const auto outcomes = rank_outcomes(2, [](const Place& place) -> std::string {
    if (place.rank == 1) World world(place, short_patience);
    return {};
  });
  expect_stopped(outcomes[1],
                 "\\[world\\] the store at 127.0.0.1:[0-9]+, which rank 0 hosts, did not answer "
                 "within 4.0 s");
}

TEST(Fault, AKeyThatNobodySetsIsNamed) {
  const auto outcomes = outcomes_of(2, [](World& world) { (void)world.get("weather"); });
  expect_stopped(outcomes[1], "did not give \"weather\" within 4.0 s");
}

}  // namespace
}  // namespace isochron
