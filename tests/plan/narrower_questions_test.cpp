// Questions whose answers answer another one, by hand.

#include "isochron/plan/narrower_questions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "isochron/plan/related_problems.h"
#include "tests/plan/drawn_bundles.h"
#include "tests/plan/equal_counts.h"

namespace isochron {
namespace {

std::vector<std::string> contexts_of(const Problem& problem) {
  std::vector<std::string> contexts;
  for (const NarrowerQuestion& question : narrower_questions(problem)) {
    contexts.push_back(question.problem->options().context);
  }
  return contexts;
}

bool has(const std::vector<std::string>& contexts, const std::string& context) {
  return std::count(contexts.begin(), contexts.end(), context) > 0;
}

TEST(NarrowerQuestions, PowersOfTwoAreOneWhereOtherSizesDivideTheRanks) {
  EXPECT_NE(find_powers(equal_counts("dynamic", {40, 40, 30}, 12)), nullptr);
  EXPECT_EQ(find_powers(equal_counts("dynamic", {40, 40, 30}, 8)), nullptr);
  EXPECT_EQ(find_powers(equal_counts("dynamic:powers", {40, 40, 30}, 12)), nullptr);
}

// 550 tokens on 6 ranks of 100 take all of them, which powers of two include; 350 on 7 ranks with
// at most 5 take four, and 450 five.
TEST(NarrowerQuestions, HoldEverySequence) {
  const auto is_aligned = [](Tokens length) {
    const Topology topology{.ranks = 7, .capacity = 100, .pipeline = {.stages = 2}};
    const Problem problem(singles({length, 20}), topology, plain_cost(10),
                          resolved({.context = "dynamic:any", .max_context_size = 5}, topology));
    EXPECT_FALSE(has(contexts_of(problem), "dynamic")) << "asked before";
    return find_aligned(problem) != nullptr;
  };
  EXPECT_NE(find_powers(equal_counts("dynamic", {550, 20}, 6)), nullptr);
  EXPECT_TRUE(is_aligned(350));
  EXPECT_FALSE(is_aligned(450));
}

// No aligned group of 10 ranks has six, and the long sequence stands alone on all of them.
TEST(NarrowerQuestions, AskForNoNodeWhereThereAreNoGroups) {
  const Topology topology{.ranks = 10, .capacity = 100};
  CostModel cost = cost_7b_h100();
  cost.context.front().links.front().max_ranks = 7;
  Problem problem(singles({2000}), topology, cost,
                  resolved({.context = "dynamic",
                            .min_context_size = 6,
                            .max_context_size = 6,
                            .oversize = Oversize::alone},
                           topology));
  problem.set_alone(0, 10);
  for (const NarrowerQuestion& question : narrower_questions(problem)) {
    EXPECT_LE(question.problem->options().min_context_size, 6);
  }
}

// The long sequence stands alone on all of 17 ranks, of which a group has seven at most: half of
// all ranks is more than that.
TEST(NarrowerQuestions, HalfOfAllRanksIsNoLimitWhereGroupsAreSmaller) {
  const Topology topology{.ranks = 17, .capacity = 100};
  Problem problem(singles({2000, 40, 30}), topology, plain_cost(10),
                  resolved({.context = "dynamic",
                            .min_context_size = 3,
                            .max_context_size = 7,
                            .oversize = Oversize::alone},
                           topology));
  problem.set_alone(0, 17);
  for (const NarrowerQuestion& question : narrower_questions(problem)) {
    EXPECT_LE(question.problem->options().max_context_size, 7);
  }
}

// Eight ranks of which long sequences would take all: half of them is asked about too.
TEST(NarrowerQuestions, FewSequencesAskForSmallerGroups) {
  const Problem problem = equal_counts("dynamic", {700, 40, 30}, 8);
  const std::vector<NarrowerQuestion> held = narrower_questions(problem);
  EXPECT_TRUE(std::none_of(held.begin(), held.end(), [](const NarrowerQuestion& question) {
    return question.problem->options().max_context_size == 4;
  })) << "the longest needs more";
  const Problem shorter = equal_counts("dynamic", {350, 40, 30}, 8);
  const std::vector<NarrowerQuestion> questions = narrower_questions(shorter);
  EXPECT_TRUE(std::any_of(questions.begin(), questions.end(), [](const NarrowerQuestion& question) {
    return question.problem->options().max_context_size == 4;
  }));
}

TEST(NarrowerQuestions, OnlySlowRanksOrEvenSlotsAskForGroupsOfOneSize) {
  Topology topology{.ranks = 4, .capacity = 100};
  const auto contexts = [&](Sync sync) {
    return contexts_of({singles({40, 30, 20}), topology, plain_cost(10),
                        resolved({.context = "dynamic", .sync = sync}, topology)});
  };
  EXPECT_FALSE(has(contexts(Sync::step), "static:2"));
  EXPECT_TRUE(has(contexts(Sync::microbatch), "static:2"));
  topology.rank_speed = {1, 0.5, 1, 1};
  EXPECT_TRUE(has(contexts(Sync::step), "static:2"));
}

// Two prompts on two ranks: the whole ones run in one slot, in which their parts stand side by
// side.
TEST(NarrowerQuestions, WholePromptsAreAnsweredByTheirParts) {
  const Drawn drawn = plain_bundles({{10, 20}, {30}});
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const auto whole = find_whole_prompts(problem);
  ASSERT_TRUE(whole);
  ASSERT_EQ(whole->problem->num_items(), 2);
  EXPECT_EQ(whole->problem->tokens(1, 0), 30);
  const DraftSlots slots = whole->answer(problem, {{on(0, 1, {1}), on(1, 1, {0})}});
  ASSERT_EQ(slots.size(), 1U);
  EXPECT_EQ(slots[0][0].items, (std::vector<ItemId>{2}));
  EXPECT_EQ(slots[0][1].items, (std::vector<ItemId>{0, 1}));
}

// A prompt with a part that stands alone is in more than one micro-batch.
TEST(NarrowerQuestions, APromptWithALongPartIsNotWhole) {
  const Drawn drawn = plain_bundles({{10, 20}, {30}});
  Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  problem.set_alone(1, 2);
  EXPECT_FALSE(find_whole_prompts(problem));
}

// Where counts are equal a rank that idles takes a part of what was whole, on the same ranks alone.
TEST(NarrowerQuestions, PartsFillWhatIdles) {
  Drawn drawn = plain_bundles({{10, 20}, {30}});
  drawn.options.counts = Counts::equal;
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const auto whole = find_whole_prompts(problem);
  ASSERT_TRUE(whole);
  const DraftSlots slots =
      whole->answer(problem, {{on(0, 1, {0}), on(1, 1, {1})}, {on(0, 1, {}), on(1, 1, {})}});
  ASSERT_EQ(slots.size(), 2U);
  const std::int64_t num_parts =
      std::count_if(slots[1].begin(), slots[1].end(),
                    [](const DraftGroup& group) { return !group.items.empty(); });
  EXPECT_EQ(num_parts, 1);
}

// What others fill with placeholders has none where counts are free.
TEST(NarrowerQuestions, FreeCountsHaveNoPlaceholders) {
  const Topology topology{.ranks = 2, .capacity = 100};
  const Problem problem(singles({40}), topology, plain_cost(10), resolved({}, topology));
  const std::vector<NarrowerQuestion> questions = narrower_questions(problem);
  ASSERT_FALSE(questions.empty());
  const DraftSlots slots = questions.front().answer(problem, {{on(0, 1, {0}), on(1, 1, {})}});
  EXPECT_FALSE(has_placeholder(slots));
}

}  // namespace
}  // namespace isochron
