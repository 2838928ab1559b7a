// Slots that all ranks wait for, as long as suits a pipeline: nothing is lost, all limits are kept,
// and they take what they promise.

#include "isochron/plan/pipelines/shaped_slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "isochron/core/order.h"
#include "isochron/core/random.h"
#include "isochron/plan/pipelines/pipeline_bound.h"
#include "isochron/plan/slots/slot_search.h"
#include "tests/plan/singles.h"
#include "tests/plan/slot_times.h"
#include "tests/plan/tiny_question.h"
#include "tests/support/num_instances.h"

namespace isochron {
namespace {

std::vector<Nanoseconds> times_of(const Problem& problem, const DraftSlots& slots) {
  std::vector<Nanoseconds> times;
  for (const auto& slot : slots) {
    times.push_back(problem.microbatch());
    for (const DraftGroup& group : slot) {
      times.back() = std::max(times.back(), group_time(problem, group));
    }
  }
  return times;
}

void expect_valid(const Problem& problem, const DraftSlots& slots) {
  std::set<ItemId> seen;
  for (const auto& slot : slots) {
    std::set<std::int64_t> ranks;
    for (const DraftGroup& group : slot) {
      const auto size = static_cast<std::int32_t>(group.ranks.size);
      Tokens tokens = 0;
      for (const ItemId item : group.items) {
        EXPECT_TRUE(seen.insert(item).second) << "item " << item << " twice";
        EXPECT_TRUE(problem.item_fits(size, item));
        tokens += problem.tokens(size, item);
      }
      EXPECT_LE(tokens, problem.capacity() * size);
      EXPECT_GE(problem.price_of(group.ranks), 0) << "no group stands there";
      for (std::int64_t rank = 0; rank < size; ++rank) {
        EXPECT_TRUE(ranks.insert(group.ranks.first + rank).second) << "a rank in two groups";
      }
    }
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(problem.num_items()));
}

TEST(ShapedSlots, HoldEverythingInTheTimeThatTheyHave) {
  int num_found = 0;
  int num_ends = 0;
  for (std::uint64_t seed = 0; seed < num_instances(300); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    StepQuestion question =
        random_question(seed, {.most_sequences = static_cast<std::size_t>(random.between(4, 90)),
                               .most_ranks = 16,
                               .options = {.context = "dynamic", .sync = Sync::microbatch},
                               .stages = static_cast<std::int32_t>(random.between(2, 4))});
    PipelineShape& shape = question.topology.pipeline;
    if (random.below(2) == 0) {
      shape.virtual_ = 2;
      shape.group = shape.stages;
    }
    const Problem problem(singles(question.batch.lengths), question.topology, question.cost,
                          resolved(question.options, question.topology));
    if (!are_all_held(problem)) continue;
    const double forward_share = question.cost.forward_share;
    const RankRoom room = rank_room_of(problem);
    SlotHeights heights(shape, Pass::train, forward_share);
    ShapedSlots shaped(problem, room, heights);
    const auto time = [&](const std::vector<Nanoseconds>& times) {
      return time_of(shape, times, forward_share) / shape.stages;
    };
    const auto multiple = static_cast<std::size_t>(shape.virtual_ > 1 ? shape.group : 1);

    const DraftSlots tight = search_slots(problem, 0, 20'000).slots;
    std::vector<Nanoseconds> times = times_of(problem, tight);
    times.resize((times.size() + multiple - 1) / multiple * multiple, problem.microbatch());
    std::vector<Nanoseconds> in_order;
    for (const std::size_t slot : small_ends(times)) in_order.push_back(times[slot]);
    const double known = time(in_order);

    for (const bool is_even : {false, true}) {
      const DraftSlots found = shaped.search(pipeline_bound(problem, room),
                                             static_cast<Nanoseconds>(1.1 * known), is_even);
      if (found.empty()) continue;
      ++num_found;
      expect_valid(problem, found);
      for (const auto& slot : found) {
        std::int64_t num_ranks = 0;
        for (const DraftGroup& group : slot) num_ranks += group.ranks.size;
        EXPECT_EQ(num_ranks, problem.num_ranks()) << "a rank idles";
      }
      EXPECT_EQ(found.size() % multiple, 0U);
      EXPECT_LE(time(times_of(problem, found)), 1.1 * known);
    }
    const DraftSlots ended = shaped.with_ends(tight);
    if (ended.empty()) continue;
    ++num_ends;
    expect_valid(problem, ended);
  }
  EXPECT_GT(num_found, 100);
  EXPECT_GT(num_ends, 50);
}

TEST(ShapedSlots, FindNothingInNoTime) {
  const Topology topology{.ranks = 4, .capacity = 1000, .pipeline = {.stages = 2}};
  const Problem problem(singles({900, 800, 20, 10}), topology, plain_cost(10),
                        resolved({.context = "dynamic", .sync = Sync::microbatch}, topology));
  const RankRoom room = rank_room_of(problem);
  SlotHeights heights(topology.pipeline, Pass::train, problem.model().forward_share);
  ShapedSlots shaped(problem, room, heights);
  EXPECT_TRUE(shaped.search(1, 2, false).empty());
  EXPECT_TRUE(shaped.search(1, 2, true).empty());
  EXPECT_TRUE(shaped.with_ends({}).empty());
}

}  // namespace
}  // namespace isochron
