// A device that does not come to the end of a collective, while the program waits inside its
// driver: what NCCL is like when a rank is late. The channel stands in for it; ranks, store and
// heartbeats are real.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "isochron/engine/parallel/collective_log.h"
#include "isochron/engine/parallel/heartbeat.h"
#include "isochron/engine/parallel/meeting.h"
#include "isochron/engine/parallel/watched_group.h"
#include "tests/support/process_ranks.h"

namespace isochron {
namespace {

using std::chrono::milliseconds;
using testing::ContainsRegex;

constexpr milliseconds timeout{2000};
constexpr milliseconds period{100};

class ReturnsAtOnce final : public Pending {
 public:
  void wait() override {}
};

// A device as the host sees it: wait() returns, and `is_done` tells what became of it.
class DeviceChannel final : public Channel {
 public:
  explicit DeviceChannel(std::function<bool()> is_done) : is_done_(std::move(is_done)) {}

  std::unique_ptr<Pending> all_reduce(at::Tensor&, c10d::ReduceOp::RedOpType) override {
    return std::make_unique<ReturnsAtOnce>();
  }
  std::unique_ptr<Pending> broadcast(at::Tensor&, std::int32_t) override {
    return std::make_unique<ReturnsAtOnce>();
  }
  std::unique_ptr<Pending> all_gather(at::Tensor&) override {
    return std::make_unique<ReturnsAtOnce>();
  }
  std::unique_ptr<Pending> reduce_scatter_sum(at::Tensor&, at::Tensor&) override {
    return std::make_unique<ReturnsAtOnce>();
  }
  std::unique_ptr<Pending> all_to_all(at::Tensor&, at::Tensor&) override {
    return std::make_unique<ReturnsAtOnce>();
  }
  std::function<bool()> completion() override { return is_done_; }

 private:
  std::function<bool()> is_done_;
};

// Three ranks gather, rank 1 after the others have given up on it.
std::vector<RankOutcome> outcomes_of(const std::function<bool()>& is_done) {
  return rank_outcomes(
      3,
      [&](const Place& place) -> std::string {
        const auto store = connect_store(
            place, place.rank == 0 ? StoreRole::host : StoreRole::guest, milliseconds{20'000});
        Heartbeat heartbeat(connect_store(place, StoreRole::guest, milliseconds{20'000}),
                            place.rank, place.size, period, store_text(place));
        const auto see_others_off = [&] {
          if (place.rank == 0) heartbeat.await_others(3 * timeout);  // it hosts the store
        };
        HangWatch hang_watch(heartbeat, timeout, period, see_others_off);
        CollectiveLog log(false);
        const auto all =
            watched_group("all ranks", 0, place.rank, place.size,
                          std::make_unique<DeviceChannel>(is_done), heartbeat, hang_watch, log);
        await_all_ranks(*store, place, milliseconds{20'000});
        heartbeat.set_activity(7, 3, "backward");
        if (place.rank == 1) std::this_thread::sleep_for(3 * timeout);
        at::Tensor values = at::zeros({6});
        all->all_gather(values, "gather")->wait();
        std::this_thread::sleep_for(3 * timeout);  // in the driver
        see_others_off();
        return "went on";
      },
      {.limit = std::chrono::seconds{60}});
}

TEST(Hang, TheRankThatIsLateIsNamedWhereTheProgramWaitsInsideTheDriver) {
  const auto outcomes = outcomes_of([] { return false; });
  for (const std::size_t rank : {0u, 2u}) {
    EXPECT_EQ(outcomes[rank].exit, 3) << outcomes[rank].output;
    EXPECT_THAT(outcomes[rank].output,
                ContainsRegex("isochron: \\[world\\] gather of all ranks failed after [0-9.]+ s: "
                              "rank 1 is late: for [0-9]+ s in step 7, slot 3, backward \\(the "
                              "device does not come to its end\\)"));
  }
}

TEST(Hang, AnErrorOfTheDeviceEndsTheProcessToo) {
  const auto outcomes = outcomes_of([]() -> bool { throw std::runtime_error("unhandled error"); });
  for (const std::size_t rank : {0u, 2u}) {
    EXPECT_EQ(outcomes[rank].exit, 3) << outcomes[rank].output;
    EXPECT_THAT(outcomes[rank].output,
                ContainsRegex("gather of all ranks failed .* rank 1 is late: .*unhandled error"));
  }
}

TEST(Hang, WhatEndsInTimeIsLeftAlone) {
  for (const RankOutcome& outcome : outcomes_of([] { return true; })) {
    EXPECT_EQ(outcome.exit, 0) << outcome.output;
    EXPECT_EQ(outcome.result, "went on");
  }
}

}  // namespace
}  // namespace isochron
