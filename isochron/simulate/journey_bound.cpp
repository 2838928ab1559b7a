// A path runs on the first stage up to the first forward of a slot, goes with the slot through all
// chunks, down and up, and runs on the first stage again. It misses what that stage does meanwhile.
// Which operations these are depends on the place of the slot in the order, which slots they belong
// to does not matter: of each chunk and direction so many are missed, and the dearest are the most.
// The place where most is missed bounds all others.

#include "isochron/simulate/journey_bound.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "isochron/schedule/pipeline_schedule.h"

namespace isochron {

namespace {

// How many operations of each kind the first stage runs between the first forward and the last
// backward of a slot, for each place of the slot. A kind is a chunk of the stage and a direction.
std::vector<std::vector<std::size_t>> missed_counts(const PipelineShape& shape,
                                                    std::size_t num_slots) {
  const auto operations =
      pipeline_schedule(shape, static_cast<std::int32_t>(num_slots), Pass::train).front();
  std::vector<std::vector<std::size_t>> counts(num_slots);
  std::vector<std::size_t> run(2 * static_cast<std::size_t>(shape.virtual_), 0);  // so far
  for (const PipelineOperation& operation : operations) {
    const bool is_backward = operation.direction == Direction::backward;
    std::vector<std::size_t>& count = counts[static_cast<std::size_t>(operation.slot)];
    if (operation.chunk == 0 && !is_backward) count = run;
    const auto round = static_cast<std::size_t>(operation.chunk / shape.stages);
    ++run[2 * round + (is_backward ? 1 : 0)];
    if (operation.chunk != 0 || !is_backward) continue;
    for (std::size_t kind = 0; kind < run.size(); ++kind) {
      count[kind] = run[kind] - count[kind] - 1;  // less that of the slot itself
    }
  }
  return counts;
}

}  // namespace

Int128 journey_bound(const ChunkCosts& costs, const PipelineShape& shape) {
  const std::size_t num_slots = costs.num_rows();
  const auto counts = missed_counts(shape, num_slots);
  const std::size_t num_kinds = counts.front().size();
  const auto cost_of = [&](std::size_t slot, std::size_t kind) {
    const auto chunk = static_cast<std::int32_t>(kind / 2) * shape.stages;
    return costs.row(slot)[costs.column(chunk, kind % 2 == 1)];
  };

  std::vector<Int128> journeys(num_slots, 0);
  Int128 work = 0;
  for (std::size_t slot = 0; slot < num_slots; ++slot) {
    for (std::int32_t chunk = 0; chunk < shape.num_chunks(); ++chunk) {
      journeys[slot] += costs.row(slot)[costs.column(chunk, false)];
      journeys[slot] += costs.row(slot)[costs.column(chunk, true)];
    }
    for (std::size_t kind = 0; kind < num_kinds; ++kind) work += cost_of(slot, kind);
  }
  std::vector<std::size_t> longest_first(num_slots);
  std::iota(longest_first.begin(), longest_first.end(), std::size_t{0});
  std::stable_sort(longest_first.begin(), longest_first.end(),
                   [&](std::size_t a, std::size_t b) { return journeys[a] > journeys[b]; });

  constexpr std::size_t max_slots = 4;  // the longest journeys decide
  Int128 bound = 0;
  for (std::size_t i = 0; i < std::min(max_slots, num_slots); ++i) {
    const std::size_t slot = longest_first[i];
    Int128 path = work + journeys[slot];
    std::vector<std::vector<Int128>> dearest(num_kinds);  // sums of the others', dearest first
    for (std::size_t kind = 0; kind < num_kinds; ++kind) {
      path -= cost_of(slot, kind);
      std::vector<Int128>& sums = dearest[kind];
      sums.push_back(0);
      for (std::size_t other = 0; other < num_slots; ++other) {
        if (other != slot) sums.push_back(cost_of(other, kind));
      }
      std::sort(sums.begin() + 1, sums.end(), std::greater<>());
      std::partial_sum(sums.begin(), sums.end(), sums.begin());
    }
    Int128 most_missed = 0;
    for (const auto& count : counts) {
      Int128 missed = 0;
      for (std::size_t kind = 0; kind < num_kinds; ++kind) missed += dearest[kind][count[kind]];
      most_missed = std::max(most_missed, missed);
    }
    bound = std::max(bound, path - most_missed);
  }
  return bound + Int128{shape.transfer_ns} * 2 * (shape.num_chunks() - 1);
}

}  // namespace isochron
