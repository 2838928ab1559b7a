// Who says that there is no plan is believed, unless one is plain to see.

#include <gtest/gtest.h>

#include "tests/check/plans.h"
#include "tests/check/spoiled_plans.h"

namespace isochron {
namespace {

TEST(CheckPlan, BelievesThatThereIsNoPlanUnlessOneIsPlainToSee) {
  expect_violations({
      {"no reason", infeasible_plan, [](StepPlan& p) { p.reason.clear(); },
       "status is infeasible, so reason must not be empty"},
      {"it fits", infeasible_plan, [](StepPlan& p) { p.topology.capacity = 12; },
       "status is infeasible, but every sequence can run in a slot of its own"},
      {"it is not known and fits", infeasible_plan,
       [](StepPlan& p) {
         p.status = Status::unknown;
         p.topology.capacity = 12;
       },
       "status is unknown, but every sequence can run in a slot of its own"},
      {"it fits two ranks", infeasible_plan,
       [](StepPlan& p) {
         p.options.context = "dynamic";
         p.options.oversize = Oversize::widen;
       },
       "status is infeasible, but every sequence can run in a slot of its own"},
      {"it may stand alone", infeasible_plan,
       [](StepPlan& p) { p.options.oversize = Oversize::alone; },
       "status is infeasible, but every sequence can run in a slot of its own"},
      {"it fits two ranks, and its prompt with it", infeasible_plan,
       [](StepPlan& p) {
         p.options.context = "dynamic";
         p.options.oversize = Oversize::widen;
         p.options.keep_groups = KeepGroups::rank;
         p.batch.groups = {PromptGroupId(0), PromptGroupId(0)};
         p.batch.group_names = {"a"};
       },
       "status is infeasible, but every sequence can run in a slot of its own"},
      {"a token fits one rank and no chunks", infeasible_plan,
       [](StepPlan& p) {
         p.options.context = "dynamic";
         p.options.oversize = Oversize::widen;
         p.topology.capacity = 1;
         p.batch.lengths = {1};
       },
       "status is infeasible, but every sequence can run in a slot of its own"},
      {"a token fits no chunks", infeasible_plan,
       [](StepPlan& p) {
         p.options.context = "dynamic";
         p.options.min_context_size = 2;
         p.options.oversize = Oversize::widen;
         p.topology.capacity = 1;
         p.batch.lengths = {1};
       },
       "valid"},
      {"alone on all ranks, but its prompt may not follow", infeasible_plan,
       [](StepPlan& p) {
         p.options.context = "dynamic";
         p.options.oversize = Oversize::alone;
         p.options.keep_groups = KeepGroups::rank;
         p.options.max_context_size = 1;
         p.batch.groups = {PromptGroupId(0), PromptGroupId(0)};
         p.batch.group_names = {"a"};
       },
       "valid"},
      {"its prompt fits", infeasible_plan,
       [](StepPlan& p) {
         p.topology.capacity = 17;
         p.options.keep_groups = KeepGroups::microbatch;
         p.batch.groups = {PromptGroupId(0), PromptGroupId(0)};
         p.batch.group_names = {"a"};
       },
       "status is infeasible, but every prompt group can run in a slot of its own"},
      {"its prompt does not fit", infeasible_plan,
       [](StepPlan& p) {
         p.topology.capacity = 16;
         p.options.keep_groups = KeepGroups::microbatch;
         p.batch.groups = {PromptGroupId(0), PromptGroupId(0)};
         p.batch.group_names = {"a"};
       },
       "valid"},
      {"its prompt has too many sequences", infeasible_plan,
       [](StepPlan& p) {
         p.topology.capacity = 17;
         p.options.max_sequences = 1;
         p.options.keep_groups = KeepGroups::microbatch;
         p.batch.groups = {PromptGroupId(0), PromptGroupId(0)};
         p.batch.group_names = {"a"};
       },
       "valid"},
      {"all ranks leave no placeholder", infeasible_plan,
       [](StepPlan& p) {
         p.options.context = "dynamic";
         p.options.oversize = Oversize::widen;
         p.options.counts = Counts::equal;
         p.options.short_ = Short::error;
       },
       "status is infeasible, but every sequence can run on all ranks in a slot of its own"},
      {"all ranks are too many", infeasible_plan,
       [](StepPlan& p) {
         p.topology.capacity = 12;
         p.options.context = "dynamic";
         p.options.oversize = Oversize::widen;
         p.options.max_context_size = 1;
         p.options.counts = Counts::equal;
         p.options.short_ = Short::error;
         p.batch.lengths = {5, 12, 7};
       },
       "valid"},
      {"two sequences for two ranks", infeasible_plan,
       [](StepPlan& p) {
         p.topology.capacity = 12;
         p.options.counts = Counts::equal;
         p.options.short_ = Short::error;
       },
       "status is infeasible, but the sequences fill slots of 2 groups one by one"},
      {"two sequences for two groups, of which one crosses a border", infeasible_plan,
       [](StepPlan& p) {
         p.topology.ranks = 4;
         p.options.context = "static:2";
         p.options.counts = Counts::equal;
         p.options.short_ = Short::error;
         p.cost.context = {{.kind = ContextKind::all_gather_kv, .links = {{3, 1, 0}}}};
       },
       "valid"},
      {"prompts are dropped whole", infeasible_plan,
       [](StepPlan& p) {
         p.options.context = "dynamic";
         p.options.oversize = Oversize::widen;
         p.options.counts = Counts::equal;
         p.options.short_ = Short::drop;
         p.options.keep_groups = KeepGroups::rank;
         p.topology.pipeline = {.stages = 2, .virtual_ = 2, .group = 2};
         p.batch.lengths = {5, 12, 7};
         p.batch.groups = {PromptGroupId(0), PromptGroupId(0), PromptGroupId(0)};
         p.batch.group_names = {"a"};
       },
       "valid"},
      {"three sequences for two ranks", infeasible_plan,
       [](StepPlan& p) {
         p.topology.capacity = 12;
         p.options.counts = Counts::equal;
         p.options.short_ = Short::drop;
         p.batch.lengths = {5, 12, 7};
       },
       "status is infeasible, but without the last 1 the sequences fill slots of 2 groups one by "
       "one"},
      {"dealt in order", infeasible_plan,
       [](StepPlan& p) {
         p.topology.capacity = 12;
         p.options.balance = false;
         p.options.counts = Counts::equal;
         p.options.short_ = Short::error;
       },
       "valid"},
      {"within a limit on activations", infeasible_plan,
       [](StepPlan& p) {
         p.topology.capacity = 12;
         p.options.max_activation_bytes = 36;
       },
       "status is infeasible, but every sequence can run in a slot of its own"},
      {"over a limit on activations", infeasible_plan,
       [](StepPlan& p) {
         p.topology.capacity = 12;
         p.options.max_activation_bytes = 35;
       },
       "valid"},
      {"not known under a limit on activations", infeasible_plan,
       [](StepPlan& p) {
         p.status = Status::unknown;
         p.topology.capacity = 12;
         p.options.max_activation_bytes = 36;
       },
       "valid"},
      {"two in flight within a limit on activations", infeasible_plan,
       [](StepPlan& p) {
         p.topology.capacity = 12;
         p.topology.pipeline.stages = 2;
         p.options.counts = Counts::equal;
         p.options.max_activation_bytes = 26;
       },
       "status is infeasible, but every sequence can run in a slot of its own"},
      {"two in flight over a limit on activations", infeasible_plan,
       [](StepPlan& p) {
         p.topology.capacity = 12;
         p.topology.pipeline.stages = 2;
         p.options.counts = Counts::equal;
         p.options.max_activation_bytes = 25;
       },
       "valid"},
      {"slots without an answer", infeasible_plan,
       [](StepPlan& p) { p.microbatches = {{group_of(0, 1, {0})}}; },
       "status is infeasible, so microbatches, oversized and dropped must be empty"},
      {"a time without an answer", infeasible_plan, [](StepPlan& p) { p.predicted_step_ns = 3; },
       "status is infeasible, so predicted_step_ns is 0 and imbalance 1, not 3 and 1"},
      {"memory without an answer", infeasible_plan,
       [](StepPlan& p) {
         p.peak_activation_bytes = {0, 7};
       },
       "status is infeasible, so peak_activation_bytes must be 0"},
      {"too long for two ranks without an exchange", infeasible_plan,
       [](StepPlan& p) {
         p.options.context = "dynamic";
         p.options.oversize = Oversize::widen;
         p.cost.context.clear();
       },
       "valid"},
      {"short by equal counts", infeasible_plan,
       [](StepPlan& p) {
         p.topology.capacity = 12;
         p.options.counts = Counts::equal;
         p.options.short_ = Short::error;
         p.batch.lengths = {5, 12, 7};
       },
       "valid"},
      {"rows that do not divide", infeasible_plan,
       [](StepPlan& p) {
         p.topology.capacity = 12;
         p.options.pad = Pad::error;
         p.options.pad_multiple = 3;
       },
       "valid"},
      {"rows that do not fit", infeasible_plan,
       [](StepPlan& p) {
         p.topology.capacity = 1;
         p.batch.lengths = {1};
         p.options.pad = Pad::rows;
         p.options.pad_multiple = 2;
       },
       "valid"},
  });
}

}  // namespace
}  // namespace isochron
