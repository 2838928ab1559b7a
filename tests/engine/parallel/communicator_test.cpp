#include "isochron/engine/parallel/communicator.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>

#include "isochron/engine/parallel/world.h"
#include "tests/support/message_of.h"
#include "tests/support/process_ranks.h"

namespace isochron {
namespace {

// What `source` has for `target`: small numbers that every type holds, distinct for every pair.
at::Tensor part_between(std::int32_t source, std::int32_t target, std::int64_t width,
                        at::ScalarType type = at::kFloat, std::int64_t round = 0) {
  return at::full({width}, 1 + 20 * round + 6 * source + target, type);
}

// What `source` has for all of `size` members.
at::Tensor parts_from(std::int32_t source, std::int32_t size, std::int64_t width,
                      at::ScalarType type = at::kFloat, std::int64_t round = 0) {
  std::vector<at::Tensor> parts;
  for (std::int32_t target = 0; target < size; ++target) {
    parts.push_back(part_between(source, target, width, type, round));
  }
  return at::cat(parts);
}

// What `target` gets from all of `size` members.
at::Tensor parts_to(std::int32_t target, std::int32_t size, std::int64_t width,
                    at::ScalarType type = at::kFloat, std::int64_t round = 0) {
  std::vector<at::Tensor> parts;
  for (std::int32_t source = 0; source < size; ++source) {
    parts.push_back(part_between(source, target, width, type, round));
  }
  return at::cat(parts);
}

// One collective of every kind that goes on by itself, and what it must give.
class Mixture {
 public:
  Mixture(Communicator& ranks, std::int64_t width, at::ScalarType type = at::kFloat,
          std::int64_t round = 0)
      : size_(ranks.size()), rank_(ranks.rank()), width_(width), type_(type), round_(round) {
    gathered_ = at::zeros({size_ * width}, type);
    gathered_.narrow(0, rank_ * width, width).copy_(part_between(rank_, 0, width, type, round));
    terms_ = parts_from(rank_, size_, width, type, round);
    sum_ = at::zeros({width}, type);
    sent_ = parts_from(rank_, size_, width, type, round);
    received_ = at::zeros({size_ * width}, type);
    pending_.push_back(ranks.all_gather(gathered_, "gather"));
    pending_.push_back(ranks.reduce_scatter_sum(sum_, terms_, "reduce"));
    pending_.push_back(ranks.all_to_all(received_, sent_, "exchange"));
  }

  void expect_all() {
    for (auto& pending : pending_) pending->wait();
    EXPECT_TRUE(at::equal(gathered_, parts_to(0, size_, width_, type_, round_)));
    EXPECT_TRUE(at::equal(
        sum_,
        parts_to(rank_, size_, width_, type_, round_).view({size_, width_}).sum(0, false, type_)));
    EXPECT_TRUE(at::equal(received_, parts_to(rank_, size_, width_, type_, round_)));
    EXPECT_TRUE(at::equal(sent_, parts_from(rank_, size_, width_, type_, round_)));
  }

 private:
  std::int32_t size_;
  std::int32_t rank_;
  std::int64_t width_;
  at::ScalarType type_;
  std::int64_t round_;
  at::Tensor gathered_, terms_, sum_, sent_, received_;
  std::vector<std::unique_ptr<Pending>> pending_;
};

TEST(Communicator, AllToAllGivesEveryMemberThePartsMeantForIt) {
  for (const std::int32_t size : {1, 2, 3, 5}) {
    SCOPED_TRACE(testing::Message() << size << " ranks");
    run_ranks(size,
              [](World& world) {
                const std::int32_t ranks = world.all().size();
                const std::int32_t rank = world.all().rank();
                at::Tensor sent = parts_from(rank, ranks, 1000).view({ranks * 10, 100});
                at::Tensor received = at::zeros({ranks, 10, 100});
                world.all().all_to_all(received, sent, "exchange")->wait();
                EXPECT_TRUE(at::equal(received.view(-1), parts_to(rank, ranks, 1000)));
                EXPECT_EQ(
                    world.issued(),
                    (std::vector<IssuedCollective>{{world.all().name(), 0, ranks, "exchange",
                                                    static_cast<std::int64_t>(ranks) * 1000}}));
              },
              {.world = {.timeout = std::chrono::milliseconds{60'000}, .record = true}});
  }
}

TEST(Communicator, CarriesEveryTypeThatTrainingUses) {
  run_ranks(3, [](World& world) {
    for (const at::ScalarType type :
         {at::kBFloat16, at::kHalf, at::kFloat, at::kDouble, at::kLong}) {
      SCOPED_TRACE(testing::Message() << type);
      Mixture(world.all(), 1001, type).expect_all();
      at::Tensor sum = at::full({5}, world.all().rank() + 1, type);
      world.all().all_reduce_sum(sum, "sum");
      EXPECT_TRUE(at::equal(sum, at::full({5}, 6, type)));
      at::Tensor largest = at::full({5}, world.all().rank() + 1, type);
      world.all().all_reduce_max(largest, "max");
      EXPECT_TRUE(at::equal(largest, at::full({5}, 3, type)));
      at::Tensor from_last = at::full({5}, world.all().rank(), type);
      world.all().broadcast(from_last, 2, "broadcast");
      EXPECT_TRUE(at::equal(from_last, at::full({5}, 2, type)));
    }
  });
}

TEST(Communicator, PartsMayBeEmpty) {
  run_ranks(2, [](World& world) {
    Mixture(world.all(), 0).expect_all();
    Mixture(world.all(), 3).expect_all();
  });
}

TEST(Communicator, ManyCollectivesOfOneCommunicatorMayBeUnderWay) {
  run_ranks(3, [](World& world) {
    std::vector<Mixture> mixtures;
    for (std::int64_t round = 0; round < 8; ++round) {
      mixtures.emplace_back(world.all(), 1 + 20'000 * (round % 3), at::kFloat, round);
    }
    at::Tensor between = at::ones({1});
    world.all().all_reduce_sum(between, "sum");
    EXPECT_EQ(between.item<float>(), 3);
    for (Mixture& mixture : mixtures) mixture.expect_all();
  });
}

TEST(Communicator, CollectivesOfSeveralCommunicatorsMayBeUnderWay) {
  run_ranks(4, [](World& world) {
    Communicator& pair = world.group(world.place().rank / 2 * 2, 2);
    Communicator& four = world.group(0, 4);
    std::vector<Mixture> of_pair;
    std::vector<Mixture> of_four;
    std::vector<Mixture> of_all;
    for (std::int64_t round = 0; round < 3; ++round) {
      of_pair.emplace_back(pair, 50'000, at::kFloat, round);
      of_all.emplace_back(world.all(), 70'000, at::kFloat, round);
      of_four.emplace_back(four, 10'000, at::kFloat, round);
    }
    for (Mixture& mixture : of_all) mixture.expect_all();
    for (Mixture& mixture : of_pair) mixture.expect_all();
    for (Mixture& mixture : of_four) mixture.expect_all();
  });
}

// The other rank ends its collectives, larger than any socket buffer, while this one does not wait
// for its own: so they go on by themselves.
TEST(Communicator, CollectivesGoOnWhileTheRankThatIssuedThemComputes) {
  using Start = std::function<std::unique_ptr<Pending>(Communicator&, at::Tensor&, at::Tensor&)>;
  const std::vector<Start> starts{
      [](Communicator& all, at::Tensor& values, at::Tensor&) {
        return all.all_gather(values, "gather");
      },
      [](Communicator& all, at::Tensor& values, at::Tensor& other) {
        at::Tensor part = other.chunk(2)[0];
        return all.reduce_scatter_sum(part, values, "reduce");
      },
      [](Communicator& all, at::Tensor& values, at::Tensor& other) {
        return all.all_to_all(other, values, "exchange");
      },
  };
  for (std::size_t i = 0; i < starts.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "collective " << i);
    run_ranks(2, [&](World& world) {
      at::Tensor values = at::ones({16'000'000});
      at::Tensor other = at::zeros({16'000'000});
      const auto pending = starts[i](world.all(), values, other);
      if (world.place().rank == 1) {
        pending->wait();
        world.set("done", "yes");
        return;
      }
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{30};
      while (!world.find("done") && std::chrono::steady_clock::now() < deadline) {
        at::matmul(at::ones({200, 200}), at::ones({200, 200}));
      }
      EXPECT_EQ(world.find("done"), "yes");
      pending->wait();
    });
  }
}

TEST(Communicator, RejectsPartsThatDoNotFit) {
  run_ranks(2, [](World& world) {
    const auto message = [&](at::Tensor received, at::Tensor sent) {
      return message_of([&] { (void)world.all().all_to_all(received, sent, "exchange"); });
    };
    EXPECT_EQ(message(at::zeros({3}), at::zeros({3})),
              "[communicator] exchange of all ranks: 3 elements do not divide into 2 parts");
    EXPECT_EQ(message(at::zeros({2}), at::zeros({4})),
              "[communicator] exchange of all ranks: 2 elements of float are received, must be 4 "
              "of float like those that are sent");
    EXPECT_EQ(message(at::zeros({4}, at::kDouble), at::zeros({4})),
              "[communicator] exchange of all ranks: 4 elements of double are received, must be 4 "
              "of float like those that are sent");
  });
}

}  // namespace
}  // namespace isochron
