#include "isochron/engine/parallel/world.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "isochron/engine/parallel/local_address.h"
#include "tests/support/message_of.h"
#include "tests/support/process_ranks.h"

namespace isochron {
namespace {

// Part r of what rank `rank` gives, distinct for every pair.
at::Tensor parts_of(std::int32_t rank, std::int32_t size, std::int64_t width) {
  return at::arange(size * width, at::kFloat).add_(1000.0 * rank).div_(7.0);
}

TEST(World, OneRankNeedsNoNetwork) {
  World world({}, {.record = true});
  at::Tensor values = at::full({3}, 2.0);
  world.all().all_reduce_sum(values, "sum");
  world.all().all_reduce_max(values, "max");
  world.all().broadcast(values, 0, "broadcast");
  world.all().all_gather(values, "gather")->wait();
  at::Tensor part = at::zeros({3});
  world.all().reduce_scatter_sum(part, values, "reduce")->wait();
  EXPECT_TRUE(at::equal(part, at::full({3}, 2.0)));
  EXPECT_EQ(world.all().size(), 1);
  EXPECT_EQ(world.issued().size(), 5u);
  world.set("a", "b");
  EXPECT_EQ(world.get("a"), "b");
  EXPECT_EQ(world.find("c"), std::nullopt);
  EXPECT_THROW((void)world.get("c"), std::runtime_error);
}

TEST(World, EveryCollectiveGivesWhatItSaysOnAnyNumberOfRanks) {
  for (const std::int32_t size : {2, 3, 4, 5}) {
    SCOPED_TRACE(testing::Message() << size << " ranks");
    run_ranks(size, [](World& world) {
      Communicator& all = world.all();
      const std::int32_t rank = all.rank();
      const std::int32_t ranks = all.size();
      const std::int64_t width = 1000;

      at::Tensor sum = at::full({3}, rank + 1.0);
      all.all_reduce_sum(sum, "sum");
      EXPECT_EQ(sum[2].item<double>(), ranks * (ranks + 1) / 2);

      at::Tensor largest = at::full({1}, rank, at::kLong);
      all.all_reduce_max(largest, "max");
      EXPECT_EQ(largest.item<std::int64_t>(), ranks - 1);

      at::Tensor from_last = at::full({2}, rank, at::kDouble);
      all.broadcast(from_last, ranks - 1, "broadcast");
      EXPECT_EQ(from_last[1].item<double>(), ranks - 1);

      at::Tensor gathered = at::zeros({ranks, width});
      gathered[rank].copy_(parts_of(rank, 1, width));
      all.all_gather(gathered, "gather")->wait();
      for (std::int32_t other = 0; other < ranks; ++other) {
        EXPECT_TRUE(at::equal(gathered[other], parts_of(other, 1, width))) << other;
      }

      at::Tensor expected = parts_of(0, ranks, width).narrow(0, rank * width, width).clone();
      for (std::int32_t other = 1; other < ranks; ++other) {
        expected.add_(parts_of(other, ranks, width).narrow(0, rank * width, width));
      }
      at::Tensor mine = parts_of(rank, ranks, width);
      at::Tensor part = at::zeros({width});
      all.reduce_scatter_sum(part, mine, "reduce")->wait();
      EXPECT_TRUE(at::equal(part, expected)) << "summed in rank order";

      at::Tensor in_place = parts_of(rank, ranks, width);
      at::Tensor own = in_place.narrow(0, rank * width, width);
      all.reduce_scatter_sum(own, in_place, "reduce in place")->wait();
      EXPECT_TRUE(at::equal(own, expected));
    });
  }
}

TEST(World, CollectivesUnderWayArriveInOrder) {
  run_ranks(3, [](World& world) {
    const std::int32_t rank = world.all().rank();
    std::vector<at::Tensor> parts;
    std::vector<at::Tensor> all;
    std::vector<std::unique_ptr<Pending>> pending;
    for (int bucket = 0; bucket < 6; ++bucket) {
      parts.push_back(at::zeros({10}));
      all.push_back(at::full({30}, bucket * 10 + rank));
      pending.push_back(world.all().reduce_scatter_sum(parts.back(), all.back(), "reduce"));
    }
    at::Tensor between = at::ones({1});
    world.all().all_reduce_sum(between, "sum");
    for (int bucket = 0; bucket < 6; ++bucket) {
      pending[static_cast<std::size_t>(bucket)]->wait();
      EXPECT_EQ(parts[static_cast<std::size_t>(bucket)][9].item<float>(), bucket * 30 + 3);
    }
  });
}

TEST(World, GroupsOfConsecutiveRanksTalkAmongThemselves) {
  run_ranks(4,
            [](World& world) {
              const std::int32_t rank = world.place().rank;
              const std::int32_t first = rank < 1 ? 0 : 1;
              const std::int32_t count = rank < 1 ? 1 : 3;
              for (int opening = 0; opening < 2; ++opening) {
                Communicator& group = world.group(first, count);
                EXPECT_EQ(&group, &world.group(first, count));
                EXPECT_EQ(group.rank(), rank - first);
                EXPECT_EQ(group.size(), count);
                at::Tensor sum = at::full({1}, rank, at::kLong);
                group.all_reduce_sum(sum, "sum");
                EXPECT_EQ(sum.item<std::int64_t>(), rank < 1 ? 0 : 6);
                world.close_group(first, count);
              }
              EXPECT_THROW(world.close_group(first, count), std::invalid_argument);
              EXPECT_THROW((void)world.group(rank == 3 ? 0 : 3, 1), std::invalid_argument);
              const std::vector<IssuedCollective> issued = world.issued();
              std::vector<IssuedCollective> expected;
              for (int opening = 0; opening < 2; ++opening) {
                if (rank < 1) {
                  expected.push_back({"rank 0", 0, 1, "sum", 1});
                } else {
                  expected.push_back({"ranks 1 to 3", 1, 3, std::string(group_opened), 0});
                  expected.push_back({"ranks 1 to 3", 1, 3, "sum", 1});
                  expected.push_back({"ranks 1 to 3", 1, 3, std::string(group_closed), 0});
                }
              }
              EXPECT_EQ(issued, expected);
            },
            {.world = {.timeout = std::chrono::milliseconds{60'000}, .record = true}});
}

TEST(World, KeysReachAllRanks) {
  const auto results = run_ranks(3, [](World& world) {
    EXPECT_EQ(world.find("never"), std::nullopt);
    world.set(fmt::format("from {}", world.place().rank), std::to_string(world.place().rank));
    return world.get("from 0") + world.get("from 1") + world.get("from 2");
  });
  EXPECT_EQ(results, (std::vector<std::string>{"012", "012", "012"}));
}

TEST(World, JoinsTheStoreOfALauncherAndSeesNothingOfTheIncarnationBefore) {
  expect_ranks(3, [](const Place& given) -> std::string {
    c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(given.port);
    options.isServer = true;
    options.waitWorkers = false;
    const auto launcher =
        given.rank == 0 ? c10::make_intrusive<c10d::TCPStore>(given.address, options) : nullptr;
    Place place = given;
    place.agent_hosts_store = true;
    for (const char* incarnation : {"0", "1"}) {
      place.incarnation = incarnation;
      World world(place, {.timeout = std::chrono::milliseconds{60'000}});
      EXPECT_EQ(world.find(fmt::format("from {}", place.rank)), std::nullopt);
      world.set(fmt::format("from {}", place.rank), "here");
      EXPECT_EQ(world.get("from 2"), "here");
      at::Tensor sum = at::ones({1});
      world.all().all_reduce_sum(sum, "sum");
      EXPECT_EQ(sum.item<float>(), 3);
    }
    return {};
  });
}

TEST(World, RejectsAPlaceThatCannotBe) {
  const auto message = [](const Place& place) { return message_of([&] { World(place, {}); }); };
  EXPECT_EQ(message({.size = 0}), "[world] size is 0, must be at least 1");
  EXPECT_EQ(message({.rank = 2, .size = 2, .port = 1}), "[world] rank is 2, must be from 0 to 1");
  EXPECT_EQ(message({.rank = 0, .size = 2}), "[world] port is 0, must be from 1 to 65535");
}

TEST(World, RejectsNcclForTensorsOfTheHost) {
  EXPECT_EQ(message_of([] { World({}, {.backend = Backend::nccl}); }),
            "[world] NCCL needs a device of CUDA, this rank is on cpu");
}

TEST(LocalAddress, IsThatOfTheInterfaceTowardsTheStore) {
  EXPECT_EQ(local_address({.address = "127.0.0.1"}), "127.0.0.1");
  EXPECT_THAT(local_address({.address = "localhost"}), testing::AnyOf("127.0.0.1", "::1"));
  // Several hosts, as two launchers on this one pretend: the loopback was asked for.
  EXPECT_EQ(local_address({.size = 4, .local_size = 2, .address = "127.0.0.1"}), "127.0.0.1");
  EXPECT_THROW((void)local_address({.address = "no.such.host.invalid"}), std::runtime_error);
}

}  // namespace
}  // namespace isochron
