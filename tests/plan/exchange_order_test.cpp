// What the planner knows of exchanges before it knows what they carry.

#include "isochron/plan/exchange_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "isochron/core/random.h"
#include "isochron/plan/problem.h"
#include "tests/plan/singles.h"
#include "tests/support/num_instances.h"

namespace isochron {
namespace {

const std::vector<ContextLink> node_of_8 = {{8, 350, 1000}, {1 << 20, 45, 2000}};

CostModel two_exchanges() {
  CostModel cost = cost_7b_h100();
  cost.context = {
      {.kind = ContextKind::all_gather_kv, .bytes_per_token = 4, .links = node_of_8},
      {.kind = ContextKind::all_to_all, .bytes_per_token = 12, .divides = 8, .links = node_of_8}};
  return cost;
}

TEST(ExchangeOrder, OfTwoExchangesTheOneThatMovesLessIsTheOnlyOne) {
  // Bytes of a token on all ranks: 4 * (c - 1) gathered, 12 * (c - 1) / c exchanged.
  const std::vector<std::int32_t> aligned = {1, 2, 4, 8, 16, 32};
  const ExchangeOrder order = exchange_order(two_exchanges(), aligned);
  EXPECT_TRUE(order.has_ordered_links);
  EXPECT_TRUE(order.has_one_exchange);
  for (const std::int32_t size : aligned) EXPECT_TRUE(order.grows_from[std::size_t(size)]) << size;

  const std::vector<std::int32_t> any = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const ExchangeOrder of_any = exchange_order(two_exchanges(), any);
  EXPECT_TRUE(of_any.has_one_exchange);
  // 16 to 24 bytes in groups of 5 to 7, which have to gather, 10.5 in those of 8.
  for (const std::int32_t size : any) {
    EXPECT_EQ(of_any.grows_from[std::size_t(size)], size < 5 || size > 7) << size;
  }
}

TEST(ExchangeOrder, AnExchangeThatMovesLessAndAnswersLaterLeavesAChoice) {
  CostModel cost = two_exchanges();
  cost.context[1].links[0].latency_us = 1500;
  EXPECT_TRUE(exchange_order(cost, std::vector{1, 2}).has_one_exchange);  // gathered by both
  EXPECT_FALSE(exchange_order(cost, std::vector{1, 2, 4}).has_one_exchange);
  EXPECT_FALSE(exchange_order(cost, std::vector{1, 2, 4}).grows_from[4]);
}

TEST(ExchangeOrder, OtherBlocksLeaveAChoice) {
  CostModel cost = two_exchanges();
  cost.context[1].links[0].max_ranks = 4;
  EXPECT_FALSE(exchange_order(cost, std::vector{1, 2}).has_one_exchange);
}

TEST(ExchangeOrder, GroupsOfOneRankAlwaysAgree) {
  CostModel cost = cost_7b_h100();
  cost.context.clear();
  const ExchangeOrder order = exchange_order(cost, std::vector{1});
  EXPECT_TRUE(order.has_one_exchange);
  EXPECT_TRUE(order.grows_from[1]);
}

CostModel random_exchanges(Random& random) {
  CostModel cost = cost_7b_h100();
  cost.context.clear();
  const std::int64_t node = std::int64_t{2} << random.below(3);
  const auto count = random.between(1, 3);
  for (std::int64_t e = 0; e < count; ++e) {
    const double latency =
        random.below(3) == 0 ? 100.0 * static_cast<double>(random.below(3)) : 100;
    ContextCost context{
        .kind = random.below(2) == 0 ? ContextKind::all_to_all : ContextKind::all_gather_kv,
        .bytes_per_token = 1e5 * static_cast<double>(random.between(0, 20)),
        .links = {{node, 350, latency}, {1 << 20, 45, 2 * latency}}};
    if (random.below(8) == 0) context.links[1].gb_per_s = 400;
    if (random.below(8) == 0) context.links[0].max_ranks = 3;
    if (random.below(4) == 0) context.overlap = random.unit();
    if (context.kind == ContextKind::all_to_all && e > 0) context.divides = 8;
    cost.context.push_back(context);
  }
  return cost;
}

TEST(ExchangeOrder, HoldsForEveryMicrobatch) {
  int num_with_choice = 0;
  int num_growing = 0;
  for (std::uint64_t seed = 0; seed < num_instances(2000); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const CostModel cost = random_exchanges(random);
    const Topology topology{.ranks = static_cast<std::int32_t>(random.between(2, 20)),
                            .capacity = 16'384};
    std::vector<Tokens> lengths;
    for (int i = 0; i < 4; ++i) lengths.push_back(random.between(1, 16'384));
    const Problem problem(
        singles(lengths), topology, cost,
        resolved({.context = random.below(2) == 0 ? "dynamic" : "dynamic:any"}, topology));
    const std::vector<ItemId> items = {0, 1, 2, 3};
    for (const std::int32_t size : problem.sizes()) {
      for (std::int64_t first = 0; first + size <= topology.ranks;
           first += problem.first_step(size)) {
        // By every exchange, as if there were no other.
        const RankRange ranks{.first = first, .size = size};
        Nanoseconds least = -1;
        for (const ContextCost& context : cost.context) {
          const auto link = find_link(context, ranks);
          if (!link) continue;
          Nanoseconds time = microbatch_cost(cost) + (size == 1 ? 0 : link_latency(*link));
          for (const Tokens length : lengths) {
            time += *find_sequence_cost(cost, context, ranks, length);
          }
          if (least < 0 || time < least) least = time;
        }
        if (least < 0) continue;
        EXPECT_EQ(problem.group_cost(ranks, items), least);
        EXPECT_LE(problem.least_cost(size, 0) + problem.least_fixed(size),
                  problem.group_cost(ranks, std::vector<ItemId>{0}));
      }
      if (!problem.grows_from(size)) continue;
      for (const std::int32_t larger : problem.sizes()) {
        if (larger <= size) continue;
        ++num_growing;
        // But for half a nanosecond by which both costs are rounded.
        for (const ItemId item : items) {
          EXPECT_GE((static_cast<double>(problem.least_cost(larger, item)) + 0.5) * larger,
                    (static_cast<double>(problem.least_cost(size, item)) - 0.5) * size);
        }
        EXPECT_GE(problem.least_fixed(larger), problem.least_fixed(size));
      }
    }
    if (!problem.order().has_one_exchange) ++num_with_choice;
  }
  EXPECT_GT(num_with_choice, 0);
  EXPECT_GT(num_growing, 0);
}

}  // namespace
}  // namespace isochron
