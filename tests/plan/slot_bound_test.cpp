// What no step of slots can beat: by hand, beside exhaustive search, and beside plans.

#include <gtest/gtest.h>

#include "isochron/core/random.h"
#include "isochron/plan/bounds/bounds.h"
#include "isochron/plan/bounds/leaders.h"
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
      EXPECT_GE(plan.predicted_step_ns, plan.lower_bound_ns) << "seed " << seed << ": " << question;
    }
  }
}

}  // namespace
}  // namespace isochron
