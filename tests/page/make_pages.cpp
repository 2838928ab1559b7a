// Writes the reports that page_test.py opens in a browser: make_pages FOLDER

#include <fstream>
#include <string>
#include <vector>

#include "isochron/plan/baselines.h"
#include "isochron/report/report.h"
#include "tests/report/example_plans.h"

namespace isochron {
namespace {

constexpr const char* hostile =
    "</script><script>window.attacked = true</script><img src=x onerror=\"window.attacked = true\">"
    "&lt;b&gt;\xe2\x80\xa8";

ReportEntry entry(const std::string& name, const StepPlan& plan,
                  const std::string& violation = "") {
  return {.name = name, .steps = {{.plan = plan, .violation = violation}}};
}

// Naive packing, verl's, and the plan.
std::vector<ReportEntry> compared(const StepPlan& plan) {
  const auto before = [&](auto make) {
    return make(plan.batch, plan.topology, plan.cost, plan.options, plan.lower_bound_ns);
  };
  return {entry("naive", before(naive_plan)), entry("verl 0.9.1", before(verl_plan)),
          entry("plan.json", plan)};
}

std::vector<ReportEntry> hostile_entries() {
  StepPlan plan = example_plan({.sequences = 12});
  plan.cost.name = hostile;
  for (std::size_t i = 0; i < plan.batch.lengths.size(); ++i) {
    plan.batch.groups.emplace_back(0);
  }
  plan.batch.group_names = {hostile};
  StepPlan none = plan;
  none.microbatches.clear();
  none.status = Status::infeasible;
  none.reason = hostile;
  return {entry(hostile, plan), entry("broken", plan, hostile), entry("none", none)};
}

std::vector<ReportEntry> troubled_entries() {
  const StepPlan plan = example_plan({.ranks = 8, .sequences = 96});
  StepPlan none = plan;
  none.microbatches.clear();
  none.status = Status::infeasible;
  none.reason = "sequence 5 has 200000 tokens, 8 ranks hold 131072";
  return {entry("good.json", plan),
          entry("over.json", plan, "slot 0, rank 3: 17,000 tokens exceed the capacity 16,384"),
          entry("none.json", none)};
}

std::vector<ReportEntry> several_steps() {
  ReportEntry before = {.name = "naive", .steps = {}};
  ReportEntry after = {.name = "plans.jsonl", .steps = {}};
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const StepPlan plan = example_plan({.ranks = 8, .sequences = 64, .seed = seed});
    const StepPlan naive =
        naive_plan(plan.batch, plan.topology, plan.cost, plan.options, plan.lower_bound_ns);
    before.steps.push_back({.plan = naive, .violation = ""});
    after.steps.push_back({.plan = plan, .violation = ""});
  }
  return {before, after};
}

// Plans of questions that differ from that of the last in one thing each; the first in nothing.
std::vector<ReportEntry> other_questions() {
  StepPlan plan = example_plan({.ranks = 4, .sequences = 46, .stages = 4});
  for (std::int32_t i = 0; i < 46; ++i) plan.batch.groups.emplace_back(i / 2);
  for (int i = 0; i < 23; ++i) plan.batch.group_names.push_back("prompt");
  std::vector<ReportEntry> entries;
  const auto add = [&](const std::string& name, auto change) {
    StepPlan other = plan;
    change(other);
    entries.push_back(entry(name, other));
  };
  add("equal", [](StepPlan& other) { other.topology.rank_speed = {1, 1, 1, 1}; });
  add("speeds", [](StepPlan& other) { other.topology.rank_speed = {1, 1, 0.5, 1}; });
  add("extra", [](StepPlan& other) { other.batch.extra_cost_ns.assign(46, 1000); });
  add("kept", [](StepPlan& other) { other.options.keep_groups = KeepGroups::rank; });
  add("virtual", [](StepPlan& other) {
    other.topology.pipeline.virtual_ = 2;
    other.topology.pipeline.group = 4;
  });
  add("shares", [](StepPlan& other) { other.topology.pipeline.shares = {0.4, 0.2, 0.2, 0.2}; });
  add("transfer", [](StepPlan& other) { other.topology.pipeline.transfer_ns = 5000; });
  add("numbers", [](StepPlan& other) { other.cost.linear_ns *= 2; });
  entries.push_back(entry("plan.json", plan));
  return entries;
}

// One name twice, rows of padding, and what a reader would not see otherwise.
std::vector<ReportEntry> plans_of_one_name() {
  StepPlan plan = example_plan({.sequences = 62});
  plan.options.pad = Pad::rows;
  plan.options.pad_multiple = 4;
  plan.options.max_sequences = 50;
  plan.topology.rank_speed = {1, 1, 0.5, 1};
  const StepPlan padded = naive_plan(plan.batch, plan.topology, plan.cost, plan.options);
  StepPlan edited = padded;
  edited.topology.capacity *= 2;
  edited.imbalance = 9;
  return {entry("plan.json", padded), entry("plan.json", edited, "imbalance is 9")};
}

// Sequences that no rank holds stand alone, others leave room.
std::vector<ReportEntry> plan_over_the_capacity() {
  StepPlan plan = example_plan({.sequences = 24});
  plan.topology.capacity = 2048;
  plan.options.oversize = Oversize::alone;
  return {entry("alone.json", naive_plan(plan.batch, plan.topology, plan.cost, plan.options))};
}

// A pass without a backward.
StepPlan forward_plan() {
  StepPlan plan = example_plan({.sequences = 46, .stages = 4});
  plan.options.pass = Pass::forward;
  set_predictions(plan);
  return plan;
}

// Names as long as those of files can be; one of the plans has a banner.
std::vector<ReportEntry> entries_with_long_names() {
  const StepPlan plan = example_plan({.sequences = 24});
  return {entry(std::string(80, 'a') + ".json", plan), entry(std::string(80, 'b') + ".json", plan),
          entry(std::string(200, 'c'), plan, "slot 0 has " + std::string(120, '9') + " ranks"),
          entry(std::string(200, 'd') + ".json", plan)};
}

// The first of the steps has no valid plan in one of the two, and takes very long there.
std::vector<ReportEntry> steps_with_a_gap() {
  std::vector<ReportEntry> entries = several_steps();
  entries[0].steps[0].plan.cost.linear_ns *= 100;
  entries[0].steps[0].violation = "slot 0, rank 3: 17,000 tokens exceed the capacity 16,384";
  return entries;
}

void write(const std::string& path, const std::vector<ReportEntry>& entries) {
  std::ofstream(path, std::ios::binary) << report_html(entries);
}

}  // namespace
}  // namespace isochron

int main(int argc, char** argv) {
  using namespace isochron;
  if (argc != 2) return 2;
  const std::string folder = std::string(argv[1]) + "/";
  write(folder + "ranks_4.html", compared(example_plan({})));
  write(folder + "ranks_64.html", compared(example_plan({.ranks = 64, .sequences = 1024})));
  write(folder + "ranks_512.html", compared(example_plan({.ranks = 512, .sequences = 8192})));
  write(folder + "long.html", {entry("long.json", example_plan({.ranks = 1, .sequences = 8000}))});
  write(folder + "alone.html", {entry("plan.json", example_plan({.ranks = 16, .sequences = 200}))});
  write(folder + "pipeline.html",
        {entry("pipeline.json", example_plan({.ranks = 4, .sequences = 46, .stages = 4}))});
  write(folder + "forward.html", {entry("forward.json", forward_plan())});
  write(folder + "hostile.html", hostile_entries());
  write(folder + "troubled.html", troubled_entries());
  write(folder + "none.html", {troubled_entries().back()});
  write(folder + "long_names.html", entries_with_long_names());
  write(folder + "questions.html", other_questions());
  write(folder + "one_name.html", plans_of_one_name());
  write(folder + "over.html", plan_over_the_capacity());
  write(folder + "steps.html", several_steps());
  write(folder + "gap.html", steps_with_a_gap());
  write(folder + "others.html", {entry("a.json", example_plan({.sequences = 200})),
                                 entry("c.json", example_plan({.sequences = 200})),
                                 entry("b.json", example_plan({.ranks = 8, .sequences = 64}))});
}
