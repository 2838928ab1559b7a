// Bundles in slots for which all ranks wait: cells of ranks, and what they run in lock step.

#include "isochron/plan/bundles/kept_slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "isochron/check/check.h"
#include "isochron/plan/bundles/cell_partition.h"
#include "isochron/plan/bundles/lock_step.h"
#include "isochron/plan/narrower_questions.h"
#include "isochron/plan/pipelines/kept_cells.h"
#include "isochron/plan/pipelines/pipeline_grid.h"
#include "isochron/plan/plan.h"
#include "tests/plan/drawn_bundles.h"
#include "tests/plan/singles.h"
#include "tests/support/num_instances.h"

namespace isochron {
namespace {

// Long tails within prompts: the largest of a few are many times the others.
Batch long_tailed(std::uint64_t seed, std::int32_t num_prompts, std::int32_t num_answers) {
  Random random(seed);
  Batch batch;
  for (std::int32_t p = 0; p < num_prompts; ++p) {
    batch.group_names.push_back(std::to_string(p));
    for (std::int32_t a = 0; a < num_answers; ++a) {
      const Tokens most = random.below(24) == 0 ? 60'000 : random.below(4) == 0 ? 12'000 : 2'000;
      batch.lengths.push_back(random.between(100, most));
      batch.groups.emplace_back(p);
    }
  }
  return batch;
}

// Bundles on any number of ranks, with every table that cells are cut by.
void for_random_tables(std::uint64_t standard,
                       const std::function<void(const Problem&, const BundleTable&)>& check) {
  int num_tables = 0;
  int num_others = 0;  // of sizes that do not nest
  for (std::uint64_t seed = 0; seed < num_asked(standard); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Drawn drawn = random_bundles(seed);
    if (seed % 2 == 0) drawn.topology.ranks = static_cast<std::int32_t>(1 + seed % 49);
    const Problem problem(drawn.work, drawn.topology, drawn.cost,
                          resolved(drawn.options, drawn.topology));
    for (const auto& sizes : cell_sizes(problem)) {
      check(problem, BundleTable(problem, sizes));
      ++num_tables;
      if (!has_nested_bundles(problem)) ++num_others;
    }
  }
  EXPECT_GT(num_tables, num_others);
  EXPECT_GT(num_others, 0);
}

TEST(CellSizes, DivideEachOther) {
  const auto sizes_on = [](std::int32_t ranks) {
    Drawn drawn = plain_bundles({{20, 90, 20}, {60, 20}});
    drawn.topology.ranks = ranks;
    drawn.options.context = "dynamic";
    drawn.cost.context = {{.kind = ContextKind::none, .links = {}}};
    return cell_sizes({drawn.work, drawn.topology, drawn.cost, drawn.options});
  };
  using Chains = std::vector<std::vector<std::int32_t>>;
  EXPECT_EQ(sizes_on(1), (Chains{{1}}));
  EXPECT_EQ(sizes_on(8), (Chains{{1, 2, 4, 8}}));
  EXPECT_EQ(sizes_on(12), (Chains{{1, 2, 4, 8}, {1, 3, 6, 12}}));
  EXPECT_EQ(sizes_on(13), (Chains{{1, 2, 4, 8}, {1, 13}}));
}

TEST(CellPartition, EveryBundleHasOneCellThatHoldsIt) {
  int num_cut = 0;
  for_random_tables(3000, [&](const Problem& problem, const BundleTable& table) {
    for (std::int32_t level = 0; level < table.num_levels(); ++level) {
      for (const auto& cells : cut_into_cells(problem, table, {.narrowest = level})) {
        ++num_cut;
        std::set<BundleId> seen;
        std::int64_t end = 0;
        for (const BundleCell& cell : cells) {
          EXPECT_GE(cell.ranks.first, end);
          EXPECT_GE(cell.ranks.size, table.size(level));
          EXPECT_EQ(cell.ranks.first % cell.ranks.size, 0);
          end = cell.ranks.first + cell.ranks.size;
          for (const BundleId bundle : cell.bundles) {
            EXPECT_TRUE(seen.insert(bundle).second);
            EXPECT_TRUE(problem.fits(static_cast<std::int32_t>(cell.ranks.size), bundle));
          }
        }
        EXPECT_LE(end, problem.num_ranks());
        EXPECT_EQ(static_cast<std::int32_t>(seen.size()), problem.num_bundles());
      }
    }
  });
  EXPECT_GT(num_cut, 0);
}

TEST(CellPartition, NoCellTakesTheLimit) {
  for_random_tables(1000, [&](const Problem& problem, const BundleTable& table) {
    const auto cuts = cut_into_cells(problem, table, {});
    if (cuts.empty()) return;
    Nanoseconds longest = 0;
    for (const BundleCell& cell : cuts.front()) {
      std::int32_t level = 0;
      while (table.size(level) < cell.ranks.size) ++level;
      BlockUse use;
      for (const BundleId bundle : cell.bundles) {
        use.cost += table.use(level, bundle).cost;
        use.tokens += table.use(level, bundle).tokens;
        use.sequences += table.use(level, bundle).sequences;
      }
      longest = std::max(longest, table.time(level, use));
    }
    EXPECT_FALSE(cut_into_cells(problem, table, {.limit = longest + 1}).empty());
    EXPECT_TRUE(cut_into_cells(problem, table, {.limit = 1}).empty());
  });
}

TEST(CellPartition, LongItemsGetAWideCellAndOthersNarrowOnes) {
  Drawn drawn = plain_bundles({{350, 10}, {90, 90}, {90, 80}, {80, 90}, {90, 90}});
  drawn.topology.ranks = 8;
  drawn.cost.context = {{.links = {{.max_ranks = 8, .gb_per_s = 1000}}}};
  drawn.options =
      resolved(PlanOptions{.context = "dynamic", .keep_groups = KeepGroups::rank}, drawn.topology);
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  ASSERT_TRUE(has_nested_bundles(problem));
  const auto cuts = cut_into_cells(problem, BundleTable(problem), {});
  ASSERT_FALSE(cuts.empty());
  // Those of 170 have a rank each. Of those of 180 one finds time in the wide cell, the other takes
  // the two ranks that are left.
  const std::vector<BundleCell>& cells = cuts.front();
  const std::vector<BundleCell> expected = {{.ranks = {.first = 0, .size = 4}, .bundles = {0, 1}},
                                            {.ranks = {.first = 4, .size = 2}, .bundles = {4}},
                                            {.ranks = {.first = 6, .size = 1}, .bundles = {2}},
                                            {.ranks = {.first = 7, .size = 1}, .bundles = {3}}};
  EXPECT_EQ(cells, expected);
}

TEST(CellPartition, ACellThatWaitsForLongItemsIsWider) {
  Drawn drawn = plain_bundles({{90, 10}, {50, 50}, {50, 50}});
  drawn.topology.ranks = 4;
  drawn.cost.context = {{.links = {{.max_ranks = 4, .gb_per_s = 1000}}}};
  drawn.options =
      resolved(PlanOptions{.context = "dynamic", .keep_groups = KeepGroups::rank}, drawn.topology);
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const BundleTable table(problem);
  const auto size_of_first = [&](double wait) -> std::int64_t {
    const auto cuts = cut_into_cells(problem, table, {.wait = wait});
    for (const BundleCell& cell : cuts.front()) {
      if (std::count(cell.bundles.begin(), cell.bundles.end(), 0) > 0) return cell.ranks.size;
    }
    return 0;
  };
  // 100 on a rank each, and one rank is left. Where 90 is waited for three more times, four ranks
  // are done with all three at 75 + 3 * 22.5, before two are with it alone and the others at 250.
  EXPECT_EQ(size_of_first(0), 1);
  EXPECT_EQ(size_of_first(3), 4);
}

TEST(KeptCells, FillEverySlotByItsShare) {
  Drawn drawn = plain_bundles({{40, 40, 20, 20, 10, 10}});
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const std::vector<BundleCell> cells = {{.ranks = {.first = 0, .size = 1}, .bundles = {0}}};
  const SlotRange range = slots_of_cells(problem, cells, problem.capacity());
  EXPECT_EQ(range.least, 2);
  EXPECT_EQ(range.most, 6);
  const std::vector<double> heights = {1, 4, 2};
  const auto draft = fill_kept_cells(problem, cells, heights, problem.capacity());
  ASSERT_TRUE(draft);
  std::vector<Tokens> tokens;
  for (const CellDraft::Bin& bin : draft->bins) {
    Tokens sum = 0;
    for (const ItemId item : bin.items) sum += problem.tokens(1, item);
    tokens.push_back(sum);
  }
  EXPECT_EQ(tokens, (std::vector<Tokens>{20, 80, 40}));
  EXPECT_FALSE(fill_kept_cells(problem, cells, std::vector<double>{1}, problem.capacity()));
}

TEST(KeptCells, TokensAndSequencesFillSlots) {
  Drawn drawn = plain_bundles({{40, 40, 20}, {100}, {100}, {10}});
  const auto fewest = [&] {
    return fewest_slots({drawn.work, drawn.topology, drawn.cost, drawn.options}, 100);
  };
  EXPECT_EQ(fewest(), 2);
  drawn.options.max_sequences = 1;
  EXPECT_EQ(fewest(), 3);
}

TEST(KeptCells, NoneEndsWithinATimeThatTheyExceed) {
  int num_close = 0;
  for (std::uint64_t seed = 0; seed < num_asked(600); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Drawn drawn = random_bundles(seed);
    PipelineShape& shape = drawn.topology.pipeline;
    shape.stages = static_cast<std::int32_t>(2 + seed % 3);
    shape.transfer_ns = seed % 4 == 0 ? 1'000'000 : 0;
    if (seed % 5 == 0) {
      shape.virtual_ = 2;
      shape.group = shape.stages;
    }
    drawn.options.counts = Counts::equal;
    if (seed % 7 == 0) drawn.options.pass = Pass::forward;
    const Problem problem(drawn.work, drawn.topology, drawn.cost,
                          resolved(drawn.options, drawn.topology));
    const RankRoom room = rank_room_of(problem);
    bool may_move = true;  // bundles of one item would leave their cells
    for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
      may_move = may_move && problem.items_of(bundle).size() > 1;
    }
    for (const auto& sizes : cell_sizes(problem)) {
      for (const auto& cells : cut_into_cells(problem, BundleTable(problem, sizes), {.wait = 3})) {
        const auto [least, most] = slots_of_cells(problem, cells, problem.capacity());
        for (const std::int32_t count : {least, most}) {
          const std::int32_t num_slots = (count + shape.group - 1) / shape.group * shape.group;
          const std::vector<double> heights(static_cast<std::size_t>(num_slots), 1);
          auto draft = fill_kept_cells(problem, cells, heights, problem.capacity());
          if (!draft) continue;
          const Nanoseconds step =
              improved_grid(problem, *std::move(draft),
                            {.num_slots = num_slots, .capacity = problem.capacity()}, 0,
                            may_move ? 20'000 : 0)
                  .time;
          const double time = time_in_room(problem, room, step) + room.lost();
          EXPECT_FALSE(exceed(problem, cells, room, time + 100 * num_slots, num_slots));
          if (exceed(problem, cells, room, time * 0.8, num_slots)) ++num_close;
        }
      }
    }
  }
  EXPECT_GT(num_close, 0);
}

TEST(KeptCells, PlansOfStagesKeepLongTailsTogether) {
  // No static size of cells is faster than cells that have their own.
  for (std::uint64_t seed = 0; seed < num_asked(30); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Batch batch = long_tailed(seed, 8 + 4 * static_cast<std::int32_t>(seed % 5), 8);
    Topology topology = {.ranks = 16, .capacity = 16'384};
    topology.pipeline.stages = 4;
    if (seed % 3 == 0) {
      topology.pipeline.virtual_ = 2;
      topology.pipeline.group = 4;
    }
    const CostModel cost = cost_preset("qwen3-8b_h100");
    PlanOptions options = {.context = "dynamic", .keep_groups = KeepGroups::rank};
    const StepPlan dynamic = plan_step(batch, topology, cost, options);
    EXPECT_EQ(find_violation(to_json(dynamic), &batch), std::nullopt);
    for (const char* context : {"static:4", "static:8", "static:16"}) {
      options.context = context;
      const StepPlan fixed = plan_step(batch, topology, cost, options);
      if (fixed.microbatches.empty()) continue;
      EXPECT_LE(dynamic.predicted_step_ns, fixed.predicted_step_ns) << context;
    }
  }
}

TEST(LockStep, ALongItemIsWaitedForOnce) {
  // The long ones of both cells share a slot, whatever the order in which they are given.
  const Drawn drawn = plain_bundles({{20, 90, 20}, {60, 20, 80}});
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const DraftSlots slots = lock_step(problem, {{.ranks = {.first = 0, .size = 1}, .bundles = {0}},
                                               {.ranks = {.first = 1, .size = 1}, .bundles = {1}}});
  EXPECT_EQ(slots.size(), 2U);
  EXPECT_EQ(slots_time(problem, slots), 160);  // 90 | 20 + 20 beside 80 + 20 | 60 has no such luck
}

TEST(LockStep, HoldsEveryItemOnceUnderTheCapacity) {
  for_random_tables(2000, [&](const Problem& problem, const BundleTable& table) {
    for (const auto& cells : cut_into_cells(problem, table, {})) {
      const DraftSlots slots = lock_step(problem, cells);
      std::set<ItemId> seen;
      for (const auto& slot : slots) {
        std::set<std::int64_t> used;
        for (const DraftGroup& group : slot) {
          EXPECT_FALSE(group.items.empty());
          Tokens tokens = 0;
          for (std::int64_t r = 0; r < group.ranks.size; ++r) {
            EXPECT_TRUE(used.insert(group.ranks.first + r).second);
          }
          for (const ItemId item : group.items) {
            EXPECT_TRUE(seen.insert(item).second);
            tokens += problem.tokens(static_cast<std::int32_t>(group.ranks.size), item);
          }
          EXPECT_LE(tokens, problem.capacity() * group.ranks.size);
          if (const std::int32_t most = problem.options().max_sequences; most > 0) {
            EXPECT_LE(static_cast<std::int32_t>(group.items.size()), most);
          }
        }
      }
      EXPECT_EQ(static_cast<std::int32_t>(seen.size()), problem.num_items());
    }
  });
}

TEST(KeptSlots, NoStaticSizeIsFaster) {
  for (std::uint64_t seed = 0; seed < num_asked(40); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Batch batch = long_tailed(seed, 24, 8);
    const Topology topology = {.ranks = 16, .capacity = 16'384};
    const CostModel cost = cost_preset("qwen3-8b_h100");
    PlanOptions options = {.sync = Sync::microbatch, .keep_groups = KeepGroups::rank};
    options.context = "dynamic";
    options.effort = 30'000;
    const StepPlan dynamic = plan_step(batch, topology, cost, options);
    EXPECT_EQ(find_violation(to_json(dynamic), &batch), std::nullopt);
    for (const char* context : {"static:1", "static:2", "static:4", "static:8", "static:16"}) {
      options.context = context;
      const StepPlan fixed = plan_step(batch, topology, cost, options);
      if (fixed.microbatches.empty()) continue;
      EXPECT_LE(dynamic.predicted_step_ns, fixed.predicted_step_ns) << context;
    }
  }
}

TEST(KeptSlots, RanksThatAreNoPowerOfTwoGetCellsToo) {
  // Otherwise 1.076 and 1.187 times their bounds.
  for (const std::int32_t stages : {1, 4}) {
    double sum = 0;
    int count = 0;
    for (const std::int32_t ranks : {6, 10, 12, 13, 14, 24}) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, stages " << stages);
      Batch batch = long_tailed(static_cast<std::uint64_t>(ranks), 3 * ranks, 4);
      Random random(1);
      for (Tokens& length : batch.lengths) length = random.between(500, 5'000 * ranks);
      const Topology topology = {
          .ranks = ranks, .capacity = 16'384, .pipeline = {.stages = stages}};
      PlanOptions options = {.context = "dynamic", .keep_groups = KeepGroups::rank};
      if (stages == 1) options.sync = Sync::microbatch;
      const StepPlan plan = plan_step(batch, topology, cost_7b_h100(), options);
      EXPECT_EQ(find_violation(to_json(plan), &batch), std::nullopt);
      sum += static_cast<double>(plan.predicted_step_ns) / static_cast<double>(plan.lower_bound_ns);
      ++count;
    }
    EXPECT_LE(sum / count, stages == 1 ? 1.07 : 1.13);
  }
}

TEST(WholeBundles, AreOneMicrobatchEach) {
  const auto problem_of = [](const std::vector<std::vector<Tokens>>& prompts) {
    Drawn drawn = plain_bundles(prompts);
    drawn.options.context = "dynamic";
    drawn.cost.context = {{.kind = ContextKind::none, .links = {}}};
    return std::make_unique<Problem>(drawn.work, drawn.topology, drawn.cost, drawn.options);
  };
  const auto asked = problem_of({{20, 90, 20}, {60, 20}});
  const auto found = find_whole_prompts(*asked);
  ASSERT_TRUE(found);
  const Problem& whole = *found->problem;
  EXPECT_EQ(whole.num_items(), 2);
  EXPECT_EQ(whole.tokens(1, 0), 130);
  EXPECT_FALSE(whole.item_fits(1, 0));
  EXPECT_TRUE(whole.item_fits(2, 0));
  const DraftSlots slots =
      found->answer(*asked, {{{.ranks = {.first = 0, .size = 2}, .items = {0}}},
                             {{.ranks = {.first = 1, .size = 1}, .items = {1}}}});
  EXPECT_EQ(slots[0][0].items, (std::vector<ItemId>{0, 1, 2}));
  EXPECT_EQ(slots[1][0].items, (std::vector<ItemId>{3, 4}));
  // More than all ranks hold at once.
  EXPECT_FALSE(find_whole_prompts(*problem_of({{90, 90, 90}, {20}})));
}

TEST(WholeBundles, AGiantSequenceDoesNotBindTheRanksOfAllOthers) {
  for (const std::int32_t stages : {1, 4}) {
    for (std::uint64_t seed = 0; seed < num_asked(10); ++seed) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", stages " << stages);
      Batch batch = long_tailed(seed, 32, 8);
      for (Tokens& length : batch.lengths) length = std::min<Tokens>(length, 12'000);
      batch.lengths[seed] = 200'000;
      const Topology topology = {.ranks = 32, .capacity = 16'384, .pipeline = {.stages = stages}};
      const CostModel cost = cost_preset("qwen3-8b_h100");
      PlanOptions options = {.context = "dynamic", .keep_groups = KeepGroups::rank};
      if (stages == 1) options.sync = Sync::microbatch;
      const StepPlan kept = plan_step(batch, topology, cost, options);
      EXPECT_EQ(find_violation(to_json(kept), &batch), std::nullopt);
      options.keep_groups = KeepGroups::microbatch;
      const StepPlan fused = plan_step(batch, topology, cost, options);
      // It has a part of the effort only.
      EXPECT_LE(static_cast<double>(kept.predicted_step_ns),
                1.02 * static_cast<double>(fused.predicted_step_ns));
    }
  }
}

}  // namespace
}  // namespace isochron
