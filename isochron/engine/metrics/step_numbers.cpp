#include "isochron/engine/metrics/step_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "isochron/balance/metrics.h"
#include "isochron/cost/cost_model.h"
#include "isochron/cost/flops.h"

namespace isochron {

namespace {

double milliseconds(Nanoseconds ns) { return static_cast<double>(ns) / 1e6; }

double gib(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

template <class Field>
std::int64_t largest(const std::vector<RankTimes>& ranks, Field field) {
  std::int64_t value = 0;
  for (const RankTimes& rank : ranks) value = std::max(value, std::int64_t{field(rank)});
  return value;
}

// A sequence that several ranks share counts for the first of them.
std::vector<std::vector<SequenceId>> sequences_of_ranks(const StepPlan& plan) {
  std::vector<std::vector<SequenceId>> sequences(static_cast<std::size_t>(plan.topology.ranks));
  const auto num_rows = static_cast<std::int32_t>(plan.batch.lengths.size());
  for (const Slot& slot : plan.microbatches) {
    for (const ContextGroup& group : slot) {
      auto& own = sequences[static_cast<std::size_t>(group.ranks.first)];
      std::copy_if(group.sequences.begin(), group.sequences.end(), std::back_inserter(own),
                   [&](SequenceId id) { return id.value() < num_rows; });  // no padding rows
    }
  }
  return sequences;
}

void add_times(const StepPlan& plan, const StepResult& result, double tokens, Numbers& numbers) {
  const double step_ms =
      milliseconds(largest(result.ranks, [](const RankTimes& rank) { return rank.step_ns; }));
  const double busy_ms =
      milliseconds(largest(result.ranks, [](const RankTimes& rank) { return rank.busy_ns; }));
  double sum_ms = 0;
  for (const RankTimes& rank : result.ranks) sum_ms += milliseconds(rank.busy_ns);
  const double mean_ms = sum_ms / static_cast<double>(result.ranks.size());
  numbers.emplace_back("perf/step_ms", step_ms);
  if (step_ms > 0) numbers.emplace_back("perf/tokens_per_s", 1000 * tokens / step_ms);
  numbers.emplace_back("perf/predicted_ms", milliseconds(plan.predicted_step_ns));
  numbers.emplace_back("perf/busy_ms", busy_ms);
  numbers.emplace_back("perf/straggler_share", busy_ms > 0 ? 1 - mean_ms / busy_ms : 0);
  for (std::size_t rank = 0; rank < result.ranks.size(); ++rank) {
    const RankTimes& times = result.ranks[rank];
    numbers.emplace_back(fmt::format("perf/predicted_ms/rank_{}", rank),
                         milliseconds(times.predicted_ns));
    numbers.emplace_back(fmt::format("perf/busy_ms/rank_{}", rank), milliseconds(times.busy_ns));
  }
}

void add_memory(const std::vector<RankTimes>& ranks, Numbers& numbers) {
  const auto add = [&](const char* name, std::int64_t PeakMemory::*bytes) {
    const std::int64_t most =
        largest(ranks, [&](const RankTimes& rank) { return rank.memory.*bytes; });
    if (most > 0) numbers.emplace_back(name, gib(most));
  };
  add("perf/max_memory_allocated_gb", &PeakMemory::device_allocated);
  add("perf/max_memory_reserved_gb", &PeakMemory::device_reserved);
  add("perf/cpu_memory_used_gb", &PeakMemory::host);
}

}  // namespace

Numbers step_numbers(const StepPlan& plan, const StepResult& result, const Machine& machine) {
  const std::vector<Tokens>& lengths = plan.batch.lengths;
  const auto tokens =
      static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), Tokens{0}));
  Numbers numbers = {{"train/loss", result.loss},
                     {"train/grad_norm", result.grad_norm},
                     {"train/global_tokens", tokens}};
  const double step_ms =
      milliseconds(largest(result.ranks, [](const RankTimes& rank) { return rank.step_ns; }));
  if (step_ms > 0) {
    const auto share = mfu(model_flops(machine.model, lengths), step_ms / 1000, machine.hardware,
                           plan.topology.ranks);
    if (share) numbers.emplace_back("train/mfu", *share);
  }
  add_times(plan, result, tokens, numbers);
  add_memory(result.ranks, numbers);
  const auto spread =
      balance_metrics(lengths, sequence_costs(plan.cost, plan.batch), sequences_of_ranks(plan));
  for (auto& number : named_numbers(spread)) numbers.push_back(std::move(number));
  return numbers;
}

}  // namespace isochron
