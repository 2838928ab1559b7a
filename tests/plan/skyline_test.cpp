// Wide groups placed in time: by hand, and that no two of them ever want the same rank.

#include "isochron/plan/steps/skyline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "isochron/core/random.h"
#include "isochron/plan/bounds/bounds.h"
#include "isochron/plan/draft_slots.h"
#include "isochron/plan/exact.h"
#include "isochron/plan/steps/gap_fill.h"
#include "isochron/plan/steps/nested_step.h"
#include "tests/plan/singles.h"
#include "tests/plan/tiny_question.h"
#include "tests/support/num_instances.h"

namespace isochron {
namespace {

constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max() / 4;

PlanOptions any_size(const Topology& topology) {
  return resolved({.context = "dynamic:any"}, topology);
}

struct Placed {
  Problem problem;
  WideGroups wide;
  Skyline skyline;

  Placed(Work work, const Topology& topology, const CostModel& cost)
      : problem(std::move(work), topology, cost, any_size(topology)), skyline(problem, wide) {
    wide.reset(problem.num_ranks());
    skyline.reset(1, 1);
  }

  void place(BundleId bundle, std::int32_t size, Nanoseconds target = never,
             Reach reach = Reach::near) {
    std::int64_t work = 0;
    skyline.place(bundle, size, target, reach, work);
  }
};

TEST(Skyline, ANarrowGroupGoesIntoTheHoleBelowAWideOne) {
  Placed placed(singles({20, 40, 12}), {.ranks = 4, .capacity = 10}, plain_cost());
  placed.place(0, 2);
  placed.place(1, 4);
  placed.place(2, 2);
  const std::vector<WideGroup>& groups = placed.wide.groups;
  ASSERT_EQ(groups.size(), 3);
  EXPECT_EQ(groups[0].ranks, (RankRange{.first = 0, .size = 2}));
  EXPECT_EQ(groups[1].start, 11);  // after the first: 20 tokens on two ranks, and a micro-batch
  EXPECT_EQ(groups[2].ranks, (RankRange{.first = 2, .size = 2}));
  EXPECT_EQ(groups[2].start, 0);
  EXPECT_EQ(groups[2].end, 7);
  EXPECT_EQ(placed.wide.top, 22);
  const std::vector<Gap> gaps = placed.skyline.gaps();
  ASSERT_EQ(gaps.size(), 2);
  for (const Gap& gap : gaps) {
    EXPECT_EQ(gap.start, 7);
    EXPECT_EQ(gap.end, 11);
  }
}

// Every rank is busy for 11. Of 20 tokens that should end by 14, eight ranks have 3 and ten
// ranks 2.
TEST(Skyline, AFarReachTakesAsManyRanksAsKeepTheTarget) {
  for (const Reach reach : {Reach::near, Reach::far}) {
    Placed placed(singles({100, 20}), {.ranks = 10, .capacity = 10}, plain_cost());
    placed.place(0, 10);
    placed.place(1, 2, 14, reach);
    EXPECT_EQ(placed.wide.groups.back().ranks.size, reach == Reach::far ? 10 : 5);
    EXPECT_EQ(placed.wide.top, reach == Reach::far ? 14 : 16);
  }
}

TEST(Skyline, ASequenceJoinsTheGroupOnTopIfItsTokensFit) {
  Placed placed(singles({12, 8}), {.ranks = 2, .capacity = 10}, plain_cost());
  placed.place(0, 2);
  placed.place(1, 2);
  ASSERT_EQ(placed.wide.groups.size(), 1);
  EXPECT_EQ(placed.wide.groups[0].items, (std::vector<ItemId>{0, 1}));
  EXPECT_EQ(placed.wide.top, 11);
}

TEST(GapFill, AGapHoldsSeveralMicrobatches) {
  const Problem problem(singles({10, 10, 10}), {.ranks = 2, .capacity = 10}, plain_cost(),
                        any_size({.ranks = 2, .capacity = 10}));
  std::vector<BundleId> narrow = {0, 1, 2};
  std::int64_t work = 0;
  const auto filled = fill_gaps(problem, {{.rank = 1, .start = 5, .end = 30}}, narrow, work);
  ASSERT_EQ(filled.size(), 2);
  EXPECT_EQ(filled[0].start, 5);
  EXPECT_EQ(filled[0].end, 16);
  EXPECT_EQ(filled[1].end, 27);
  EXPECT_EQ(narrow, (std::vector<BundleId>{2}));
}

struct Drawn {
  CostModel cost;
  Topology topology;
  Work work;
};

Drawn random_any(std::uint64_t seed, std::int32_t most_ranks, std::int64_t most_items) {
  Random random(seed);
  Drawn drawn;
  drawn.cost = random_cost(random);
  drawn.topology.ranks = static_cast<std::int32_t>(random.between(2, most_ranks));
  drawn.topology.capacity = 4096;
  std::vector<Tokens> lengths;
  const std::int64_t count = random.between(1, most_items);
  for (std::int64_t i = 0; i < count; ++i) {
    lengths.push_back(random.between(1, drawn.topology.capacity * drawn.topology.ranks * 3 / 4));
  }
  drawn.work = singles(lengths);
  return drawn;
}

TEST(Skyline, NoTwoGroupsWantARankAtTheSameTime) {
  for (std::uint64_t seed = 0; seed < num_asked(300); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Drawn drawn = random_any(seed, 20, 60);
    Placed placed(drawn.work, drawn.topology, drawn.cost);
    const Problem& problem = placed.problem;
    for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
      const std::size_t place = problem.smallest_place(bundle);
      ASSERT_LT(place, problem.sizes().size());
      EXPECT_TRUE(place == 0 || !problem.fits(problem.sizes()[place - 1], bundle));
      placed.place(bundle, problem.sizes()[place]);
    }
    struct Span {
      Nanoseconds start, end;
    };
    std::vector<std::vector<Span>> spans(static_cast<std::size_t>(problem.num_ranks()));
    std::size_t num_items = 0;
    for (const WideGroup& group : placed.wide.groups) {
      num_items += group.items.size();
      EXPECT_LE(group.tokens, problem.capacity() * group.ranks.size);
      if (drawn.cost.context.size() == 1) {
        EXPECT_EQ(group.end - group.start, problem.group_cost(group.ranks, group.items));
      }
      for (std::int64_t r = 0; r < group.ranks.size; ++r) {
        spans[static_cast<std::size_t>(group.ranks.first + r)].push_back({group.start, group.end});
      }
    }
    EXPECT_EQ(num_items, static_cast<std::size_t>(problem.num_items()));
    for (const Gap& gap : placed.skyline.gaps()) {
      spans[static_cast<std::size_t>(gap.rank)].push_back({gap.start, gap.end});
    }
    for (std::size_t r = 0; r < spans.size(); ++r) {
      std::sort(spans[r].begin(), spans[r].end(),
                [](const Span& a, const Span& b) { return a.start < b.start; });
      Nanoseconds free = 0;
      for (const Span& span : spans[r]) {
        EXPECT_GE(span.start, free);
        free = span.end;
      }
      EXPECT_EQ(free, placed.wide.height[r]);
    }
  }
}

TEST(NestedStep, TwoRanksBesideOneAreNotAligned) {
  const Topology topology{.ranks = 3, .capacity = 10};
  const Problem problem(singles({20, 10}), topology, plain_cost(), any_size(topology));
  ASSERT_TRUE(has_nested_step(problem));
  const auto draft = find_nested_step(problem, never);
  ASSERT_TRUE(draft);
  EXPECT_EQ(draft->time, 11);
  EXPECT_FALSE(find_nested_step(problem, 11));
}

TEST(NestedStep, IsNeverLongerThanTheBestAlignedStepNorShorterThanTheBound) {
  std::int32_t num_shorter = 0;
  for (std::uint64_t seed = 0; seed < num_asked(300); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Drawn drawn = random_any(seed, 8, 7);
    drawn.topology.ranks = 8;
    const Problem problem(drawn.work, drawn.topology, drawn.cost, any_size(drawn.topology));
    const Problem aligned(drawn.work, drawn.topology, drawn.cost,
                          resolved({.context = "dynamic"}, drawn.topology));
    ASSERT_TRUE(has_nested_step(problem));
    const auto nested = find_nested_step(problem, never);
    ASSERT_TRUE(nested);
    EXPECT_GE(nested->time, step_bound(problem));
    const auto exact = find_exact_step(aligned);
    if (!exact) continue;
    EXPECT_LE(nested->time, exact->draft.time);
    if (nested->time < exact->draft.time) ++num_shorter;
  }
  EXPECT_GE(num_shorter, static_cast<std::int32_t>(num_asked(300) / 10));
}

}  // namespace
}  // namespace isochron
