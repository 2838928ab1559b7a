#include "isochron/balance/balance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "apps/isochron/cost_arguments.h"
#include "apps/isochron/input_file.h"
#include "apps/isochron/option_flags.h"
#include "apps/isochron/output_file.h"
#include "apps/isochron/table.h"
#include "apps/isochron/verb.h"
#include "isochron/balance/balance_json.h"
#include "isochron/core/units.h"

namespace isochron {

namespace {

struct BalanceArguments {
  std::string lengths;
  std::int32_t ranks = 0;
  BalanceOptions options;
  CostArguments cost;
  std::string json;
};

// What ranks would cost without a planner, and with one.
struct RankCosts {
  std::vector<Nanoseconds> of_rank;
  Nanoseconds max_cost = 0;  // as in Balance: summed over mini-batches
};

// The batch in input order, each mini-batch cut evenly over the ranks.
RankCosts contiguous_costs(std::span<const Nanoseconds> costs, std::int32_t ranks,
                           std::int32_t minibatch) {
  RankCosts result{.of_rank = std::vector<Nanoseconds>(static_cast<std::size_t>(ranks)),
                   .max_cost = 0};
  const std::size_t block = minibatch == 0 ? costs.size() : static_cast<std::size_t>(minibatch);
  for (std::size_t begin = 0; begin < costs.size(); begin += block) {
    const std::size_t rows = std::min(block, costs.size() - begin);
    Nanoseconds largest = 0;
    Nanoseconds sum = 0;
    std::size_t last_rank = 0;
    for (std::size_t i = 0; i < rows; ++i) {
      const std::size_t rank = i * static_cast<std::size_t>(ranks) / rows;
      if (rank != last_rank) sum = 0;
      last_rank = rank;
      sum += costs[begin + i];
      largest = std::max(largest, sum);
      result.of_rank[rank] += costs[begin + i];
    }
    result.max_cost += largest;
  }
  return result;
}

RankCosts planned_costs(const Balance& balance, std::span<const Nanoseconds> costs) {
  RankCosts result{.of_rank = {}, .max_cost = balance.max_cost};
  for (const auto& sequences : balance.sequences_of_rank) {
    Nanoseconds sum = 0;
    for (const SequenceId sequence : sequences) sum += costs[sequence.index()];
    result.of_rank.push_back(sum);
  }
  return result;
}

std::string text_of(const Balance& balance, const BalanceArguments& arguments,
                    const CostModel& model, const Batch& batch,
                    std::span<const Nanoseconds> costs) {
  const RankCosts before = contiguous_costs(costs, arguments.ranks, arguments.options.minibatch);
  const RankCosts after = planned_costs(balance, costs);
  const auto over_mean = [&](const RankCosts& each) {
    return balance.mean_cost > 0
               ? fmt::format("{:.4f}", static_cast<double>(each.max_cost) / balance.mean_cost)
               : std::string("-");
  };
  const auto tokens = std::accumulate(batch.lengths.begin(), batch.lengths.end(), Tokens{0});
  const std::string mean = grouped_digits(std::llround(balance.mean_cost));
  const std::vector<std::vector<std::string>> rows = {
      {"", "input order", "balanced"},
      {"max cost", grouped_digits(before.max_cost), grouped_digits(after.max_cost)},
      {"mean cost", mean, mean},
      {"max/mean", over_mean(before), over_mean(after)},
      {"lower bound", grouped_digits(balance.lower_bound), grouped_digits(balance.lower_bound)},
      {"gap to bound", gap_text(before.max_cost, balance.lower_bound),
       gap_text(after.max_cost, balance.lower_bound)},
      {"status", "", std::string(name_of(balance.status))}};
  const std::vector<BarColumn> columns = {{"input order", before.of_rank},
                                          {"balanced", after.of_rank}};
  return fmt::format("{} sequences, {} tokens, {} ranks, cost {}\n\n{}\n{}",
                     grouped_digits(static_cast<std::int64_t>(batch.lengths.size())),
                     grouped_digits(tokens), arguments.ranks, model.name, text_table(rows),
                     bar_chart("rank", columns));
}

CallFiles files_of(const BalanceArguments& arguments) {
  CallFiles files = {.inputs = files_of(arguments.cost),
                     .outputs = {{.flag = "--json", .path = arguments.json}}};
  files.inputs.push_back({.flag = "--lengths", .path = arguments.lengths});
  return files;
}

ExitCode run_balance(const BalanceArguments& arguments) {
  require(arguments.ranks >= 1 && arguments.ranks <= max_ranks, "balance",
          "--ranks is {}, must be from 1 to {}", arguments.ranks, max_ranks);
  const CostModel model = cost_model_of(arguments.cost, "balance", "verl");
  const Batch batch = read_batch(arguments.lengths);
  const std::vector<Nanoseconds> costs = sequence_costs(model, batch);
  const Balance result = balance({.lengths = batch.lengths, .costs = costs, .groups = batch.groups},
                                 arguments.ranks, arguments.options);
  const bool has_answer = !result.sequences_of_rank.empty();
  if (!arguments.json.empty()) {
    write_output(arguments.json, to_json(result, arguments.ranks, arguments.options, model, batch));
  }
  if (arguments.json != "-") {
    print(has_answer ? text_of(result, arguments, model, batch, costs)
                     : fmt::format("{}: {}\n", name_of(result.status), result.reason));
  }
  return has_answer ? exit_done : exit_no_answer;
}

}  // namespace

Verb add_balance(CLI::App& program) {
  CLI::App* flags =
      program.add_subcommand("balance", "Spread sequences over ranks so that all finish together");
  auto arguments = std::make_shared<BalanceArguments>();
  add_text_flag(*flags, "--lengths", arguments->lengths, "file", lengths_help)->required();
  add_value_flag(*flags, "--ranks", arguments->ranks, "data-parallel ranks",
                 IntegerRange{1, max_ranks})
      ->required();
  add_option_flags(*flags, arguments->options);
  add_cost_flags(*flags, arguments->cost);
  add_text_flag(*flags, "--json", arguments->json, "file",
                "write the result as JSON; - is standard output");
  flags->footer(
      "Examples:\n"
      "  isochron balance --lengths builtin:1024 --ranks 16\n"
      "  isochron balance --lengths lengths.csv --ranks 8 --equal-count --keep-groups rank\n"
      "  isochron balance --lengths lengths.txt --ranks 64 --model qwen3-8b --hardware h100\n"
      "  isochron balance --lengths lengths.txt --ranks 8 --json - | isochron check -");
  return {.flags = flags,
          .run = [arguments] { return run_balance(*arguments); },
          .files = [arguments] { return files_of(*arguments); }};
}

}  // namespace isochron
