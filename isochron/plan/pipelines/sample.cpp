#include "isochron/plan/pipelines/sample.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "isochron/core/radix_sort.h"

namespace isochron {

namespace {

// Ranks of a sample, which divide those of the whole; 0 if there are none.
std::int32_t ranks_of_sample(std::int32_t num_ranks, std::int32_t least) {
  for (std::int32_t ranks = least; 2 * ranks <= num_ranks && ranks < 2 * least; ++ranks) {
    if (num_ranks % ranks == 0) return ranks;
  }
  return 0;
}

// Those of the same part of all blocks of ranks, in which wide groups find what they find there.
std::vector<double> speeds_of_sample(const std::vector<double>& speeds, std::int32_t ranks) {
  const auto count = static_cast<std::size_t>(ranks);
  const std::size_t block = std::gcd(count, std::size_t{8});
  const std::size_t step = speeds.size() / count;
  std::vector<double> sample;
  for (std::size_t first = step / 2 * block; sample.size() < count; first += step * block) {
    for (std::size_t i = 0; i < block; ++i) sample.push_back(speeds[first + i]);
  }
  return sample;
}

}  // namespace

std::unique_ptr<Problem> sample_of(const Problem& problem) {
  // The more ranks wait for each other, the more they wait: only many are like more.
  const bool is_paced = problem.options().sync == Sync::microbatch;
  const std::int32_t ranks = ranks_of_sample(problem.num_ranks(), is_paced ? 64 : 16);
  if (ranks == 0 || (is_paced && problem.has_speeds())) return nullptr;
  Topology topology = problem.topology();
  topology.ranks = ranks;
  if (problem.has_speeds()) topology.rank_speed = speeds_of_sample(topology.rank_speed, ranks);
  PlanOptions options = problem.options();
  const ContextMode mode = context_mode(options.context);
  options.max_context_size = std::min(options.max_context_size, ranks);
  if (options.min_context_size > ranks || ranks % mode.size != 0) return nullptr;

  std::vector<std::uint64_t> shortness;
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    Tokens tokens = 0;
    for (const ItemId item : problem.items_of(bundle)) tokens += problem.tokens(1, item);
    shortness.push_back(~static_cast<std::uint64_t>(tokens));
  }
  const std::vector<BundleId> longest_first = ascending_positions(std::move(shortness));
  Work work;
  const auto step = static_cast<std::size_t>(problem.num_ranks() / ranks);
  for (std::size_t i = step / 2; i < longest_first.size(); i += step) {
    const BundleId bundle = longest_first[i];
    const auto items = problem.items_of(bundle);
    const bool is_alone = std::any_of(items.begin(), items.end(),
                                      [&](ItemId item) { return problem.is_alone(item); });
    if (is_alone || problem.sizes()[problem.smallest_place(bundle)] > ranks) continue;
    work.bundles.push_back({});
    for (const ItemId item : items) {
      work.bundles.extend(static_cast<ItemId>(work.items.size()));
      work.items.push_back({});
      for (const SequenceId id : problem.sequences_of(item)) {
        work.items.extend(SequenceId(static_cast<std::int32_t>(work.lengths.size())));
        work.lengths.push_back(problem.work().lengths[id.index()]);
        if (problem.work().extra_costs.empty()) continue;
        work.extra_costs.push_back(problem.work().extra_costs[id.index()]);
      }
    }
  }
  if (work.items.empty()) return nullptr;
  return std::make_unique<Problem>(std::move(work), topology, problem.model(), options);
}

}  // namespace isochron
