// What a search takes for the time of its slots is what the plan says in the end.

#include <gtest/gtest.h>

#include "isochron/core/random.h"
#include "isochron/plan/draft_slots.h"
#include "isochron/plan/plan_slots.h"
#include "tests/plan/pipeline_question.h"
#include "tests/plan/singles.h"
#include "tests/plan/tiny_question.h"
#include "tests/support/num_instances.h"

namespace isochron {
namespace {

// Every item on some ranks that it fits, in slots of every rank.
DraftSlots random_slots(Random& random, const Problem& problem) {
  const std::vector<RankRange> ranges = admitted_ranges(problem);
  Draft draft;
  for (ItemId item = 0; item < problem.num_items(); ++item) {
    RankRange ranks;
    do {
      ranks = ranges[random.below(ranges.size())];
    } while (!problem.item_fits(static_cast<std::int32_t>(ranks.size), item));
    draft.groups.push_back({.ranks = ranks, .items = {item}});
  }
  DraftSlots slots = slots_of(problem, draft);
  equalize(problem, problem.topology().pipeline.group, slots);
  return slots;
}

TEST(PredictedTime, IsThatOfThePlan) {
  int num_asked = 0;
  for (std::uint64_t seed = 0; seed < num_instances(2000); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    StepQuestion question = random_question(
        seed, {.most_sequences = 12,
               .most_ranks = 7,
               .options = {.context = random.below(2) == 0 ? "dynamic" : "dynamic:any",
                           .sync = random.below(2) == 0 ? Sync::step : Sync::microbatch,
                           .counts = Counts::equal,
                           .pass = random.below(2) == 0 ? Pass::train : Pass::forward},
               .stages = static_cast<std::int32_t>(random.between(1, 4)),
               .has_speeds = random.below(3) == 0});
    if (question.topology.pipeline.stages > 1) set_shape(random, question.topology.pipeline);
    StepPlan plan;
    plan.batch.lengths = question.batch.lengths;
    plan.topology = question.topology;
    plan.cost = question.cost;
    plan.options = resolved(question.options, question.topology);
    const Problem problem(singles(plan.batch.lengths), plan.topology, plan.cost, plan.options);
    if (!are_all_held(problem)) continue;
    const DraftSlots slots = random_slots(random, problem);
    set_slots(problem, slots, plan);
    set_prediction(plan);
    EXPECT_EQ(predicted_time(problem, slots), plan.predicted_step_ns);
    ++num_asked;
  }
  EXPECT_GT(num_asked, 100);
}

}  // namespace
}  // namespace isochron
