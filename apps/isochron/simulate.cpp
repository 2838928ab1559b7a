#include "isochron/simulate/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "apps/isochron/cost_arguments.h"
#include "apps/isochron/input_file.h"
#include "apps/isochron/option_flags.h"
#include "apps/isochron/output_file.h"
#include "apps/isochron/plan_file.h"
#include "apps/isochron/table.h"
#include "apps/isochron/verb.h"
#include "isochron/check/check.h"
#include "isochron/report/trace.h"

namespace isochron {

namespace {

constexpr std::size_t max_rows = 16;  // of ranks and stages; the worst

struct SimulateArguments {
  std::string plan;
  CostArguments cost;
  std::string trace;
};

// The ranks and stages that idle most, worst first; all of them in order if they are few.
std::string bubble_table(const StepPlan& plan, const Timeline& timeline) {
  const auto stages = static_cast<std::size_t>(plan.topology.pipeline.stages);
  std::vector<std::size_t> places(timeline.busy_ns.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  const bool is_cut = places.size() > max_rows;
  if (is_cut) {
    std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
      return timeline.busy_ns[a] < timeline.busy_ns[b];
    });
  }
  std::vector<std::size_t> num_operations(places.size());
  for (const TimelineSpan& span : timeline.spans) {
    const auto rank = static_cast<std::size_t>(span.rank);
    ++num_operations[rank * stages + static_cast<std::size_t>(span.stage)];
  }
  std::vector<std::vector<std::string>> rows = {
      {stages == 1 ? "rank" : "rank.stage", "busy", "bubble", "operations", "peak memory"}};
  for (std::size_t i = 0; i < std::min(places.size(), max_rows); ++i) {
    const std::size_t place = places[i];
    const std::size_t rank = place / stages;
    rows.push_back(
        {stages == 1 ? fmt::format("{}", rank) : fmt::format("{}.{}", rank, place % stages),
         time_text(plan.cost, timeline.busy_ns[place]),
         fmt::format("{:.2f} %", 100 * timeline.bubble(place)),
         fmt::format("{}", num_operations[place]),
         memory_text(timeline.peak_activation_bytes[rank])});
  }
  std::string text = text_table(rows);
  if (is_cut) {
    text += fmt::format("and {} more with a bubble of at most {:.2f} %\n", places.size() - max_rows,
                        100 * timeline.bubble(places[max_rows]));
  }
  return text;
}

std::string text_of(const StepPlan& plan, const Timeline& timeline, bool is_plan_cost) {
  const double busy = std::accumulate(timeline.busy_ns.begin(), timeline.busy_ns.end(), 0.0);
  const double room =
      static_cast<double>(timeline.step_ns) * static_cast<double>(timeline.busy_ns.size());
  const auto fullest = std::max_element(timeline.peak_activation_bytes.begin(),
                                        timeline.peak_activation_bytes.end());
  std::vector<std::vector<std::string>> rows = {
      {"step time", time_text(plan.cost, timeline.step_ns)}};
  if (is_plan_cost) {  // the bound is one for the costs that were planned with
    rows.push_back({"lower bound", time_text(plan.cost, plan.lower_bound_ns)});
    rows.push_back({"gap to bound", gap_text(timeline.step_ns, plan.lower_bound_ns)});
  }
  rows.push_back({"bubble", fmt::format("{:.2f} %", room > 0 ? 100 * (1 - busy / room) : 0.0)});
  rows.push_back({"peak memory", fmt::format("{} on rank {}", memory_text(*fullest),
                                             fullest - timeline.peak_activation_bytes.begin())});
  const std::int32_t stages = plan.topology.pipeline.stages;
  return fmt::format("{} sequences, {} ranks{}, {} slots, cost {}\n\n{}\n{}",
                     grouped_digits(static_cast<std::int64_t>(plan.batch.lengths.size())),
                     plan.topology.ranks, stages > 1 ? fmt::format(" x {} stages", stages) : "",
                     plan.microbatches.size(), plan.cost.name, text_table(rows),
                     bubble_table(plan, timeline));
}

CallFiles files_of(const SimulateArguments& arguments) {
  CallFiles files = {.inputs = files_of(arguments.cost),
                     .outputs = {{.flag = "--trace", .path = arguments.trace}}};
  files.inputs.push_back({.flag = "the plan", .path = arguments.plan});
  return files;
}

ExitCode run_simulate(const SimulateArguments& arguments) {
  const bool is_plan_cost = !arguments.cost.is_given() && arguments.cost.recompute.empty();
  const auto documents = split_plans(read_file(arguments.plan), "simulate");
  require(documents.size() == 1, "simulate", "the file holds {} plans, must be one",
          documents.size());
  if (const auto violation = find_violation(documents[0])) {
    print(*violation + "\n");
    return exit_no_answer;
  }
  StepPlan plan = step_plan_from_json(documents[0]);
  if (plan.microbatches.empty()) {
    print(fmt::format("{}: {}\n", name_of(plan.status), plan.reason));
    return exit_no_answer;
  }
  if (!is_plan_cost) {
    plan.cost =
        cost_model_of(arguments.cost, "simulate", plan.cost.name, plan.options.tensor_parallel);
    require_layers(arguments.cost, plan.topology.pipeline, "simulate");
    for (Slot& slot : plan.microbatches) {
      for (ContextGroup& group : slot) group.exchange.reset();  // it was the cheapest of the other
    }
  }
  const Timeline timeline = simulate(plan);
  if (!arguments.trace.empty()) write_output(arguments.trace, trace_json(plan, timeline));
  if (arguments.trace != "-") print(text_of(plan, timeline, is_plan_cost));
  return exit_done;
}

}  // namespace

Verb add_simulate(CLI::App& program) {
  CLI::App* flags = program.add_subcommand(
      "simulate", "Play a plan: step time, idle ranks, memory, and a trace of all of it");
  auto arguments = std::make_shared<SimulateArguments>();
  add_text_flag(*flags, "plan", arguments->plan, "file", plan_help)->required();
  add_cost_flags(*flags, arguments->cost);
  add_recompute_flag(*flags, arguments->cost);
  flags->get_option("--cost")->description("other costs than the plan's: a preset or a JSON file");
  add_text_flag(*flags, "--trace", arguments->trace, "file",
                "write a trace for Perfetto or Chrome; - is standard output");
  flags->footer(
      "Examples:\n"
      "  isochron simulate plan.json\n"
      "  isochron simulate plan.json --trace trace.json\n"
      "  isochron simulate plan.json --model qwen3-8b --hardware a100");
  return {.flags = flags,
          .run = [arguments] { return run_simulate(*arguments); },
          .files = [arguments] { return files_of(*arguments); }};
}

}  // namespace isochron
