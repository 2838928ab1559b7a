// Several ranks on one GPU, over Gloo through the host. Skipped where there is none.

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <chrono>

#include "isochron/engine/parallel/world.h"
#include "tests/support/process_ranks.h"

namespace isochron {
namespace {

const at::Device device(at::kCUDA, 0);

// What `rank` gives: whole numbers that every type holds, different for every element and rank.
at::Tensor values_of(std::int32_t rank, std::int64_t count, at::ScalarType type) {
  return at::arange(count, at::kLong).add_(count * rank).remainder_(61).to(device, type);
}

TEST(SharedDevice, EveryCollectiveWorksOverGloo) {
  if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no GPU";
  const auto body = [](World& world) {
    Communicator& all = world.all();
    const std::int32_t rank = all.rank();
    const std::int32_t ranks = all.size();
    const std::int64_t width = 1000;
    for (const at::ScalarType type :
         {at::kBFloat16, at::kHalf, at::kFloat, at::kDouble, at::kLong}) {
      SCOPED_TRACE(testing::Message() << type);
      std::vector<at::Tensor> given;
      for (std::int32_t other = 0; other < ranks; ++other) {
        given.push_back(values_of(other, ranks * width, type).view({ranks, width}));
      }
      const at::Tensor from_all = at::stack(given);  // giver, part, element

      at::Tensor sum = given[static_cast<std::size_t>(rank)].clone();
      all.all_reduce_sum(sum, "sum");
      EXPECT_TRUE(at::equal(sum, from_all.sum(0, false, type)));
      at::Tensor largest = given[static_cast<std::size_t>(rank)].clone();
      all.all_reduce_max(largest, "max");
      EXPECT_TRUE(at::equal(largest, from_all.amax(0)));
      at::Tensor from_last = given[static_cast<std::size_t>(rank)].clone();
      all.broadcast(from_last, ranks - 1, "broadcast");
      EXPECT_TRUE(at::equal(from_last, from_all[ranks - 1]));

      at::Tensor gathered = at::zeros_like(given[0]);
      gathered[rank].copy_(from_all[rank][0]);
      at::Tensor terms = given[static_cast<std::size_t>(rank)].clone();
      at::Tensor part = terms[rank];
      at::Tensor sent = given[static_cast<std::size_t>(rank)].clone();
      at::Tensor received = at::zeros_like(sent);
      const auto gather = all.all_gather(gathered, "gather");
      const auto reduce = all.reduce_scatter_sum(part, terms, "reduce");
      const auto exchange = all.all_to_all(received, sent, "exchange");
      gather->wait();
      reduce->wait();
      exchange->wait();
      EXPECT_TRUE(at::equal(gathered, from_all.select(1, 0)));
      EXPECT_TRUE(at::equal(part, from_all.select(1, rank).sum(0, false, type)));
      EXPECT_TRUE(at::equal(received, from_all.select(1, rank)));
    }
  };
  for (const std::int32_t ranks : {2, 3}) {
    run_ranks(ranks, body,
              {.world = {.timeout = std::chrono::milliseconds{60'000},
                         .device = device,
                         .backend = Backend::gloo}});
  }
}

TEST(SharedDevice, ASingleRankOverNcclNeedsNoNetwork) {
  if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no GPU";
  World world({}, {.device = device, .backend = Backend::nccl});
  at::Tensor values = values_of(0, 10, at::kFloat);
  world.all().all_reduce_sum(values, "sum");
  EXPECT_TRUE(at::equal(values, values_of(0, 10, at::kFloat)));
}

}  // namespace
}  // namespace isochron
