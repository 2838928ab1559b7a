#include "tests/report/example_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <string>

#include "isochron/core/json.h"
#include "isochron/core/random.h"
#include "isochron/plan/baselines.h"
#include "isochron/plan/plan.h"
#include "isochron/simulate/simulate.h"

namespace isochron {

namespace {

constexpr double reduce_ns = 9e6;
constexpr double optimizer_ns = 4e6;

struct PlayedScope {
  const char* name;
  std::int32_t slot;
  double begin_ns;
  double end_ns;
};

struct PlayedStep {
  std::vector<std::vector<PlayedScope>> scopes_of;  // each rank
  std::vector<double> busy_ns;
  double step_ns = 0;
};

PlayedStep play(const StepPlan& plan, const ExampleRun& run, Random& random) {
  const auto ranks = static_cast<std::size_t>(plan.topology.ranks);
  PlayedStep played;
  played.scopes_of.resize(ranks);
  played.busy_ns.resize(ranks);
  std::vector<double> free(ranks);
  const auto measured = [&](double predicted) {
    return run.scale * predicted * (1 + run.noise * (2 * random.unit() - 1));
  };
  std::int32_t slot = 0;
  for (const Slot& groups : plan.microbatches) {
    for (const ContextGroup& group : groups) {
      const auto first = static_cast<std::size_t>(group.ranks.first);
      const auto end = first + static_cast<std::size_t>(group.ranks.size);
      const double begin = *std::max_element(free.begin() + static_cast<std::ptrdiff_t>(first),
                                             free.begin() + static_cast<std::ptrdiff_t>(end));
      const auto cost = static_cast<double>(group_cost(plan, group));
      const double forward = measured(cost * plan.cost.forward_share);
      const double backward = measured(cost * (1 - plan.cost.forward_share));
      for (std::size_t rank = first; rank < end; ++rank) {
        auto& scopes = played.scopes_of[rank];
        scopes.push_back({"forward", slot, begin, begin + forward});
        scopes.push_back({"backward", slot, begin + forward, begin + forward + backward});
        free[rank] = begin + forward + backward;
        played.busy_ns[rank] += forward + backward;
      }
    }
    ++slot;
  }
  const double reduced = *std::max_element(free.begin(), free.end()) + reduce_ns;
  played.step_ns = reduced + optimizer_ns;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    played.scopes_of[rank].push_back({"reduce", -1, free[rank], reduced});
    played.scopes_of[rank].push_back({"optimizer", -1, reduced, played.step_ns});
  }
  return played;
}

std::vector<Nanoseconds> predicted_busy(const StepPlan& plan) {
  std::vector<Nanoseconds> busy(static_cast<std::size_t>(plan.topology.ranks));
  for (const Slot& slot : plan.microbatches) {
    for (const ContextGroup& group : slot) {
      const Nanoseconds cost = group_cost(plan, group);
      for (std::int64_t i = 0; i < group.ranks.size; ++i) {
        busy[static_cast<std::size_t>(group.ranks.first + i)] += cost;
      }
    }
  }
  return busy;
}

Json metrics_of(std::int32_t step, const StepPlan& plan, const PlayedStep& played,
                const ExampleRun& run, Random& random) {
  const double share = static_cast<double>(step) / std::max(1, run.steps);
  const Tokens tokens =
      std::accumulate(plan.batch.lengths.begin(), plan.batch.lengths.end(), Tokens{0});
  const auto predicted = predicted_busy(plan);
  Json data;
  const double wobble = 0.12 * (random.unit() - 0.5);
  data["train/loss"] = 0.9 + 2.1 * std::exp(-4 * share) + wobble;
  if (step % 10 == 0 || step == run.steps) data["val/loss"] = 1.0 + 2.1 * std::exp(-4 * share);
  data["train/grad_norm"] = 0.4 + 1.6 * std::exp(-3 * share) + 0.3 * random.unit();
  data["train/lr"] = 1e-5 * (share < 0.1 ? share / 0.1 : 0.5 * (1 + std::cos(3.14159 * share)));
  data["train/mfu"] = 0.41 + 0.02 * random.unit();
  data["train/global_tokens"] = tokens;
  data["perf/tokens_per_s"] = static_cast<double>(tokens) / (played.step_ns / 1e9);
  data["perf/max_memory_allocated_gb"] = 61.5 + random.unit();
  const double mean = static_cast<double>(tokens) / run.ranks;
  data["global_seqlen/mean"] = mean;
  data["global_seqlen/min"] = mean * (0.55 + 0.1 * random.unit());
  data["global_seqlen/max"] = mean * (1.4 + 0.3 * random.unit());
  data["global_seqlen/balanced_min"] = mean * 0.985;
  data["global_seqlen/balanced_max"] = mean * 1.012;
  for (std::size_t rank = 0; rank < predicted.size(); ++rank) {
    data[fmt::format("perf/predicted_ms/rank_{}", rank)] =
        static_cast<double>(predicted[rank]) / 1e6;
    data[fmt::format("perf/busy_ms/rank_{}", rank)] = played.busy_ns[rank] / 1e6;
  }
  return {{"step", step}, {"data", std::move(data)}};
}

std::string events_of(std::int32_t step, std::size_t rank, double start_us,
                      const PlayedStep& played) {
  std::string text;
  for (const PlayedScope& scope : played.scopes_of[rank]) {
    text += fmt::format(
        "{{\"name\": \"{}\", \"ph\": \"X\", \"ts\": {:.3f}, \"dur\": {:.3f}, \"pid\": {}, "
        "\"tid\": 0, \"args\": {{\"step\": {}, \"slot\": {}}}}},\n",
        scope.name, start_us + scope.begin_ns / 1000, (scope.end_ns - scope.begin_ns) / 1000, rank,
        step, scope.slot);
  }
  return text;
}

}  // namespace

std::vector<StepPlan> example_plans(const ExampleRun& run) {
  std::vector<StepPlan> plans;
  for (std::int32_t i = 0; i < std::min(run.steps, run.num_batches); ++i) {
    Batch batch;
    batch.lengths =
        long_tailed_lengths(run.sequences, run.seed * 1000 + static_cast<std::uint64_t>(i));
    for (Tokens& length : batch.lengths) length = std::min(length, run.longest);
    const Topology topology = {.ranks = run.ranks, .capacity = run.capacity};
    const PlanOptions options = resolved({.context = run.context}, topology);
    const CostModel cost = cost_preset("qwen3-8b_h100");
    plans.push_back(run.is_balanced ? plan_step(batch, topology, cost, options)
                                    : naive_plan(batch, topology, cost, options));
  }
  return plans;
}

void write_example_run(const std::filesystem::path& folder, const ExampleRun& run) {
  std::filesystem::create_directories(folder / "plans");
  std::filesystem::create_directories(folder / "trace");
  const std::vector<StepPlan> plans = example_plans(run);
  std::ofstream(folder / "config.yaml")
      << "data:\n  train_batch_size: " << run.sequences
      << "\n  max_token_len_per_gpu: " << run.capacity
      << "\ntrainer:\n  balance_batch: " << (run.is_balanced ? "true" : "false") << "\n";
  std::ofstream metrics(folder / "metrics.jsonl");
  std::vector<std::ofstream> traces;
  for (std::int32_t rank = 0; rank < run.ranks; ++rank) {
    traces.emplace_back(folder / "trace" / fmt::format("rank_{}.json", rank)) << "[\n";
  }
  Random random(run.seed);
  double now_us = 5e9;
  for (std::int32_t step = 1; step <= run.steps; ++step) {
    const StepPlan& plan = plans[static_cast<std::size_t>(step - 1) % plans.size()];
    const PlayedStep played = play(plan, run, random);
    metrics << metrics_of(step, plan, played, run, random).dump() << "\n";
    if (step <= run.num_plans) {
      std::ofstream(folder / "plans" / fmt::format("step_{}.json", step)) << to_json(plan) << "\n";
      for (std::size_t rank = 0; rank < traces.size(); ++rank) {
        traces[rank] << events_of(step, rank, now_us, played);
      }
    }
    now_us += played.step_ns / 1000 + 2000;
  }
}

}  // namespace isochron
