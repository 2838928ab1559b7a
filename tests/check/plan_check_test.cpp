#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "isochron/check/check.h"
#include "isochron/check/plan_time.h"
#include "tests/check/plans.h"
#include "tests/check/spoiled_plans.h"
#include "tests/support/message_of.h"
#include "tests/support/random_plan.h"
#include "tests/support/rehash.h"

namespace isochron {
namespace {

TEST(CheckPlan, AcceptsValidPlans) {
  for (const auto plan : {plain_plan, wide_plan, short_plan, infeasible_plan}) {
    EXPECT_EQ(verdict(plan()), "valid");
  }
}

TEST(CheckPlan, AcceptsTheExampleOfTheDocumentation) {
  std::ifstream file(ISOCHRON_DOCS_FOLDER "/plan.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::string fence = "```json\n";
  const std::size_t begin = page.find(fence);
  ASSERT_NE(begin, std::string::npos);
  const std::size_t end = page.find("```", begin + fence.size());
  const std::string example = page.substr(begin + fence.size(), end - begin - fence.size());
  EXPECT_EQ(find_violation(example).value_or("valid"), "valid");
}

TEST(CheckPlan, NamesWhatIsWrongWithPlaces) {
  expect_violations({
      {"an answer with a reason", plain_plan, [](StepPlan& p) { p.reason.append("because"); },
       "status is feasible, so reason must be empty"},
      {"rows nobody asked for", plain_plan, [](StepPlan& p) { p.padding_rows = 1; },
       "padding_rows is 1, must be 0 with 4 sequences and a multiple of 1"},
      {"too few rows", plain_plan,
       [](StepPlan& p) {
         p.options.pad_multiple = 6;
         p.options.pad = Pad::rows;
       },
       "padding_rows is 0, must be 2 with 4 sequences and a multiple of 6"},
      {"rows that do not divide", plain_plan,
       [](StepPlan& p) {
         p.options.pad_multiple = 3;
         p.options.pad = Pad::error;
       },
       "4 sequences are not a multiple of 3, but options.pad is error"},
      {"no slots", plain_plan, [](StepPlan& p) { p.microbatches.clear(); },
       "status is feasible, so microbatches must not be empty"},
      {"a slot without a group", plain_plan, [](StepPlan& p) { p.microbatches.emplace_back(); },
       "slot 1 is empty"},
      {"ranks that do not ascend", plain_plan,
       [](StepPlan& p) { std::swap(p.microbatches[0][0], p.microbatches[0][1]); },
       "slot 0, rank 0 stands behind rank 1, groups of a slot ascend and share no rank"},
      {"a rank twice", wide_plan,
       [](StepPlan& p) { p.microbatches[1][1].ranks = {.first = 1, .size = 2}; },
       "slot 1, ranks 1 to 2 stands behind rank 1, groups of a slot ascend and share no rank"},
      {"the last rank left out", wide_plan, [](StepPlan& p) { p.microbatches[1].pop_back(); },
       "rank 3 is in no group of slot 1, but options.counts is equal"},
      {"the first rank left out", short_plan,
       [](StepPlan& p) { p.microbatches[1].erase(p.microbatches[1].begin()); },
       "rank 0 is in no group of slot 1, but options.counts is equal"},
      {"slots that are no multiple", short_plan,
       [](StepPlan& p) { p.topology.pipeline = {.stages = 2, .virtual_ = 2, .group = 3}; },
       "there are 2 slots, must be a multiple of pipeline.group 3"},
      {"a sequence left out", plain_plan,
       [](StepPlan& p) { p.microbatches[0][1].sequences.pop_back(); },
       "3 sequences stand in groups or are dropped, there are 4 and 0 padding rows"},
      {"a sequence twice", plain_plan,
       [](StepPlan& p) {
         p.microbatches[0][0].sequences = sequence_ids({0, 2});
       },
       "sequence 2 stands in slot 0, rank 0 and in slot 0, rank 1, must stand in one place"},
      {"dropped and run", short_plan,
       [](StepPlan& p) {
         p.dropped = sequence_ids({0, 4});
       },
       "sequence 0 stands in slot 0, rank 0 and in dropped, must stand in one place"},
      {"sequences that do not ascend", plain_plan,
       [](StepPlan& p) {
         p.microbatches[0][0].sequences = sequence_ids({1, 0});
       },
       "slot 0, rank 0: sequences are not ascending"},
      {"dropped that do not ascend", short_plan,
       [](StepPlan& p) {
         p.batch.lengths.push_back(5);
         p.dropped = sequence_ids({5, 4});
       },
       "dropped is not ascending"},
  });
}

TEST(CheckPlan, NamesWhatIsWrongWithGroups) {
  expect_violations({
      {"a placeholder of two ranks", wide_plan,
       [](StepPlan& p) {
         p.batch.lengths = {24, 12};
         p.batch.groups.resize(2);
         p.batch.group_names.resize(2);
         p.microbatches[1].resize(2);
         p.microbatches[1][1] = group_of(2, 2, {});
       },
       "slot 1, ranks 2 to 3: a placeholder has one rank"},
      {"not the static size", wide_plan,
       [](StepPlan& p) {
         p.options.context = "static:4";
         p.options.oversize = Oversize::error;
       },
       "slot 1, ranks 0 to 1: groups of context static:4 have 4 ranks, from a multiple of 4 on"},
      {"not at a multiple of the static size", wide_plan,
       [](StepPlan& p) {
         p.topology.ranks = 6;
         p.options.context = "static:2";
         p.options.oversize = Oversize::error;
         p.options.counts = Counts::free;
         p.microbatches = {{group_of(1, 2, {1})}, {group_of(0, 2, {0})}, {group_of(2, 2, {2, 3})}};
       },
       "slot 0, ranks 1 to 2: groups of context static:2 have 2 ranks, from a multiple of 2 on"},
      {"a size of three", wide_plan,
       [](StepPlan& p) {
         p.microbatches[1] = {group_of(0, 3, {1}), group_of(3, 1, {2, 3})};
       },
       "slot 1, ranks 0 to 2: 3 ranks, must be a power of two or divide 4"},
      {"a size of three among powers of two", wide_plan,
       [](StepPlan& p) {
         p.options.context = "dynamic:powers";
         p.microbatches[1] = {group_of(0, 3, {1}), group_of(3, 1, {2, 3})};
       },
       "slot 1, ranks 0 to 2: 3 ranks, must be a power of two up to half of the 4 ranks, or all"},
      {"not aligned", wide_plan,
       [](StepPlan& p) {
         p.microbatches[1] = {group_of(0, 1, {}), group_of(1, 2, {1}), group_of(3, 1, {2, 3})};
       },
       "slot 1, ranks 1 to 2: must begin at a multiple of its 2 ranks"},
      {"too small", wide_plan, [](StepPlan& p) { p.options.min_context_size = 2; },
       "slot 1, rank 2: 1 ranks, options.min_context_size is 2"},
      {"too large", wide_plan, [](StepPlan& p) { p.options.max_context_size = 2; },
       "slot 0, ranks 0 to 3: 4 ranks, options.max_context_size is 2"},
      {"an exchange without a choice", wide_plan,
       [](StepPlan& p) { p.microbatches[0][0].exchange = ContextKind::none; },
       "slot 0, ranks 0 to 3: exchange must not be given, 1 on offer for 4 ranks"},
      {"an exchange on one rank", plain_plan,
       [](StepPlan& p) {
         p.cost.context.push_back(p.cost.context[0]);
         p.microbatches[0][1].exchange = ContextKind::none;
       },
       "slot 0, rank 1: exchange must not be given, 0 on offer for 1 ranks"},
      {"a choice that is not named", wide_plan,
       [](StepPlan& p) { p.cost.context.push_back(p.cost.context[0]); },
       "slot 0, ranks 0 to 3: exchange must be given, 2 on offer for 4 ranks"},
      {"no link", wide_plan,
       [](StepPlan& p) {
         p.cost.context[0] = {.kind = ContextKind::all_gather_kv, .links = {{2, 1, 0}}};
       },
       "slot 0, ranks 0 to 3: the cost model has no exchange and link for this group"},
      {"no exchange at all", wide_plan, [](StepPlan& p) { p.cost.context.clear(); },
       "slot 0, ranks 0 to 3: the cost model has no exchange and link for this group"},
      {"a size that does not divide the heads", wide_plan,
       [](StepPlan& p) {
         p.cost.context[0] = {.kind = ContextKind::all_to_all, .divides = 6, .links = {{8, 1, 0}}};
       },
       "slot 0, ranks 0 to 3: the cost model has no exchange and link for this group"},
      {"an exchange that may not be used", wide_plan,
       [](StepPlan& p) {
         p.cost.context.push_back({.kind = ContextKind::all_gather_kv, .links = {{2, 1, 0}}});
         p.microbatches[0][0].exchange = ContextKind::all_gather_kv;
       },
       "slot 0, ranks 0 to 3: exchange all_gather_kv has no link for this group"},
      {"an exchange that costs more", wide_plan,
       [](StepPlan& p) {  // 24 tokens * 4 bytes * 3/4 over 2 bytes/ns, and 5 ns
         p.cost.context.push_back(
             {.kind = ContextKind::all_gather_kv, .bytes_per_token = 4, .links = {{4, 2, 0.005}}});
         p.microbatches[0][0].exchange = ContextKind::all_gather_kv;
       },
       "slot 0, ranks 0 to 3: exchange all_gather_kv costs 47, the cheapest costs 6"},
      {"over the capacity", plain_plan, [](StepPlan& p) { p.topology.capacity = 9; },
       "slot 0, rank 1: 10 padded tokens on each rank, the capacity is 9"},
      {"over the capacity by the padding of one rank", plain_plan,
       [](StepPlan& p) { p.options.tensor_parallel = 4; },
       "slot 0, rank 0: 12 padded tokens on each rank, the capacity is 10"},
      {"over the capacity by the padding of chunks", wide_plan,
       [](StepPlan& p) {
         p.options.tensor_parallel = 2;
         p.topology.capacity = 7;
       },
       "slot 0, ranks 0 to 3: 8 padded tokens on each rank, the capacity is 7"},
      {"oversized that nobody allowed", short_plan,
       [](StepPlan& p) { p.options.oversize = Oversize::error; },
       "oversized has 1 sequences, but options.oversize is error"},
      {"oversized that is not listed", short_plan, [](StepPlan& p) { p.oversized.clear(); },
       "slot 0, rank 1: 9 padded tokens on each rank, the capacity is 6"},
      {"oversized twice", short_plan,
       [](StepPlan& p) {
         p.oversized = sequence_ids({1, 1});
       },
       "oversized is not ascending"},
      {"oversized and dropped", short_plan,
       [](StepPlan& p) {
         p.oversized = sequence_ids({1, 4});
       },
       "oversized[1] is 4, which is dropped"},
      {"oversized that fits", short_plan,
       [](StepPlan& p) {
         p.oversized = sequence_ids({1, 2});
       },
       "oversized has sequence 2, which fits the capacity of 6"},
      {"oversized in company", short_plan,
       [](StepPlan& p) {
         p.microbatches[0][1].sequences = sequence_ids({1, 2});
         p.microbatches[1].pop_back();
         p.microbatches[1].push_back(group_of(1, 1, {4}));
         p.dropped.clear();
       },
       "slot 0, rank 1: oversized sequence 1 stands with sequence 2, must stand alone"},
      {"a part of an oversized group", wide_plan,
       [](StepPlan& p) {
         p.options.oversize = Oversize::alone;
         p.oversized = sequence_ids({2});
       },
       "oversized has sequence 2, but not sequence 3 of the same group"},
      {"oversized on some ranks", wide_plan,
       [](StepPlan& p) {
         p.options.oversize = Oversize::alone;
         p.oversized = sequence_ids({1});
       },
       "slot 1, ranks 0 to 1: oversized sequence 1 must run on all 4 ranks"},
      {"oversized that would fit if it were cut", wide_plan,
       [](StepPlan& p) {
         p.options.oversize = Oversize::alone;
         p.oversized = sequence_ids({0});
       },
       "oversized has sequence 0, which fits the capacity of 8"},
      {"too many sequences", plain_plan, [](StepPlan& p) { p.options.max_sequences = 1; },
       "slot 0, rank 0: 2 sequences, options.max_sequences is 1"},
      {"a prompt in two slots", wide_plan,
       [](StepPlan& p) {
         p.batch.groups[1] = PromptGroupId(0);
         p.batch.groups[2] = p.batch.groups[3] = PromptGroupId(1);
         p.batch.group_names = {"a", "c"};
       },
       "group \"a\" runs in slot 0, ranks 0 to 3 and in slot 1, ranks 0 to 1, must be on the same "
       "ranks in one slot"},
      {"a prompt on two ranks", plain_plan,
       [](StepPlan& p) {
         p.options.keep_groups = KeepGroups::rank;
         p.batch.groups = {PromptGroupId(0), PromptGroupId(1), PromptGroupId(1), PromptGroupId(2)};
         p.batch.group_names = {"a", "b", "c"};
       },
       "group \"b\" runs in slot 0, rank 0 and in slot 0, rank 1, must be on the same ranks"},
  });
}

TEST(CheckPlan, NamesWhatIsWrongWithWhatIsMissing) {
  expect_violations({
      {"dropped without leave", short_plan, [](StepPlan& p) { p.options.short_ = Short::error; },
       "dropped has 1 sequences, but options.short is error"},
      {"dropped without a count", short_plan, [](StepPlan& p) { p.options.counts = Counts::free; },
       "dropped has 1 sequences, but options.counts is free"},
      {"dropped from the middle", short_plan,
       [](StepPlan& p) {
         p.microbatches[1][0].sequences = sequence_ids({4});
         p.dropped = sequence_ids({3});
       },
       "dropped is not a suffix: sequence 4 behind it runs in slot 1, rank 0"},
      {"dropped too early", short_plan, [](StepPlan& p) { p.batch.lengths[4] = 1; },
       "sequence 4 is dropped, but slot 0, rank 0 has room for it"},
      {"a part of a prompt dropped", short_plan,
       [](StepPlan& p) {
         p.options.keep_groups = KeepGroups::rank;
         p.batch.groups = {PromptGroupId(0), PromptGroupId(1), PromptGroupId(2), PromptGroupId(0),
                           PromptGroupId(0)};
         p.batch.group_names = {"a", "b", "c"};
       },
       "dropped is not a suffix: sequence 0 behind it runs in slot 0, rank 0"},
      {"a padding row dropped", short_plan,
       [](StepPlan& p) {
         p.options.pad = Pad::rows;
         p.options.pad_multiple = 6;
         p.padding_rows = 1;
         p.batch.lengths[4] = 2;
         p.dropped = sequence_ids({5});
         p.microbatches[1][1].sequences = sequence_ids({2, 4});
       },
       "dropped has 5, which is a padding row"},
      {"everything dropped", short_plan,
       [](StepPlan& p) {
         p.microbatches = {{group_of(0, 1, {}), group_of(1, 1, {})}};
         p.oversized.clear();
         p.dropped = sequence_ids({0, 1, 2, 3, 4});
       },
       "dropped names every sequence"},
      {"a placeholder where counts are free", wide_plan,
       [](StepPlan& p) { p.options.counts = Counts::free; },
       "slot 1, rank 3: a placeholder, but options.counts is free"},
      {"a placeholder that is an error", wide_plan,
       [](StepPlan& p) { p.options.short_ = Short::error; },
       "slot 1, rank 3: a placeholder, but options.short is error"},
      {"a placeholder instead of dropping", wide_plan,
       [](StepPlan& p) { p.options.short_ = Short::drop; },
       "slot 1, rank 3: a placeholder, but options.short is drop"},
      {"a placeholder where one of two could run", wide_plan,
       [](StepPlan& p) { p.options.keep_groups = KeepGroups::none; },
       "slot 1, rank 3: a placeholder, but slot 1, rank 2 could give sequence 2 away"},
      {"a placeholder where a whole prompt could run", wide_plan,
       [](StepPlan& p) {
         p.batch.groups[3] = PromptGroupId(3);
         p.batch.group_names.push_back("d");
       },
       "slot 1, rank 3: a placeholder, but slot 1, rank 2 could give sequence 2 away"},
      {"a placeholder on the rank of two", short_plan,
       [](StepPlan& p) {
         p.options.short_ = Short::empty;
         p.options.keep_groups = KeepGroups::rank;
         p.batch.lengths = {3, 3, 6, 5};
         p.batch.groups = {PromptGroupId(0), PromptGroupId(0), PromptGroupId(1), PromptGroupId(1)};
         p.batch.group_names = {"a", "b"};
         p.microbatches = {{group_of(0, 1, {0, 1}), group_of(1, 1, {2})},
                           {group_of(0, 1, {}), group_of(1, 1, {3})}};
         p.oversized.clear();
         p.dropped.clear();
       },
       "slot 1, rank 0: a placeholder, but slot 0, rank 0 could give sequence 0 away"},
      {"a static group of placeholders", wide_plan,
       [](StepPlan& p) {
         p.options.context = "static:2";
         p.options.oversize = Oversize::error;
         p.options.keep_groups = KeepGroups::none;
         p.batch.lengths = {16, 12, 4, 2};
         p.microbatches = {{group_of(0, 2, {0}), group_of(2, 2, {1})},
                           {group_of(0, 1, {}), group_of(1, 1, {}), group_of(2, 2, {2, 3})}};
       },
       "slot 1, rank 0: a placeholder, but slot 1, ranks 2 to 3 could give sequence 2 away"},
      {"a placeholder on the rank of two that are dealt in order", short_plan,
       [](StepPlan& p) {
         p.options.short_ = Short::empty;
         p.options.balance = false;
         p.batch.lengths = {3, 6, 3, 5};
         p.microbatches = {{group_of(0, 1, {0, 2}), group_of(1, 1, {1})},
                           {group_of(0, 1, {}), group_of(1, 1, {3})}};
         p.oversized.clear();
         p.dropped.clear();
       },
       "slot 1, rank 0: a placeholder, but slot 0, rank 0 could give sequence 0 away"},
      {"a slot of placeholders", wide_plan,
       [](StepPlan& p) {
         p.microbatches.push_back(
             {group_of(0, 1, {}), group_of(1, 1, {}), group_of(2, 1, {}), group_of(3, 1, {})});
       },
       "1 slots hold placeholders alone, must be fewer than pipeline.group 1"},
  });
}

// What looks alike and is right: the rules say no more than they must.
TEST(CheckPlan, AllowsWhatCannotBeHelped) {
  // Dealt in order, a sequence does not change ranks to fill a placeholder.
  StepPlan plan = short_plan();
  plan.options.short_ = Short::empty;
  plan.batch.lengths = {6, 3, 3, 5};
  plan.microbatches = {{group_of(0, 1, {0}), group_of(1, 1, {1, 2})},
                       {group_of(0, 1, {}), group_of(1, 1, {3})}};
  plan.oversized.clear();
  plan.dropped.clear();
  plan.predicted_step_ns = 11;
  plan.lower_bound_ns = 9;
  plan.imbalance = 11 / 8.5;
  plan.peak_activation_bytes = {18, 18};
  EXPECT_EQ(verdict(plan),
            "slot 1, rank 0: a placeholder, but slot 0, rank 1 could give sequence 1 away");
  plan.options.balance = false;
  EXPECT_EQ(verdict(plan), "valid");

  // There is room for the sequence that was dropped, but not by every rule.
  plan = short_plan();
  plan.batch.lengths[4] = 1;
  plan.options.balance = false;
  EXPECT_EQ(verdict(plan), "valid");
  plan.options.balance = true;
  plan.options.max_sequences = 1;
  EXPECT_EQ(verdict(plan), "valid");

  // Neither of the two on four ranks fits a single one.
  plan = wide_plan();
  plan.status = Status::feasible;
  plan.topology = {.ranks = 5, .capacity = 12};
  plan.options.context = "dynamic:any";
  plan.options.keep_groups = KeepGroups::none;
  plan.batch = {.lengths = {13, 13}, .extra_cost_ns = {}, .groups = {}, .group_names = {}};
  plan.microbatches = {{group_of(0, 4, {0, 1}), group_of(4, 1, {})}};
  plan.predicted_step_ns = 6;
  plan.lower_bound_ns = 5;
  plan.imbalance = 6 / 4.8;
  plan.peak_activation_bytes = {24, 24, 24, 24, 0};
  EXPECT_EQ(verdict(plan), "valid");
  plan.batch.lengths = {13, 12};
  EXPECT_EQ(verdict(plan),
            "slot 0, rank 4: a placeholder, but slot 0, ranks 0 to 3 could give sequence 1 away");
}

TEST(CheckPlan, NamesWhatIsWrongWithNumbers) {
  expect_violations({
      {"faster than the work", plain_plan,
       [](StepPlan& p) {
         p.cost.linear_ns = 1000;
         p.predicted_step_ns = 8000;
       },
       "predicted_step_ns is 8000, below 8993 from the work of all ranks"},
      {"faster than the longest", plain_plan,
       [](StepPlan& p) {
         p.topology.ranks = 4;
         p.cost.linear_ns = 1000;
         p.predicted_step_ns = 5000;
       },
       "predicted_step_ns is 5000, below 5993 from the most expensive sequence"},
      {"faster than one after the other", wide_plan,
       [](StepPlan& p) {  // two that need three ranks of four
         p.options.context = "dynamic:any";
         p.options.max_context_size = 3;
         p.options.counts = Counts::free;
         p.cost.linear_ns = 1000;
         p.batch.lengths[1] = 24;
         p.microbatches = {{group_of(0, 3, {0}), group_of(3, 1, {2, 3})}, {group_of(1, 3, {1})}};
         p.predicted_step_ns = p.lower_bound_ns = 14'000;
       },
       "predicted_step_ns is 14000, below 15987 from sequences that need more than half of the "
       "ranks"},
      {"a bound above the time", plain_plan, [](StepPlan& p) { p.lower_bound_ns = 13; },
       "lower_bound_ns is 13, above predicted_step_ns 12"},
      {"feasible at the bound", plain_plan, [](StepPlan& p) { p.lower_bound_ns = 12; },
       "status is feasible, but predicted_step_ns is 12 and lower_bound_ns is 12"},
      {"optimal above the bound", plain_plan, [](StepPlan& p) { p.status = Status::optimal; },
       "status is optimal, but predicted_step_ns is 12 and lower_bound_ns is 11"},
      {"another time", plain_plan, [](StepPlan& p) { p.predicted_step_ns = 13; },
       "predicted_step_ns is 13, the plan takes 12"},
      {"the extra cost left out", plain_plan,
       [](StepPlan& p) {
         p.batch.extra_cost_ns = {0, 0, 0, 1};
       },
       "predicted_step_ns is 12, the plan takes 13"},
      {"another imbalance", plain_plan, [](StepPlan& p) { p.imbalance = 1.5; },
       "imbalance is 1.5, the plan has 1.0909090909090908"},
      {"memory of too few ranks", plain_plan,
       [](StepPlan& p) { p.peak_activation_bytes.pop_back(); },
       "peak_activation_bytes has 1 ranks, must have 2"},
      {"other memory", plain_plan, [](StepPlan& p) { p.peak_activation_bytes[1] = 31; },
       "peak_activation_bytes[1] is 31, the plan has 30"},
      {"too much memory", plain_plan, [](StepPlan& p) { p.options.max_activation_bytes = 29; },
       "rank 1 holds 30 activation bytes, options.max_activation_bytes is 29"},
  });
}

TEST(CheckPlan, ComparesWithTheExpectedBatch) {
  const auto difference = [](const std::function<void(Batch&)>& change) {
    Batch batch = wide_plan().batch;
    change(batch);
    return find_violation(to_json(wide_plan()), &batch).value_or("valid");
  };
  EXPECT_EQ(difference([](Batch&) {}), "valid");
  EXPECT_EQ(difference([](Batch& b) { b.lengths[1] = 13; }),
            "lengths[1] is 12, the expected batch has 13");
  EXPECT_EQ(difference([](Batch& b) { b.group_names[2].replace(0, 1, 1, 'd'); }),
            "group[2] is \"c\", the expected batch has \"d\"");
  EXPECT_EQ(difference([](Batch& b) {
              b.extra_cost_ns = {0, 0, 0, 1};
            }),
            "the result has no extra_cost_ns, the expected batch has");
}

TEST(CheckPlan, WantsTheOptionsResolvedAndTheDocumentAsItIsWritten) {
  const auto words = [](const std::function<void(Json&)>& change) {
    Json document = Json::parse(to_json(plain_plan()));
    change(document);
    return find_violation(rehashed(document)).value_or("valid");
  };
  EXPECT_EQ(words([](Json&) {}), "valid");
  EXPECT_EQ(words([](Json& j) { j["options"]["counts"] = nullptr; }),
            "options.counts is none, must be resolved to free");
  EXPECT_EQ(words([](Json& j) { j["options"]["oversize"] = nullptr; }),
            "options.oversize is none, must be resolved to error");
  EXPECT_EQ(words([](Json& j) { j["options"]["pad"] = nullptr; }),
            "options.pad is none, must be resolved to uneven");
  EXPECT_TRUE(words([](Json& j) { j["cost"]["linear_ns"] = 1; }).ends_with("in their order"));
  EXPECT_TRUE(words([](Json& j) { j["cost"].erase("name"); }).starts_with("hash is "));
}

TEST(CheckPlan, ReportsEveryRuleThatIsBroken) {
  using testing::ElementsAre;
  using testing::StartsWith;
  StepPlan plan = plain_plan();
  EXPECT_THAT(find_violations(to_json(plan)).violations, ElementsAre());
  EXPECT_TRUE(find_violations(to_json(plan)).has_places);
  plan.predicted_step_ns += 3;
  plan.lower_bound_ns = plan.predicted_step_ns + 1;
  plan.imbalance = 9;
  ++plan.peak_activation_bytes[1];
  Json document = Json::parse(to_json(plan));
  document["hash"] = "0000000000000000";
  const Findings numbers = find_violations(document.dump());
  EXPECT_THAT(
      numbers.violations,
      ElementsAre(StartsWith("hash is 0000000000000000, but "), StartsWith("lower_bound_ns is "),
                  StartsWith("predicted_step_ns is "), StartsWith("imbalance is 9, "),
                  StartsWith("peak_activation_bytes[1] is ")));
  EXPECT_TRUE(numbers.has_places);
  EXPECT_EQ(find_violation(document.dump()), numbers.violations.front());

  plan.microbatches[0][0].sequences.clear();  // times and bounds rely on places
  plan.reason = "no";
  const Findings places = find_violations(to_json(plan));
  EXPECT_THAT(places.violations,
              ElementsAre(StartsWith("status is "), StartsWith("2 sequences stand in groups")));
  EXPECT_FALSE(places.has_places);
}

TEST(CheckPlan, RejectsQuestionsThatCannotBeAsked) {
  const auto rejection = [](const std::function<void(Json&)>& change) {
    Json document = Json::parse(to_json(plain_plan()));
    change(document);
    return message_of([&] { (void)find_violation(rehashed(document)); });
  };
  EXPECT_EQ(rejection([](Json& j) { j["options"].erase("sync"); }),
            "[check] \"options.sync\" is missing");
  EXPECT_EQ(rejection([](Json& j) {
              j["lengths"] = Json::array();
              j["microbatches"] = Json::array();
            }),
            "[check] lengths has 0 elements, must have at least 1");
  EXPECT_EQ(rejection([](Json& j) { j["options"]["keep_groups"] = "rank"; }),
            "[check] options.keep_groups is rank, but \"group\" is missing");
  EXPECT_EQ(rejection([](Json& j) { j["cost"]["linear_ns"] = 1e18; }),
            "[check] the cost of sequence 0 is above 2^62");
  EXPECT_EQ(rejection([](Json& j) { j["cost"]["linear_ns"] = 8e17; }),
            "[check] the plan adds up to more than 2^62");
  EXPECT_EQ(rejection([](Json& j) { j["cost"]["activation_bytes_per_token"] = 1e18; }),
            "[check] activation bytes is above 2^62");
  EXPECT_EQ(rejection([](Json& j) {
              const Json link = {{"max_ranks", 1}, {"gb_per_s", 1.0}, {"latency_us", 0.0}};
              for (int i = 1; i <= 64; ++i) {
                j["cost"]["context"]["links"].push_back(link);
                j["cost"]["context"]["links"].back()["max_ranks"] = i;
              }
            }),
            "[check] cost.context has 65 exchanges and links, must have at most 64");
}

// A few bytes may ask for a million ranks, four thousand stages, and sixteen million chunks each.
TEST(CheckPlan, RejectsMoreOperationsThanItCanRun) {
  StepPlan plan = plain_plan();
  plan.topology.ranks = 1024;
  plan.topology.pipeline = {.stages = 64, .virtual_ = 64, .group = 64};
  plan.options.counts = Counts::equal;
  Slot idle;
  for (std::int32_t rank = 0; rank < 1024; ++rank) idle.push_back(group_of(rank, 1, {}));
  plan.microbatches.assign(64, idle);
  for (std::int32_t i = 0; i < 4; ++i) {
    plan.microbatches[static_cast<std::size_t>(i)][0].sequences = sequence_ids({i});
  }
  EXPECT_EQ(message_of([&] { (void)verdict(plan); }),
            "[check] the plan has 536870912 operations, must have at most 2^28");
}

TEST(CheckPlan, AcceptsRandomPlansOfAllKinds) {
  std::set<std::string> kinds;  // of what was asked, to see that the plans are not all alike
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    const StepPlan plan = random_plan(seed);
    ASSERT_EQ(verdict(plan), "valid") << "seed " << seed << ": " << to_json(plan);
    const PlanOptions& options = plan.options;
    kinds.emplace(options.context.substr(0, 8));
    kinds.emplace(name_of(options.sync));
    kinds.emplace(name_of(*options.counts));
    kinds.emplace(name_of(options.pass));
    kinds.emplace(fmt::format("keep {}", name_of(options.keep_groups)));
    kinds.emplace(plan.topology.pipeline.stages > 1 ? "stages" : "one stage");
    if (plan.topology.pipeline.virtual_ > 1) kinds.emplace("virtual");
    if (!plan.topology.pipeline.shares.empty()) kinds.emplace("shares");
    if (!plan.topology.rank_speed.empty()) kinds.emplace("speeds");
    if (!plan.oversized.empty()) kinds.emplace("oversized");
    if (!plan.dropped.empty()) kinds.emplace("dropped");
    if (plan.padding_rows > 0) kinds.emplace("padding rows");
    for (const Slot& slot : plan.microbatches) {
      for (const ContextGroup& group : slot) {
        if (group.sequences.empty()) kinds.emplace("placeholder");
        if (group.exchange) kinds.emplace(fmt::format("by {}", name_of(*group.exchange)));
        if (group.ranks.size > 1 && group.sequences.size() > 1) kinds.emplace("wide and shared");
      }
    }
  }
  const std::set<std::string> expected = {"by all_gather_kv",
                                          "by all_to_all",
                                          "dropped",
                                          "dynamic",
                                          "dynamic:",
                                          "equal",
                                          "forward",
                                          "free",
                                          "keep microbatch",
                                          "keep none",
                                          "keep rank",
                                          "microbatch",
                                          "one stage",
                                          "oversized",
                                          "padding rows",
                                          "placeholder",
                                          "shares",
                                          "speeds",
                                          "stages",
                                          "static:1",
                                          "step",
                                          "train",
                                          "virtual",
                                          "wide and shared"};
  for (const std::string& kind : expected) EXPECT_TRUE(kinds.contains(kind)) << kind;
}

// Two sequences of different places change them. The plan stays valid only if it was as good
// before: nothing that the checker looks at may differ.
TEST(CheckPlan, NoticesThatTwoSequencesOfARandomPlanWereSwapped) {
  int num_noticed = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    StepPlan plan = random_plan(seed, {.keep_groups = KeepGroups::none});
    std::vector<SequenceId*> places;
    for (Slot& slot : plan.microbatches) {
      for (ContextGroup& group : slot) {
        if (!group.sequences.empty()) places.push_back(&group.sequences[0]);
      }
    }
    if (places.size() < 2) continue;
    std::swap(*places.front(), *places.back());
    for (Slot& slot : plan.microbatches) {
      for (ContextGroup& group : slot) std::sort(group.sequences.begin(), group.sequences.end());
    }
    if (verdict(plan) == "valid") {
      const check::PlanTimes times = check::plan_times(check::PlanView(plan));
      EXPECT_EQ(times.step_ns, plan.predicted_step_ns) << "seed " << seed;
    } else {
      ++num_noticed;
    }
  }
  EXPECT_GT(num_noticed, 600);
}

}  // namespace
}  // namespace isochron
