// How much of the gap between small-large-small and the bound the order of micro-batches closes, as
// a table for bench/results, and what a long annealing finds that shares nothing with that search.
//
//   order_bench
//
// Where that finds next to nothing more, what is left is likely the bound's.

#include <algorithm>
#include <cstdio>

#include "isochron/core/order.h"
#include "isochron/plan/cooling.h"
#include "isochron/simulate/order_microbatches.h"
#include "isochron/simulate/pipeline_time.h"
#include "tests/simulate/random_pipeline.h"

namespace isochron {
namespace {

constexpr std::uint64_t num_seeds = 3;

Nanoseconds small_ends_time(const std::vector<PassCost>& costs, const PipelineShape& shape) {
  std::vector<Nanoseconds> sizes;
  for (const PassCost& cost : costs) sizes.push_back(cost.forward + cost.backward);
  std::vector<PassCost> ordered;
  for (const std::size_t i : small_ends(sizes)) ordered.push_back(costs[i]);
  return PipelineTime(shape, static_cast<std::int32_t>(costs.size()), Pass::train)
      .makespan(ordered);
}

// The best of several runs from random orders, each cooled down slowly.
Nanoseconds annealed_time(std::vector<PassCost> costs, const PipelineShape& shape) {
  constexpr int num_runs = 3;
  constexpr int num_trials = 400'000;
  PipelineTime time(shape, static_cast<std::int32_t>(costs.size()), Pass::train);
  Random random(11);
  Nanoseconds best = time.makespan(costs);
  const auto pick = [&] { return static_cast<std::ptrdiff_t>(random.below(costs.size())); };
  for (int run = 0; run < num_runs; ++run) {
    random.shuffle(costs);
    Nanoseconds state = time.makespan(costs);
    for (int trial = 0; trial < num_trials; ++trial) {
      const std::vector<PassCost> before = costs;
      const auto [first, second] = std::minmax({pick(), pick()});
      switch (random.below(3)) {
        case 0:
          std::swap(costs[static_cast<std::size_t>(first)],
                    costs[static_cast<std::size_t>(second)]);
          break;
        case 1:
          std::rotate(costs.begin() + first, costs.begin() + first + 1, costs.begin() + second + 1);
          break;
        default:
          std::reverse(costs.begin() + first, costs.begin() + second + 1);
      }
      const Nanoseconds after = time.makespan(costs);
      const double cooled = static_cast<double>(trial) / num_trials;
      const double heat = 0.02 * static_cast<double>(best) * halved(12 * cooled);
      if (after > state && random.unit() >= halved(static_cast<double>(after - state) / heat)) {
        costs = before;
        continue;
      }
      state = after;
      best = std::min(best, state);
    }
  }
  return best;
}

struct Gaps {  // over the bound, summed over seeds
  double fixed = 0;
  double found = 0;
  double annealed = 0;
};

Gaps gaps_of(double sigma, std::int32_t num_slots, std::int32_t stages) {
  Gaps gaps;
  for (std::uint64_t seed = 0; seed < num_seeds; ++seed) {
    const PipelineShape shape = {.stages = stages};
    const std::vector<PassCost> costs = lognormal_costs(seed, num_slots, sigma);
    std::vector<PipelineItem> items;
    for (const PassCost& cost : costs) items.push_back({.cost = cost});
    const MicrobatchOrder found = order_microbatches(items, shape);
    const auto over = [&](Nanoseconds time) {
      return static_cast<double>(time) / static_cast<double>(found.lower_bound_ns) - 1;
    };
    gaps.fixed += over(small_ends_time(costs, shape));
    gaps.found += over(found.time_ns);
    gaps.annealed += over(annealed_time(costs, shape));
  }
  return gaps;
}

void run() {
  std::printf(
      "| sigma | slots | stages | small ends | found | 1.2 million orders | gap closed |\n");
  std::printf("| --- | --- | --- | --- | --- | --- | --- |\n");
  for (const double sigma : {0.5, 1.0}) {
    for (const std::int32_t num_slots : {16, 32, 64}) {
      for (const std::int32_t stages : {4, 8, 16}) {
        const Gaps gaps = gaps_of(sigma, num_slots, stages);
        std::printf("| %.1f | %d | %d | %.4f | %.4f | %.4f | %.0f %% |\n", sigma, num_slots, stages,
                    1 + gaps.fixed / num_seeds, 1 + gaps.found / num_seeds,
                    1 + gaps.annealed / num_seeds, 100 * (1 - gaps.found / gaps.fixed));
        std::fflush(stdout);
      }
    }
  }
}

}  // namespace
}  // namespace isochron

int main() { isochron::run(); }
