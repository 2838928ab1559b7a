#include "isochron/pack/pack.h"

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
#include "isochron/pack/pack_json.h"

namespace isochron {

namespace {

struct PackArguments {
  std::string lengths;
  PackOptions options;
  CostArguments cost;
  std::string json;
};

struct MicrobatchSums {
  std::vector<Tokens> tokens;
  std::vector<Nanoseconds> costs;
};

MicrobatchSums sums_of(const std::vector<std::vector<SequenceId>>& microbatches,
                       std::span<const Tokens> lengths, std::span<const Nanoseconds> costs) {
  MicrobatchSums sums;
  for (const auto& sequences : microbatches) {
    sums.tokens.push_back(0);
    sums.costs.push_back(0);
    for (const SequenceId sequence : sequences) {
      sums.tokens.back() += lengths[sequence.index()];
      sums.costs.back() += costs[sequence.index()];
    }
  }
  return sums;
}

// What a loader without a planner does: in input order, a micro-batch is closed when the next
// sequence (or kept group) has no room. Counts that were asked for are not kept.
std::vector<std::vector<SequenceId>> next_fit(const Batch& batch, const PackOptions& options,
                                              std::span<const SequenceId> dropped) {
  std::vector<bool> is_dropped(batch.lengths.size());
  for (const SequenceId sequence : dropped) is_dropped[sequence.index()] = true;
  const bool is_kept = options.keep_groups == KeepGroups::microbatch;
  std::vector<std::vector<SequenceId>> units(is_kept ? batch.group_names.size()
                                                     : batch.lengths.size());
  for (std::size_t i = 0; i < batch.lengths.size(); ++i) {
    const SequenceId sequence(static_cast<std::int32_t>(i));
    if (!is_dropped[i]) units[is_kept ? batch.groups[i].index() : i].push_back(sequence);
  }
  std::vector<std::vector<SequenceId>> microbatches;
  Tokens filled = 0;
  for (const auto& unit : units) {
    if (unit.empty()) continue;
    Tokens tokens = 0;
    for (const SequenceId sequence : unit) tokens += batch.lengths[sequence.index()];
    const bool is_crowded =
        options.max_sequences > 0 && !microbatches.empty() &&
        microbatches.back().size() + unit.size() > static_cast<std::size_t>(options.max_sequences);
    if (microbatches.empty() || is_crowded || filled + tokens > options.capacity) {
      microbatches.emplace_back();
      filled = 0;
    }
    filled += tokens;
    microbatches.back().insert(microbatches.back().end(), unit.begin(), unit.end());
  }
  return microbatches;
}

std::string text_of(const Packing& packing, const PackArguments& arguments, const CostModel& model,
                    const Batch& batch, std::span<const Nanoseconds> costs) {
  const MicrobatchSums before =
      sums_of(next_fit(batch, arguments.options, packing.dropped), batch.lengths, costs);
  const MicrobatchSums after = sums_of(packing.microbatches, batch.lengths, costs);
  const auto count = [](const MicrobatchSums& sums) {
    return static_cast<std::int64_t>(sums.tokens.size());
  };
  const auto largest = [](const std::vector<std::int64_t>& values) {
    return *std::max_element(values.begin(), values.end());
  };
  const auto mean = [](const std::vector<std::int64_t>& values) {
    return static_cast<double>(std::accumulate(values.begin(), values.end(), std::int64_t{0})) /
           static_cast<double>(values.size());
  };
  const auto fill = [&](const MicrobatchSums& sums) {
    return fmt::format("{:.1f} %",
                       100 * mean(sums.tokens) / static_cast<double>(arguments.options.capacity));
  };
  const auto over_mean = [&](const MicrobatchSums& sums) {
    const double cost = mean(sums.costs);
    return cost > 0 ? fmt::format("{:.4f}", static_cast<double>(largest(sums.costs)) / cost)
                    : std::string("-");
  };
  const auto tokens = std::accumulate(batch.lengths.begin(), batch.lengths.end(), Tokens{0});
  const std::vector<std::vector<std::string>> rows = {
      {"", "next-fit", "packed"},
      {"micro-batches", grouped_digits(count(before)), grouped_digits(count(after))},
      {"lower bound", grouped_digits(packing.lower_bound), grouped_digits(packing.lower_bound)},
      {"gap to bound", gap_text(count(before), packing.lower_bound),
       gap_text(count(after), packing.lower_bound)},
      {"tokens of capacity", fill(before), fill(after)},
      {"max tokens", grouped_digits(largest(before.tokens)), grouped_digits(largest(after.tokens))},
      {"max cost", grouped_digits(largest(before.costs)), grouped_digits(packing.max_cost)},
      {"mean cost", grouped_digits(std::llround(mean(before.costs))),
       grouped_digits(std::llround(mean(after.costs)))},
      {"max/mean", over_mean(before), over_mean(after)},
      {"lower bound of max cost", "", grouped_digits(packing.max_cost_bound)},
      {"gap to that bound", "", gap_text(packing.max_cost, packing.max_cost_bound)},
      {"oversized, dropped", "",
       fmt::format("{}, {}", packing.oversized.size(), packing.dropped.size())},
      {"status", "", std::string(name_of(packing.status))}};
  const std::vector<BarColumn> columns = {{"next-fit, tokens", before.tokens},
                                          {"packed, tokens", after.tokens}};
  return fmt::format("{} sequences, {} tokens, capacity {}, cost {}\n\n{}\n{}",
                     grouped_digits(static_cast<std::int64_t>(batch.lengths.size())),
                     grouped_digits(tokens), grouped_digits(arguments.options.capacity), model.name,
                     text_table(rows), bar_chart("micro-batch", columns));
}

CallFiles files_of(const PackArguments& arguments) {
  CallFiles files = {.inputs = files_of(arguments.cost),
                     .outputs = {{.flag = "--json", .path = arguments.json}}};
  files.inputs.push_back({.flag = "--lengths", .path = arguments.lengths});
  return files;
}

ExitCode run_pack(const PackArguments& arguments) {
  const CostModel model = cost_model_of(arguments.cost, "pack", "verl");
  const Batch batch = read_batch(arguments.lengths);
  const std::vector<Nanoseconds> costs = sequence_costs(model, batch);
  const Packing result =
      pack({.lengths = batch.lengths, .costs = costs, .groups = batch.groups}, arguments.options);
  const bool has_answer = !result.microbatches.empty();
  if (!arguments.json.empty()) {
    write_output(arguments.json, to_json(result, arguments.options, model, batch));
  }
  if (arguments.json != "-") {
    print(has_answer ? text_of(result, arguments, model, batch, costs)
                     : fmt::format("{}: {}\n", name_of(result.status), result.reason));
  }
  return has_answer ? exit_done : exit_no_answer;
}

}  // namespace

Verb add_pack(CLI::App& program) {
  CLI::App* flags = program.add_subcommand(
      "pack", "Put sequences into the fewest micro-batches under a token capacity, evenly");
  auto arguments = std::make_shared<PackArguments>();
  add_text_flag(*flags, "--lengths", arguments->lengths, "file", lengths_help)->required();
  add_option_flags(*flags, arguments->options);
  flags->get_option("--capacity")->required()->description("tokens that one micro-batch may hold");
  add_cost_flags(*flags, arguments->cost);
  add_text_flag(*flags, "--json", arguments->json, "file",
                "write the result as JSON; - is standard output");
  flags->footer(
      "Examples:\n"
      "  isochron pack --lengths builtin:256 --capacity 131072\n"
      "  isochron pack --lengths lengths.txt --capacity 16384 --oversize alone --multiple 4\n"
      "  isochron pack --lengths lengths.csv --capacity 32768 --keep-groups microbatch\n"
      "  isochron pack --lengths lengths.txt --capacity 16384 --json - | isochron check -");
  return {.flags = flags,
          .run = [arguments] { return run_pack(*arguments); },
          .files = [arguments] { return files_of(*arguments); }};
}

}  // namespace isochron
