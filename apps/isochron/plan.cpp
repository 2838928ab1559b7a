#include "isochron/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "apps/isochron/cost_arguments.h"
#include "apps/isochron/input_file.h"
#include "apps/isochron/option_flags.h"
#include "apps/isochron/output_file.h"
#include "apps/isochron/plan_figures.h"
#include "apps/isochron/plan_summary.h"
#include "apps/isochron/progress.h"
#include "apps/isochron/rank_speed.h"
#include "apps/isochron/table.h"
#include "apps/isochron/verb.h"
#include "isochron/cost/capacity.h"

namespace isochron {

namespace {

constexpr std::string_view where = "plan";
constexpr std::string_view default_model = "qwen3-8b";
constexpr std::string_view default_hardware = "h100";

struct PlanArguments {
  std::string lengths;
  std::int32_t ranks = 0;
  std::string capacity;
  PlanOptions options;
  std::int32_t pipeline = 1;
  std::int32_t virtual_ = 1;
  std::optional<std::int32_t> group = {};
  Nanoseconds transfer_ns = 0;
  std::string stage_shares;
  std::string rank_speed;
  CostArguments cost;
  std::optional<std::int32_t> batch = {};
  std::string summary;
  std::string json;
};

// All that a plan is made from but the sequences.
struct Question {
  Topology topology;
  CostModel cost;
  PlanOptions options;
  std::optional<Capacity> capacity = {};  // if it was worked out

  [[nodiscard]] StepPlan planned(const Batch& batch) const {
    return plan_step(batch, topology, cost, options);
  }
  [[nodiscard]] StepPlan dealt(const Batch& batch) const {
    return dealt_plan(batch, topology, cost, options);
  }
};

std::vector<double> shares_of(const std::string& text) {
  std::vector<double> shares;
  if (text.empty()) return shares;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const auto share = find_number(part);
    require(share.has_value(), where,
            "--stage-shares is \"{}\" at position {}, must be numbers with commas between them",
            part, shares.size());
    shares.push_back(*share);
    begin = end + 1;
  }
  return shares;
}

Tokens given_capacity(const std::string& text) {
  const auto capacity = find_integer(text);
  require(capacity && *capacity >= 1 && *capacity <= max_total_cost, where,
          "--capacity is \"{}\", must be an integer from 1 to {} or auto", text, max_total_cost);
  return *capacity;
}

Capacity worked_out_capacity(const PlanArguments& arguments, const Topology& topology) {
  require(!arguments.cost.model.empty(), where,
          "--capacity is auto, which needs --model and --hardware");
  return auto_capacity(model_shape_of(arguments.cost.model),
                       hardware_preset(arguments.cost.hardware),
                       {.ranks = topology.ranks,
                        .tensor_parallel = arguments.options.tensor_parallel,
                        .stages = topology.pipeline.stages,
                        .virtual_ = topology.pipeline.virtual_,
                        .group = topology.pipeline.group,
                        .shares = topology.pipeline.shares,
                        .recompute = recompute_of(arguments.cost, where),
                        .keeps_activations = arguments.options.pass == Pass::train});
}

Question question_of(const PlanArguments& arguments) {
  Question question;
  question.options = arguments.options;
  Topology& topology = question.topology;
  topology.ranks = arguments.ranks;
  topology.pipeline.stages = arguments.pipeline;
  topology.pipeline.virtual_ = arguments.virtual_;
  topology.pipeline.group =
      arguments.group.value_or(arguments.virtual_ > 1 ? arguments.pipeline : 1);
  topology.pipeline.transfer_ns = arguments.transfer_ns;
  topology.pipeline.shares = shares_of(arguments.stage_shares);
  const bool is_auto = arguments.capacity == "auto";
  topology.capacity = is_auto ? 1 : given_capacity(arguments.capacity);
  if (!arguments.rank_speed.empty()) {
    topology.rank_speed = parse_rank_speed(read_file(arguments.rank_speed));
  }
  question.options = resolved(arguments.options, topology);  // before anything large is read

  CostArguments cost = arguments.cost;
  if (!cost.is_given()) {
    cost.model = default_model;
    cost.hardware = default_hardware;
  }
  question.cost = cost_model_of(cost, where, {}, arguments.options.tensor_parallel);
  require_layers(cost, topology.pipeline, where);
  if (is_auto) {
    question.capacity = worked_out_capacity(arguments, topology);
    topology.capacity = question.capacity->tokens;
  }
  return question;
}

std::string capacity_text(const Capacity& capacity, const PlanArguments& arguments) {
  const auto gb = [](std::int64_t bytes) {
    return fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9);
  };
  const std::vector<std::vector<std::string>> rows = {
      {fmt::format("memory of {}", arguments.cost.hardware), gb(capacity.device_bytes)},
      {"- reserve", gb(capacity.reserve_bytes)},
      {"- weights, gradients, optimizer", gb(capacity.state_bytes)},
      {"- logits of a chunk", gb(capacity.logits_bytes)},
      {"= activations", gb(capacity.activation_bytes)},
      {"/ bytes of a token", grouped_digits(capacity.activation_bytes_per_token)},
      {"= capacity", fmt::format("{} tokens", grouped_digits(capacity.tokens))}};
  return text_table(rows) + "\n";
}

std::string title_of(const Question& question, const Batch& batch) {
  const auto tokens = std::accumulate(batch.lengths.begin(), batch.lengths.end(), Tokens{0});
  const PipelineShape& pipeline = question.topology.pipeline;
  return fmt::format("{} sequences, {} tokens, {} ranks{}, capacity {}, cost {}\n",
                     grouped_digits(static_cast<std::int64_t>(batch.lengths.size())),
                     grouped_digits(tokens), question.topology.ranks,
                     pipeline.stages > 1 ? fmt::format(" x {} stages", pipeline.stages) : "",
                     grouped_digits(question.topology.capacity), question.cost.name);
}

// A plan as a column of the table.
struct Column {
  std::string name;
  const StepPlan* plan;
  PlanFigures figures;
};

std::string plan_table(const std::vector<Column>& columns, Nanoseconds lower_bound_ns) {
  std::vector<std::vector<std::string>> rows;
  const auto add_row = [&](std::string name, const auto& text) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(std::move(name));
    for (const auto& [title, plan, figures] : columns) row.push_back(text(*plan, figures));
  };
  rows.push_back({""});
  for (const Column& column : columns) rows.back().push_back(column.name);
  using Plan = const StepPlan&;
  using Figures = const PlanFigures&;
  add_row("context", [](Plan plan, Figures) { return plan.options.context; });
  add_row("step time",
          [](Plan plan, Figures) { return time_text(plan.cost, plan.predicted_step_ns); });
  if (lower_bound_ns > 0) {
    add_row("lower bound",
            [&](Plan plan, Figures) { return time_text(plan.cost, lower_bound_ns); });
    add_row("gap to bound",
            [&](Plan plan, Figures) { return gap_text(plan.predicted_step_ns, lower_bound_ns); });
  }
  add_row("imbalance", [](Plan plan, Figures) { return fmt::format("{:.4f}", plan.imbalance); });
  add_row("slots", [](Plan, Figures figures) { return grouped_digits(figures.num_slots); });
  std::set<std::int64_t> sizes;
  for (const Column& column : columns) {
    for (const auto& [size, count] : column.figures.groups_of_size) sizes.insert(size);
  }
  for (const std::int64_t size : sizes) {
    add_row(size == 1 ? "groups of 1 rank" : fmt::format("groups of {} ranks", size),
            [&](Plan, Figures figures) {
              const auto found = figures.groups_of_size.find(size);
              return grouped_digits(found == figures.groups_of_size.end() ? 0 : found->second);
            });
  }
  if (std::any_of(columns.begin(), columns.end(),
                  [](const Column& column) { return column.figures.num_placeholders > 0; })) {
    add_row("placeholders",
            [](Plan, Figures figures) { return grouped_digits(figures.num_placeholders); });
  }
  add_row("most tokens on a rank",
          [](Plan, Figures figures) { return grouped_digits(figures.largest_microbatch); });
  add_row("token fill", [](Plan, Figures figures) {
    return fmt::format("{:.1f} %", 100 * figures.token_fill());
  });
  add_row("padding tokens", [](Plan, Figures figures) {
    return grouped_digits(figures.padded_tokens - figures.real_tokens);
  });
  add_row("peak activation memory",
          [](Plan, Figures figures) { return memory_text(figures.peak_activation_bytes); });
  add_row("oversized, dropped", [](Plan plan, Figures) {
    return fmt::format("{}, {}", plan.oversized.size(), plan.dropped.size());
  });
  // That the batch was dealt says nothing about the best.
  add_row("status", [](Plan plan, Figures) {
    return plan.options.balance ? std::string(name_of(plan.status)) : std::string();
  });
  return text_table(rows);
}

std::string text_of(const StepPlan& plan, const Question& question, const Batch& batch) {
  StepPlan dealt;
  std::string note;
  std::vector<Column> columns;
  if (plan.options.balance) {
    dealt = question.dealt(batch);
    if (dealt.microbatches.empty()) {
      note = fmt::format("dealt in order there is no plan: {}\n\n", dealt.reason);
    } else {
      columns.push_back({.name = "dealt in order", .plan = &dealt, .figures = figures_of(dealt)});
    }
  }
  columns.push_back({.name = plan.options.balance ? "planned" : "dealt in order",
                     .plan = &plan,
                     .figures = figures_of(plan)});
  std::vector<std::string> titles;
  std::vector<BarColumn> bars;
  for (const Column& column : columns) titles.push_back(column.name + ", busy ns");
  for (std::size_t i = 0; i < columns.size(); ++i) {
    bars.push_back({.title = titles[i], .values = columns[i].figures.busy_of_rank});
  }
  return fmt::format("{}\n{}{}\n{}", title_of(question, batch), note,
                     plan_table(columns, plan.lower_bound_ns), bar_chart("rank", bars));
}

ExitCode plan_one(const Question& question, const PlanArguments& arguments, const Batch& batch) {
  const StepPlan plan = question.planned(batch);
  const bool has_answer = !plan.microbatches.empty();
  if (!arguments.json.empty()) write_output(arguments.json, to_json(plan));
  if (arguments.json != "-") {
    print((question.capacity ? capacity_text(*question.capacity, arguments) : "") +
          (has_answer ? text_of(plan, question, batch)
                      : fmt::format("{}: {}\n", name_of(plan.status), plan.reason)));
  }
  return has_answer ? exit_done : exit_no_answer;
}

ExitCode plan_batches(const Question& question, const PlanArguments& arguments,
                      const Batch& data_set) {
  const auto size = static_cast<std::size_t>(*arguments.batch);
  const std::size_t num_rows = data_set.lengths.size();
  const std::size_t num_batches = (num_rows + size - 1) / size;
  PlanSummary summary;
  std::string lines;
  {
    Progress progress = standard_progress("batches", static_cast<std::int64_t>(num_batches));
    for (std::size_t i = 0; i < num_batches; ++i) {
      const Batch batch = cut_batch(data_set, i * size, std::min(size, num_rows - i * size));
      StepPlan plan = question.planned(batch);
      plan.first_sequence = static_cast<std::int64_t>(i * size);
      summary.add(plan, question.dealt(batch));
      if (arguments.json == "-") {
        print(to_json(plan));
      } else if (!arguments.json.empty()) {
        lines += to_json(plan);
      }
      progress.set_done(static_cast<std::int64_t>(i) + 1);
    }
  }
  std::vector<Output> outputs;
  if (!lines.empty()) outputs.push_back({.path = arguments.json, .text = std::move(lines)});
  if (!arguments.summary.empty()) {
    outputs.push_back({.path = arguments.summary, .text = summary.json(*arguments.batch)});
  }
  write_outputs(outputs);
  if (arguments.json != "-" && arguments.summary != "-") {
    print((question.capacity ? capacity_text(*question.capacity, arguments) : "") +
          title_of(question, data_set) + summary.text());
  }
  return summary.has_all_plans() ? exit_done : exit_no_answer;
}

CallFiles files_of(const PlanArguments& arguments) {
  CallFiles files = {.inputs = files_of(arguments.cost),
                     .outputs = {{.flag = "--json", .path = arguments.json},
                                 {.flag = "--summary", .path = arguments.summary}}};
  files.inputs.push_back({.flag = "--lengths", .path = arguments.lengths});
  files.inputs.push_back({.flag = "--rank-speed", .path = arguments.rank_speed});
  return files;
}

ExitCode run_plan(const PlanArguments& arguments) {
  require(!arguments.batch || *arguments.batch >= 1, where, "--batch is {}, must be at least 1",
          arguments.batch.value_or(0));
  require(arguments.summary.empty() || arguments.batch, where,
          "--summary is given without --batch, must be both");
  const Question question = question_of(arguments);
  const Batch batch = read_batch(arguments.lengths);
  return arguments.batch ? plan_batches(question, arguments, batch)
                         : plan_one(question, arguments, batch);
}

}  // namespace

Verb add_plan(CLI::App& program) {
  CLI::App* flags = program.add_subcommand(
      "plan", "Plan a step: which ranks run which sequences, with whom, in which order");
  auto arguments = std::make_shared<PlanArguments>();
  add_text_flag(*flags, "--lengths", arguments->lengths, "file", lengths_help)->required();
  add_value_flag(*flags, "--ranks", arguments->ranks, "data x context parallel ranks",
                 IntegerRange{1, max_ranks})
      ->required();
  add_text_flag(*flags, "--capacity", arguments->capacity, "integer|auto",
                "padded tokens that a rank may hold at a time; auto: what its memory leaves")
      ->required();
  add_option_flags(*flags, arguments->options);
  add_value_flag(*flags, "--pipeline", arguments->pipeline, "stages of every rank, up to 4096 [1]",
                 IntegerRange{1, 4096});
  add_value_flag(*flags, "--virtual", arguments->virtual_,
                 "chunks of layers per stage, up to 4096 on all stages [1]", IntegerRange{1, 2048});
  add_value_flag(
      *flags, "--group", arguments->group,
      "slots that a chunk runs before the next, if virtual; times all chunks up to 262144 [stages]",
      IntegerRange{1, 4096});
  add_value_flag(*flags, "--transfer-ns", arguments->transfer_ns,
                 "from the end of a chunk to the start of the next [0]",
                 IntegerRange{0, max_total_cost});
  add_text_flag(*flags, "--stage-shares", arguments->stage_shares, "number,..",
                "of each chunk in the cost; they add up to 1 [equal]");
  add_text_flag(*flags, "--rank-speed", arguments->rank_speed, "file",
                "one number per rank, 1: as fast as the cost model says");
  add_cost_flags(*flags, arguments->cost,
                 fmt::format("that of --model {} --hardware {}", default_model, default_hardware));
  add_recompute_flag(*flags, arguments->cost);
  add_value_flag(*flags, "--batch", arguments->batch,
                 "plan all lengths step by step, this many sequences at a time", IntegerRange{1});
  add_text_flag(*flags, "--summary", arguments->summary, "file",
                "with --batch: write the distribution over the steps as JSON");
  add_text_flag(*flags, "--json", arguments->json, "file",
                "write the plan as JSON, with --batch one per line; - is standard output");
  flags->footer(
      "Examples:\n"
      "  isochron plan --lengths builtin:1024 --ranks 64 --capacity 16384 --context dynamic\n"
      "  isochron plan --lengths lengths.txt --ranks 8 --capacity 16384 --sync microbatch\n"
      "  isochron plan --lengths lengths.txt --ranks 4 --capacity 8192 --pipeline 4 --virtual 2\n"
      "  isochron plan --lengths lengths.txt --ranks 64 --capacity auto --context dynamic "
      "--model qwen3-8b --hardware h100\n"
      "  isochron plan --lengths data.csv --ranks 8 --capacity 16384 --batch 256 --summary s.json\n"
      "  isochron plan --lengths lengths.txt --ranks 8 --capacity 16384 --json - | isochron "
      "check -");
  return {.flags = flags,
          .run = [arguments] { return run_plan(*arguments); },
          .files = [arguments] { return files_of(*arguments); }};
}

}  // namespace isochron
