#include "isochron/pack/rank_schedule.h"

#include <algorithm>

#include "isochron/balance/balance.h"
#include "isochron/core/require.h"

namespace isochron {

namespace {

constexpr std::int64_t max_count = 1 << 24;  // of micro-batches on all ranks

std::int32_t on_all_ranks(std::int32_t value, std::int32_t ranks, std::string_view name) {
  const std::int64_t product = static_cast<std::int64_t>(value) * ranks;
  require(product <= max_count, "schedule_ranks", "{} is {} on {} ranks, must be at most {} on all",
          name, value, ranks, max_count);
  return static_cast<std::int32_t>(product);
}

PackOptions options_of_all(const PackOptions& options, std::int32_t ranks) {
  PackOptions all = options;
  all.multiple = on_all_ranks(options.multiple, ranks, "multiple");
  all.min_count = on_all_ranks(options.min_count, ranks, "min_count");
  if (options.count) all.count = on_all_ranks(*options.count, ranks, "count");
  all.order = Order::index;
  return all;
}

}  // namespace

RankSchedule schedule_ranks(const Sequences& sequences, std::int32_t ranks,
                            const PackOptions& options) {
  require(ranks >= 1, "schedule_ranks", "ranks is {}, must be at least 1", ranks);
  RankSchedule schedule;
  schedule.packing = pack(sequences, options_of_all(options, ranks));
  const Status status = schedule.packing.status;
  if (status == Status::infeasible || status == Status::unknown) return schedule;

  std::vector<Nanoseconds> costs;
  costs.reserve(schedule.packing.microbatches.size());
  Nanoseconds largest_sequence = 0;
  for (const auto& microbatch : schedule.packing.microbatches) {
    Nanoseconds& cost = costs.emplace_back(0);
    for (const SequenceId id : microbatch) {
      cost += sequences.costs[id.index()];
      largest_sequence = std::max(largest_sequence, sequences.costs[id.index()]);
    }
  }
  const Balance dealt = balance(
      costs, ranks, {.equal_count = true, .order = options.order, .max_work = options.max_work});
  schedule.max_cost = dealt.max_cost;
  schedule.microbatches_of_rank.reserve(dealt.sequences_of_rank.size());
  Nanoseconds total = 0;
  for (const Nanoseconds cost : costs) total += cost;
  schedule.lower_bound = std::max(total / ranks + (total % ranks != 0 ? 1 : 0), largest_sequence);
  for (const auto& places : dealt.sequences_of_rank) {
    auto& list = schedule.microbatches_of_rank.emplace_back();
    for (const SequenceId place : places) list.push_back(place.value());
    // Empty ones last, whatever the order of the others.
    std::stable_partition(list.begin(), list.end(), [&](std::int32_t place) {
      return !schedule.packing.microbatches[static_cast<std::size_t>(place)].empty();
    });
  }
  return schedule;
}

}  // namespace isochron
