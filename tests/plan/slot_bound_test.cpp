// What no step of slots can beat: by hand, beside exhaustive search, and beside plans.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "isochron/core/random.h"
#include "isochron/plan/bounds/bounds.h"
#include "isochron/plan/bounds/leaders.h"
#include "isochron/plan/bounds/rank_knapsack.h"
#include "isochron/plan/bounds/rise_program.h"
#include "isochron/plan/plan.h"
#include "tests/oracle/best_plan.h"
#include "tests/plan/singles.h"
#include "tests/plan/tiny_question.h"
#include "tests/support/num_instances.h"
#include "tests/support/print_question.h"

namespace isochron {
namespace {

Nanoseconds bound_of(const StepQuestion& question) {
  const Problem problem(singles(question.batch.lengths), question.topology, question.cost,
                        resolved(question.options, question.topology));
  return slot_bound(problem);
}

StepQuestion microbatch_question(std::vector<Tokens> lengths, std::int32_t ranks, Tokens capacity,
                                 const char* context) {
  StepQuestion question;
  question.batch.lengths = std::move(lengths);
  question.topology = {.ranks = ranks, .capacity = capacity};
  question.options = {.context = context, .sync = Sync::microbatch};
  return question;
}

// Five sequences that share no rank, two ranks: slots of 9, 7 and 6. The mean work is 18.
TEST(SlotBound, SequencesThatShareNoRankMakeSlotsInTheirOrder) {
  StepQuestion question = microbatch_question({6, 9, 7, 8, 6}, 2, 10, "static:1");
  question.cost.linear_ns = 1;
  EXPECT_EQ(bound_of(question), 22);
}

// Of sequences above a third of the capacity two share a rank: the fifth one begins a second slot.
TEST(SlotBound, OfShorterOnesAFewShareARank) {
  StepQuestion question = microbatch_question({4, 4, 4, 4, 4}, 2, 11, "static:1");
  question.cost.linear_ns = 0;
  question.cost.microbatch_ns = 10;
  EXPECT_EQ(bound_of(question), 20);
}

// A sequence of 10 tokens takes 100 of a rank, which the other has 8 and 2 for at most: 64 and 4.
// So 32 of two ranks are left over there. All together take 218 of two ranks, and a second slot.
TEST(SlotBound, WhatTokensLeaveOverInALongSlotCountsToo) {
  StepQuestion question = microbatch_question({10, 8, 2, 5, 5}, 2, 10, "static:1");
  question.cost.quadratic_ns = 1;
  EXPECT_EQ(bound_of(question), 218 / 2 + 32 / 2);
}

// One rank runs the longest, the other one both others, in one slot.
TEST(SlotBound, LongOnesMayShareAGroup) {
  StepQuestion question = microbatch_question({60, 50, 10}, 2, 60, "static:1");
  question.cost.linear_ns = 1;
  question.cost.microbatch_ns = 5;
  EXPECT_EQ(bound_of(question), 65);
}

// 20 tokens take 200 on two ranks, 14 tokens 98. A slot of 200 has room for one of the latter, and
// 4 tokens, of the remaining ranks, so 2 * 102 of 4 ranks are idle. On four ranks the long one
// would wait 150 for the network.
TEST(SlotBound, AFewLongOnesFindNothingThatFillsTheirSlot) {
  StepQuestion question = microbatch_question({20, 14, 14}, 4, 10, "dynamic");
  question.cost.quadratic_ns = 1;
  question.cost.context = {{.kind = ContextKind::all_gather_kv,
                            .bytes_per_token = 10,
                            .links = {{2, 1e6, 0}, {64, 1, 0}}}};
  EXPECT_EQ(bound_of(question), (400 + 196 + 196) / 4 + 51);
  // It is cheap to wait there: 22 for both networks.
  question.cost.context[0].links[1].gb_per_s = 15;
  EXPECT_EQ(bound_of(question), (400 + 196 + 196) / 4 + 10);
}

// Each of five takes 10 on three of five ranks, and would wait for the network on more: a slot for
// each, though three and three fit six ranks.
TEST(SlotBound, GroupsThatLeaveFewRanksStandAlone) {
  StepQuestion question = microbatch_question({30, 30, 30, 30, 30}, 5, 10, "dynamic:any");
  question.cost.linear_ns = 1;
  question.cost.context = {{.kind = ContextKind::all_gather_kv,
                            .bytes_per_token = 10,
                            .links = {{3, 1e6, 0}, {64, 1, 0}}}};
  EXPECT_EQ(bound_of(question), 50);
  // On six ranks two nodes hold one each.
  question.topology.ranks = 6;
  EXPECT_EQ(bound_of(question), 25);
}

// It leaves out sizes that do not matter: here all of them are looked at.
TEST(EqualCountBound, KnowsAsMuchAsALookAtEverySize) {
  for (std::uint64_t seed = 0; seed < num_instances(200); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const auto ranks = std::int32_t{1} << random.below(5);
    std::vector<Tokens> lengths(random.below(30) + 1);
    for (Tokens& length : lengths) length = random.between(1, random.below(4) == 0 ? 900 : 90);
    const Topology topology{.ranks = ranks, .capacity = 1000};
    const Problem problem(singles(lengths), topology, random_cost(random),
                          resolved({.context = "dynamic"}, topology));
    double work = 0;
    double tokens = 0;
    double slowest = 0;
    for (ItemId item = 0; item < problem.num_items(); ++item) {
      double least = 1e300;
      double fewest = 1e300;
      double fastest = 1e300;
      for (const std::int32_t size : problem.sizes()) {
        if (!problem.item_fits(size, item)) continue;
        const auto own = static_cast<double>(problem.least_item_cost(size, item));
        least = std::min(least, own * size);
        fewest = std::min(fewest, static_cast<double>(problem.tokens(size, item)));
        fastest = std::min(fastest, own + static_cast<double>(problem.least_fixed(size)));
      }
      work += least;
      tokens += fewest;
      slowest = std::max(slowest, fastest);
    }
    const double slots = std::max(1.0, std::ceil(tokens / (1000.0 * ranks) * (1 - 1e-11)));
    const double even = work / ranks + slots * static_cast<double>(problem.microbatch());
    EXPECT_NEAR(static_cast<double>(equal_count_bound(problem)), std::max(even, slowest),
                2 + 1e-9 * even);
  }
}

TEST(RankKnapsack, FindsTheGroupsThatGainMost) {
  for (std::uint64_t seed = 0; seed < num_asked(300); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const auto ranks = static_cast<std::int32_t>(random.between(1, 8));
    struct Group {
      std::int32_t size = 1;
      double gain = 0;
    };
    std::vector<std::vector<Group>> groups(static_cast<std::size_t>(random.between(1, 5)));
    RankKnapsack knapsack(groups.size(), ranks, 40);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      for (std::int32_t size = 1; size <= ranks; ++size) {
        if (random.below(3) == 0) continue;
        groups[i].push_back({size, static_cast<double>(random.between(-20, 20))});
        knapsack.add(i, size, groups[i].back().gain, 15);
      }
    }
    RankKnapsack::Table table;
    knapsack.close(table);
    // Several times: what was seen before spares work.
    for (int time = 0; time < 4; ++time) {
      std::vector<double> rises(groups.size());
      for (double& rise : rises) rise = static_cast<double>(random.between(0, 15));
      double most = 0;
      const auto place_from = [&](const auto& place_next, std::size_t i, std::int32_t left,
                                  double gain) -> void {
        most = std::max(most, gain);
        if (i == groups.size()) return;
        place_next(place_next, i + 1, left, gain);
        for (const Group& group : groups[i]) {
          if (group.size > left) continue;
          place_next(place_next, i + 1, left - group.size, gain + group.gain + rises[i]);
        }
      };
      place_from(place_from, 0, ranks, 0);
      const RankKnapsack::Filled filled = knapsack.filled(rises, table);
      EXPECT_EQ(filled.excess > 0, most > 40);
      if (most > 40) {
        EXPECT_EQ(filled.excess, most - 40);
        EXPECT_FALSE(filled.leaders.empty());
      }
    }
  }
}

// The first one as far as it may, and 4 for the others.
TEST(RiseProgram, SharesWhatIsLeft) {
  RiseProgram program({5, 9, 9});
  program.add({{.value = 0}, {.value = 1}}, 8);
  program.add({{.value = 1}, {.value = 2}}, 4);
  program.solve(100);
  EXPECT_NEAR(program.values()[0] + program.values()[1] + program.values()[2], 9, 1e-9);
  program.add({{.value = 0}, {.value = 2}},
              3);  // of which the second takes all, so that the first rises by 3
  program.solve(100);
  EXPECT_NEAR(program.values()[0] + program.values()[1] + program.values()[2], 7, 1e-9);
}

// No values on a grid of small steps have a larger sum.
TEST(RiseProgram, NothingThatKeepsAllLimitsIsLarger) {
  for (std::uint64_t seed = 0; seed < num_asked(200); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    struct Limit {
      std::vector<RiseProgram::Part> parts;
      double limit = 0;
    };
    std::vector<double> most;
    for (int i = 0; i < 4; ++i) most.push_back(static_cast<double>(random.between(0, 20)));
    RiseProgram program(most);
    std::vector<Limit> limits;
    for (int k = 0; k < 6; ++k) {
      Limit limit;
      for (std::size_t i = 0; i < most.size(); ++i) {
        if (random.below(2) != 0) continue;
        limit.parts.push_back({.value = i, .weight = static_cast<double>(random.between(1, 3))});
      }
      limit.limit = static_cast<double>(random.between(0, 25));
      program.add(limit.parts, limit.limit);
      limits.push_back(std::move(limit));
      program.solve(100);  // one by one, as they come in
    }
    const auto keeps = [&](std::span<const double> values, double slack) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] < -slack || values[i] > most[i] + slack) return false;
      }
      return std::all_of(limits.begin(), limits.end(), [&](const Limit& limit) {
        double sum = 0;
        for (const auto& [value, weight] : limit.parts) sum += weight * values[value];
        return sum <= limit.limit + slack;
      });
    };
    EXPECT_TRUE(keeps(program.values(), 1e-9));
    double best = 0;
    for (int code = 0; code < 21 * 21 * 21 * 21; ++code) {
      const std::vector<double> values = {
          static_cast<double>(code % 21), static_cast<double>(code / 21 % 21),
          static_cast<double>(code / 441 % 21), static_cast<double>(code / 9261)};
      const double sum = values[0] + values[1] + values[2] + values[3];
      if (sum > best && keeps(values, 0)) best = sum;
    }
    const auto found = program.values();
    const double sum = found[0] + found[1] + found[2] + found[3];
    EXPECT_GE(sum, best - 1e-9);
    // What the limits are worth explains all of it.
    const std::vector<double> prices = program.prices();
    std::vector<double> left(most.size(), 1);
    double worth = 0;
    for (std::size_t k = 0; k < limits.size(); ++k) {
      worth += prices[k] * limits[k].limit;
      for (const auto& [value, weight] : limits[k].parts) left[value] -= weight * prices[k];
    }
    for (std::size_t i = 0; i < most.size(); ++i) worth += std::max(0.0, left[i]) * most[i];
    EXPECT_NEAR(worth, sum, 1e-9);
  }
}

// On 64 ranks a bundle may lead groups of many sizes.
TEST(Leaders, SizesTakenTogetherAreAsFastAndGainAsMuchAsEach) {
  Random random(1);
  const CostModel cost = random_cost(random);
  const Topology topology{.ranks = 64, .capacity = 16'384};
  const Problem problem(singles({200'000, 90'000, 5'000}), topology, cost,
                        resolved({.context = "dynamic:any"}, topology));
  const std::vector<double> prices = {3e8, 1e8, 7e6};  // about their least areas
  const SizeRules rules(65);
  Leaders leaders(problem, rules, prices);
  int num_together = 0;
  for (std::size_t i = 0; i < leaders.size(); ++i) {
    const auto bundle = static_cast<BundleId>(i);  // longest first already
    for (const Lead& lead : leaders.leads(i)) {
      if (lead.last == lead.place) continue;
      num_together += 1;
      for (std::size_t place = lead.place; place <= lead.last; ++place) {
        const std::int32_t size = problem.sizes()[place];
        const auto least_cost = static_cast<double>(problem.least_cost(size, bundle));
        EXPECT_LE(lead.time(), least_cost + static_cast<double>(problem.least_fixed(size)));
        for (const double time : {1e8, 1e9, 1e10}) {
          for (const double part : {0.0, 0.5, 0.9, 1.0}) {
            const double rent = part * time / 64;
            const double waste = std::max(0.0, size * least_cost / 64 - leaders.price(i));
            EXPECT_LE(size * (time / 64 - rent) - waste,
                      leaders.value(lead, time) - lead.ranks * rent);
          }
        }
      }
    }
  }
  EXPECT_GT(num_together, 8);
}

// Costs that differ more by length than those of a model, so that long slots are hard to fill.
StepQuestion steep_question(std::uint64_t seed, const QuestionShape& shape) {
  StepQuestion question = random_question(seed, shape);
  const double steepness[] = {1, 30, 1000};
  question.cost.quadratic_ns *= steepness[seed % 3];
  return question;
}

TEST(SlotBound, NoStepIsShorter) {
  for (const char* context : {"static:1", "static:2", "dynamic", "dynamic:any"}) {
    const QuestionShape shape{.most_sequences = 7,
                              .options = {.context = context, .sync = Sync::microbatch},
                              .has_wide_choice = context != std::string("static:1")};
    for (std::uint64_t seed = 0; seed < num_asked(1000); ++seed) {
      const StepQuestion question = steep_question(seed, shape);
      const auto best = oracle::best_step_time(question.batch, question.topology, question.cost,
                                               resolved(question.options, question.topology));
      if (!best) continue;
      EXPECT_LE(bound_of(question), *best) << "seed " << seed << ": " << question;
    }
  }
}

// A wide group may pad a sequence to less than a smaller one does: 7 tokens are 12 on three ranks
// and 8 on four.
TEST(Bounds, NoStepIsShorterWhereWideGroupsPadLess) {
  for (std::uint64_t seed = 0; seed < num_asked(20'000); ++seed) {
    Random random(seed);
    const auto ranks = static_cast<std::int32_t>(random.between(3, 6));
    StepQuestion question;
    question.topology = {.ranks = ranks, .capacity = random.between(4, 12)};
    question.cost.linear_ns = 1000;
    question.cost.microbatch_ns = static_cast<double>(random.between(0, 200'000));
    question.options = {.context = seed % 3 == 0 ? "dynamic" : "dynamic:any",
                        .min_context_size = static_cast<std::int32_t>(random.between(1, 3)),
                        .sync = seed % 2 == 0 ? Sync::step : Sync::microbatch};
    const std::int64_t count = random.between(1, 6);
    const Tokens most = question.topology.capacity * ranks;
    for (std::int64_t i = 0; i < count; ++i) {
      question.batch.lengths.push_back(random.between(1, random.below(2) == 0 ? most : most / 3));
    }
    const auto best = oracle::best_step_time(question.batch, question.topology, question.cost,
                                             resolved(question.options, question.topology));
    if (!best) continue;
    const Problem problem(singles(question.batch.lengths), question.topology, question.cost,
                          resolved(question.options, question.topology));
    const Nanoseconds bound = question.options.sync == Sync::microbatch
                                  ? slot_bound(problem)
                                  : block_bound(problem, step_bound(problem));
    // Wider groups do no less work, but for what rounds their costs.
    EXPECT_LE(bound, *best + count) << "seed " << seed << ": " << question;
  }
}

// Sequences of much the same length, two of which may share a group that is large enough.
TEST(SlotBound, NoStepOfLongOnesThatMayShareGroupsIsShorter) {
  for (std::uint64_t seed = 0; seed < num_asked(1000); ++seed) {
    Random random(seed);
    StepQuestion question;
    question.cost = random_cost(random);
    question.cost.quadratic_ns *= seed % 2 == 0 ? 1 : 30;
    if (seed % 3 == 0) question.cost.context[0].links[1].gb_per_s = 5;
    const auto ranks = static_cast<std::int32_t>(random.between(2, 8));
    question.topology = {.ranks = ranks, .capacity = 4096};
    question.options = {.context = "dynamic:any", .sync = Sync::microbatch};
    const Tokens usual = random.between(1500, 4096 * ranks / 2);
    const std::int64_t count = random.between(3, 6);
    for (std::int64_t i = 0; i < count; ++i) {
      question.batch.lengths.push_back(usual - random.between(0, usual / 4));
    }
    const auto best = oracle::best_step_time(question.batch, question.topology, question.cost,
                                             resolved(question.options, question.topology));
    if (!best) continue;
    EXPECT_LE(bound_of(question), *best) << "seed " << seed << ": " << question;
  }
}

TEST(SlotBound, NoPlanOfManySequencesIsShorter) {
  for (std::uint64_t seed = 0; seed < num_asked(40); ++seed) {
    Random random(seed);
    StepQuestion question;
    question.cost = random_cost(random);
    question.cost.quadratic_ns *= seed % 2 == 0 ? 1 : 10;
    question.topology = {.ranks = static_cast<std::int32_t>(random.between(2, 32)),
                         .capacity = 4096};
    const std::int64_t count = random.between(1, 150);
    const Tokens longest = question.topology.capacity * question.topology.ranks * 3 / 4;
    for (const char* context : {"static:1", "dynamic", "dynamic:any"}) {
      question.batch.lengths.clear();
      for (std::int64_t i = 0; i < count; ++i) {
        const Tokens length = random_length(random, question.topology.capacity, longest);
        const bool is_narrow = context == std::string("static:1");
        question.batch.lengths.push_back(is_narrow ? std::min(length, question.topology.capacity)
                                                   : length);
      }
      question.options = {.context = context, .sync = Sync::microbatch};
      const StepPlan plan =
          plan_step(question.batch, question.topology, question.cost, question.options);
      if (plan.microbatches.empty()) continue;  // a size that no exchange admits
      EXPECT_GT(plan.lower_bound_ns, 0) << "beaten, seed " << seed << ": " << question;
    }
  }
}

}  // namespace
}  // namespace isochron
