// How much of the gap between small-large-small and the bound the order of micro-batches closes, as
// tables for bench/results: beside what a long annealing finds that shares nothing with that
// search, and for few micro-batches beside the best order of all.
//
//   order_bench [exact]
//
// Where these find next to nothing more, what is left is the bound's.

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "bench/exact_order.h"
#include "isochron/core/order.h"
#include "isochron/core/require.h"
#include "isochron/plan/cooling.h"
#include "isochron/simulate/order_bound.h"
#include "isochron/simulate/order_microbatches.h"
#include "isochron/simulate/pipeline_time.h"
#include "tests/simulate/best_order.h"
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

std::vector<PipelineItem> items_of(const std::vector<PassCost>& costs) {
  std::vector<PipelineItem> items;
  for (const PassCost& cost : costs) items.push_back({.cost = cost});
  return items;
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
    const MicrobatchOrder found = order_microbatches(items_of(costs), shape);
    const auto over = [&](Nanoseconds time) {
      return static_cast<double>(time) / static_cast<double>(found.lower_bound_ns) - 1;
    };
    gaps.fixed += over(small_ends_time(costs, shape));
    gaps.found += over(found.time_ns);
    gaps.annealed += over(annealed_time(costs, shape));
  }
  return gaps;
}

// Sums over seeds, over the best of all orders.
void print_exact(double sigma, std::int32_t num_slots, std::int32_t stages) {
  constexpr std::uint64_t num_exact_seeds = 10;
  constexpr std::int64_t max_nodes = 40'000'000;
  double fixed = 0, found = 0, bound = 0;
  int num_best = 0;
  int num_proved = 0;
  for (std::uint64_t seed = 0; seed < num_exact_seeds; ++seed) {
    const PipelineShape shape = {.stages = stages};
    const std::vector<PassCost> costs = lognormal_costs(seed, num_slots, sigma);
    const MicrobatchOrder order = order_microbatches(items_of(costs), shape);
    const Nanoseconds best = ExactOrder(costs, stages).best_time(order.time_ns, max_nodes);
    if (best == 0) continue;
    if (num_slots <= 8 && best != oracle::best_order_time(costs, shape, Pass::train)) {
      reject("order_bench", "seed {} with {} slots: {} is not the best time", seed, num_slots,
             best);
    }
    const auto over_best = [&](Nanoseconds time) {
      return static_cast<double>(time) / static_cast<double>(best);
    };
    ++num_proved;
    fixed += over_best(small_ends_time(costs, shape));
    found += over_best(order.time_ns);
    bound += 1 / over_best(order_bound(costs, shape, Pass::train, OrderOptions{}.bound_work));
    num_best += order.time_ns == best ? 1 : 0;
  }
  if (num_proved == 0) return;
  std::printf("| %.1f | %d | %d | %d | %.4f | %.4f | %d | %.4f |\n", sigma, num_slots, stages,
              num_proved, fixed / num_proved, found / num_proved, num_best, bound / num_proved);
  std::fflush(stdout);
}

void run_exact() {
  std::printf(
      "| sigma | slots | stages | proved | small ends | found | is best | best over bound |\n");
  std::printf("| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const double sigma : {0.5, 1.0}) {
    for (const std::int32_t num_slots : {8, 10, 12}) {
      print_exact(sigma, num_slots, 4);
      if (num_slots <= 10) print_exact(sigma, num_slots, 8);  // more take too long
    }
  }
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

int main(int count, char** arguments) {
  const bool is_exact = count > 1 && std::string_view(arguments[1]) == "exact";
  is_exact ? isochron::run_exact() : isochron::run();
}
