#include "isochron/engine/execute/context_groups.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "tests/support/collective_order.h"
#include "tests/support/message_of.h"
#include "tests/support/process_ranks.h"
#include "tests/support/random_plan.h"

namespace isochron {
namespace {

const RankOptions recorded{.world = {.timeout = std::chrono::milliseconds{60'000}, .record = true}};

StepPlan plan_of(std::int32_t ranks, const std::vector<RankRange>& slots) {
  StepPlan plan;
  plan.topology.ranks = ranks;
  for (const RankRange& range : slots) plan.microbatches.push_back({{range, {}, {}}});
  return plan;
}

// The groups that `rank` is in, in the order of the slots.
std::vector<ContextGroup> groups_of(const StepPlan& plan, std::int32_t rank) {
  std::vector<ContextGroup> groups;
  for (const Slot& slot : plan.microbatches) {
    for (const ContextGroup& group : slot) {
      if (group.ranks.first <= rank && rank < group.ranks.first + group.ranks.size) {
        groups.push_back(group);
      }
    }
  }
  return groups;
}

// Sums the ranks of a group in it, and gathers them.
void talk_in(Communicator& ranks, const ContextGroup& group) {
  ASSERT_EQ(ranks.size(), group.ranks.size);
  const auto first = static_cast<std::int32_t>(group.ranks.first);
  const at::Tensor expected = at::arange(first, first + ranks.size(), at::kLong);
  at::Tensor gathered = at::zeros({ranks.size()}, at::kLong);
  gathered[ranks.rank()] = first + ranks.rank();
  const auto pending = ranks.all_gather(gathered, "gather");
  at::Tensor sum = at::full({1}, first + ranks.rank(), at::kLong);
  ranks.all_reduce_sum(sum, "sum");
  pending->wait();
  EXPECT_TRUE(at::equal(gathered, expected));
  EXPECT_TRUE(at::equal(sum, expected.sum().view({1})));
}

// Most groups that were open at a time, by the records of a rank.
std::size_t most_open(const std::vector<IssuedCollective>& issued) {
  std::set<std::string> open;
  std::size_t most = 0;
  for (const IssuedCollective& it : issued) {
    if (it.operation == group_opened) open.insert(it.communicator);
    if (it.operation == group_closed) open.erase(it.communicator);
    most = std::max(most, open.size());
  }
  return most;
}

// Runs the steps on this rank; what it recorded. Never has more groups open than it may, or than
// one of its steps needs.
std::string run_steps(World& world, const std::vector<StepPlan>& plans, std::int32_t max_open) {
  ContextGroups groups(world, max_open);
  auto limit = static_cast<std::size_t>(max_open);
  for (const StepPlan& plan : plans) {
    at::Tensor hash = at::ones({1});
    world.all().all_reduce_max(hash, "compare plans");
    groups.open(plan);
    std::set<std::string> needed;
    for (const ContextGroup& group : groups_of(plan, world.place().rank)) {
      Communicator& ranks = groups.of(group);
      talk_in(ranks, group);
      if (ranks.size() > 1) needed.insert(ranks.name());
    }
    limit = std::max(limit, needed.size());
  }
  EXPECT_LE(most_open(world.issued()), limit);
  return issued_text(world.issued());
}

TEST(ContextGroups, TalkAmongThemselvesWhateverIsClosedInBetween) {
  for (const std::int32_t num_ranks : {2, 3, 4, 6}) {
    SCOPED_TRACE(testing::Message() << num_ranks << " ranks");
    const std::int32_t max_open = num_ranks % 4 == 2 ? 2 : 1;
    std::vector<StepPlan> plans;
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      plans.push_back(random_plan(
          seed, {.ranks = num_ranks, .context = "dynamic:any", .stages = 1, .num_sequences = 4}));
    }
    const auto body = [&](World& world) { return run_steps(world, plans, max_open); };
    std::vector<std::vector<IssuedCollective>> issued;
    for (const std::string& text : run_ranks(num_ranks, body, recorded)) {
      issued.push_back(issued_from_text(text));
    }
    EXPECT_EQ(find_order_violation(issued), std::nullopt);
    const auto num_closed =
        std::ranges::count(issued[0], group_closed, &IssuedCollective::operation);
    EXPECT_EQ(num_closed > 0, num_ranks > 2) << "two ranks have one group alone";
  }
}

TEST(ContextGroups, AGroupIsOpenedAgainAfterItWasClosed) {
  std::vector<StepPlan> plans;
  for (const RankRange& range :
       std::vector<RankRange>{{0, 2}, {1, 2}, {0, 3}, {0, 2}, {0, 3}, {1, 2}}) {
    plans.push_back(plan_of(3, {range}));
  }
  const auto body = [&](World& world) { return run_steps(world, plans, 1); };
  const auto issued = issued_from_text(run_ranks(3, body, recorded)[0]);
  EXPECT_EQ(std::ranges::count(issued, group_opened, &IssuedCollective::operation), 4);
  EXPECT_EQ(most_open(issued), 1u);
}

TEST(ContextGroups, AGroupOfAllRanksIsNotTheCommunicatorOfTheGradients) {
  run_ranks(2, [](World& world) {
    ContextGroups groups(world, 1);
    const StepPlan plan = plan_of(2, {{0, 2}});
    groups.open(plan);
    Communicator& both = groups.of(plan.microbatches[0][0]);
    at::Tensor gradients = at::ones({2'000'000});
    at::Tensor part = at::zeros({1'000'000});
    const auto pending = world.all().reduce_scatter_sum(part, gradients, "gradients");
    talk_in(both, plan.microbatches[0][0]);
    pending->wait();
    EXPECT_NE(&both, &world.all());
    EXPECT_NE(both.name(), world.all().name());
    EXPECT_EQ(part[0].item<float>(), 2);
  });
}

TEST(ContextGroups, NothingIsOpenedInsideAStep) {
  run_ranks(3, [](World& world) {
    ContextGroups groups(world, 4);
    const std::int32_t rank = world.place().rank;
    groups.open(plan_of(3, {{0, 2}}));
    EXPECT_EQ(groups.of({{rank, 1}, {}, {}}).size(), 1);
    EXPECT_EQ(message_of([&] {
                (void)groups.of({{0, 3}, {}, {}});
              }),
              "[context groups] the group of 3 ranks from 0 on is not open on rank " +
                  std::to_string(rank));
    if (rank == 2) {
      EXPECT_THROW((void)groups.of({{0, 2}, {}, {}}), std::invalid_argument);
    }
  });
}

}  // namespace
}  // namespace isochron
