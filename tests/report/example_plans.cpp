#include "tests/report/example_plans.h"

#include <algorithm>
#include <numeric>

#include "isochron/core/batch.h"
#include "isochron/simulate/simulate.h"

namespace isochron {

namespace {

// Groups in the order in which their ranks run them; a slot has each rank at most once.
class SlotWriter {
 public:
  explicit SlotWriter(StepPlan& plan)
      : plan_(plan), next_slot_(static_cast<std::size_t>(plan.topology.ranks)) {}

  void add(RankRange ranks, std::vector<SequenceId> sequences) {
    const auto first = next_slot_.begin() + ranks.first;
    const std::size_t slot = *std::max_element(first, first + ranks.size);
    std::fill(first, first + ranks.size, slot + 1);
    if (plan_.microbatches.size() <= slot) plan_.microbatches.resize(slot + 1);
    std::sort(sequences.begin(), sequences.end());
    plan_.microbatches[slot].push_back({.ranks = ranks, .sequences = std::move(sequences)});
  }

 private:
  StepPlan& plan_;
  std::vector<std::size_t> next_slot_;
};

void sort_slots(StepPlan& plan) {
  for (Slot& slot : plan.microbatches) {
    std::sort(slot.begin(), slot.end(), [](const ContextGroup& a, const ContextGroup& b) {
      return a.ranks.first < b.ranks.first;
    });
  }
}

std::vector<SequenceId> longest_first(const std::vector<Tokens>& lengths) {
  std::vector<SequenceId> order;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    order.emplace_back(static_cast<std::int32_t>(i));
  }
  std::stable_sort(order.begin(), order.end(), [&](SequenceId a, SequenceId b) {
    return lengths[a.index()] > lengths[b.index()];
  });
  return order;
}

void add_groups(StepPlan& plan) {
  const std::int64_t ranks = plan.topology.ranks;
  const Tokens capacity = plan.topology.capacity;
  SlotWriter writer(plan);
  std::vector<Nanoseconds> load(static_cast<std::size_t>(ranks));
  std::vector<std::vector<SequenceId>> narrow(static_cast<std::size_t>(ranks));
  for (const SequenceId id : longest_first(plan.batch.lengths)) {
    const Tokens length = plan.batch.lengths[id.index()];
    std::int64_t size = 1;
    while (padded_length(length, size, 1) / size > capacity && size < ranks) size *= 2;
    std::int64_t best = 0;
    for (std::int64_t first = 0; first + size <= ranks; first += size) {
      const auto highest = [&](std::int64_t from) {
        return *std::max_element(load.begin() + from, load.begin() + from + size);
      };
      if (highest(first) < highest(best)) best = first;
    }
    const RankRange range = {.first = best, .size = size};
    const Nanoseconds cost = group_cost(plan, {.ranks = range, .sequences = {id}});
    const Nanoseconds end =
        *std::max_element(load.begin() + best, load.begin() + best + size) + cost;
    std::fill(load.begin() + best, load.begin() + best + size, end);
    if (size > 1) writer.add(range, {id});
    if (size == 1) narrow[static_cast<std::size_t>(best)].push_back(id);
  }
  for (std::size_t rank = 0; rank < narrow.size(); ++rank) {
    std::vector<std::vector<SequenceId>> bins;
    std::vector<Tokens> filled;
    for (const SequenceId id : narrow[rank]) {
      const Tokens length = plan.batch.lengths[id.index()];
      std::size_t bin = 0;
      while (bin < bins.size() && filled[bin] + length > capacity) ++bin;
      if (bin == bins.size()) {
        bins.emplace_back();
        filled.push_back(0);
      }
      bins[bin].push_back(id);
      filled[bin] += length;
    }
    for (auto& bin : bins) {
      writer.add({.first = static_cast<std::int64_t>(rank), .size = 1}, std::move(bin));
    }
  }
  sort_slots(plan);
}

// Rank r runs sequences r, r + ranks, .. and the first rank none in the last slot.
void add_rounds(StepPlan& plan) {
  const auto ranks = static_cast<std::size_t>(plan.topology.ranks);
  for (std::size_t begin = 0; begin < plan.batch.lengths.size(); begin += ranks) {
    Slot& slot = plan.microbatches.emplace_back();
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      ContextGroup group = {.ranks = {.first = static_cast<std::int64_t>(rank), .size = 1},
                            .sequences = {}};
      if (begin + rank < plan.batch.lengths.size()) {
        group.sequences.emplace_back(static_cast<std::int32_t>(begin + rank));
      }
      slot.push_back(std::move(group));
    }
  }
}

}  // namespace

void set_predictions(StepPlan& plan) {
  const Timeline timeline = simulate(plan);
  const auto stages = static_cast<std::size_t>(plan.topology.pipeline.stages);
  std::vector<double> busy(timeline.busy_ns.size() / stages);
  for (std::size_t i = 0; i < timeline.busy_ns.size(); ++i) {
    busy[i / stages] += static_cast<double>(timeline.busy_ns[i]);
  }
  const double mean =
      std::accumulate(busy.begin(), busy.end(), 0.0) / static_cast<double>(busy.size());
  plan.predicted_step_ns = timeline.step_ns;
  plan.peak_activation_bytes = timeline.peak_activation_bytes;
  plan.imbalance = mean > 0 ? *std::max_element(busy.begin(), busy.end()) / mean : 1;
  plan.lower_bound_ns = static_cast<Nanoseconds>(mean / static_cast<double>(stages));
  plan.status = plan.lower_bound_ns == plan.predicted_step_ns ? Status::optimal : Status::feasible;
}

StepPlan example_plan(const ExampleOptions& options) {
  StepPlan plan;
  plan.topology.ranks = options.ranks;
  plan.topology.capacity = options.capacity;
  plan.topology.pipeline.stages = options.stages;
  plan.options.context = "dynamic";
  plan.options = resolved(plan.options, plan.topology);
  plan.cost = cost_preset("qwen3-8b_h100");
  plan.cost.context.resize(1);  // then groups need not say which exchange they use
  plan.batch.lengths = long_tailed_lengths(options.sequences, options.seed);
  const Tokens longest = options.capacity * (options.stages == 1 ? options.ranks : 1);
  for (Tokens& length : plan.batch.lengths) length = std::min(length, longest);
  if (options.stages == 1) {
    add_groups(plan);
  } else {
    add_rounds(plan);
  }
  set_predictions(plan);
  return plan;
}

}  // namespace isochron
