// A path runs on the first stage up to the first forward of a slot, goes with the slot through all
// chunks, down and up, and runs on the first stage again. It misses what that stage does meanwhile.
// Which operations these are depends on the place of the slot in the order, which slots they belong
// to does not matter: of each chunk and direction so many are missed, and the dearest are the most.
// The place where most is missed bounds all others.

#include "isochron/simulate/journey_bound.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "isochron/schedule/pipeline_schedule.h"

namespace isochron {

namespace {

// How many operations of each kind the first stage runs between the first forward and the last
// backward of a slot, for each place of the slot. A kind is a chunk of the stage and a direction.
std::vector<std::vector<std::size_t>> missed_counts(const PipelineShape& shape,
                                                    std::size_t num_slots) {
  const auto operations =
      first_stage_schedule(shape, static_cast<std::int32_t>(num_slots), Pass::train);
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

// What operations of one kind cost, with sums of the dearest.
class DearestFirst {
 public:
  explicit DearestFirst(std::vector<Nanoseconds> costs)
      : costs_(std::move(costs)), place_of_(costs_.size()), sums_(costs_.size() + 1, 0) {
    std::vector<std::size_t> order(costs_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return costs_[a] > costs_[b]; });
    for (std::size_t place = 0; place < order.size(); ++place) {
      place_of_[order[place]] = place;
      sums_[place + 1] = sums_[place] + costs_[order[place]];
    }
  }

  [[nodiscard]] Nanoseconds cost(std::size_t slot) const { return costs_[slot]; }
  [[nodiscard]] Int128 sum() const { return sums_.back(); }
  // Of so many of the others, the dearest.
  [[nodiscard]] Int128 sum_without(std::size_t slot, std::size_t count) const {
    return place_of_[slot] >= count ? sums_[count] : sums_[count + 1] - costs_[slot];
  }

 private:
  std::vector<Nanoseconds> costs_;     // by slot
  std::vector<std::size_t> place_of_;  // of each slot
  std::vector<Int128> sums_;
};

}  // namespace

Int128 journey_bound(const ChunkCosts& costs, const PipelineShape& shape) {
  const std::size_t num_slots = costs.num_rows();
  const auto counts = missed_counts(shape, num_slots);
  std::vector<DearestFirst> kinds;
  Int128 work = 0;
  for (std::size_t kind = 0; kind < counts.front().size(); ++kind) {
    const auto chunk = static_cast<std::int32_t>(kind / 2) * shape.stages;
    std::vector<Nanoseconds> of_kind;
    for (std::size_t slot = 0; slot < num_slots; ++slot) {
      of_kind.push_back(costs.row(slot)[costs.column(chunk, kind % 2 == 1)]);
    }
    work += kinds.emplace_back(std::move(of_kind)).sum();
  }
  std::vector<Int128> journeys(num_slots, 0);
  for (std::size_t slot = 0; slot < num_slots; ++slot) {
    for (std::int32_t chunk = 0; chunk < shape.num_chunks(); ++chunk) {
      journeys[slot] += costs.row(slot)[costs.column(chunk, false)];
      journeys[slot] += costs.row(slot)[costs.column(chunk, true)];
    }
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
    for (const DearestFirst& kind : kinds) path -= kind.cost(slot);
    Int128 most_missed = 0;
    for (const auto& count : counts) {
      Int128 missed = 0;
      for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
        missed += kinds[kind].sum_without(slot, count[kind]);
      }
      most_missed = std::max(most_missed, missed);
    }
    bound = std::max(bound, path - most_missed);
  }
  return bound + Int128{shape.transfer_ns} * 2 * (shape.num_chunks() - 1);
}

}  // namespace isochron
