// All ranks follow one schedule, so its operations are played in one order in which they can run;
// in each, the groups of its slot run side by side. A group begins when its input has arrived and
// its last member is free at that stage, and ends for all members at once: a pass over operations,
// groups and members is the whole simulation. What a stage holds depends only on that order.

#include "isochron/simulate/simulate.h"

#include <algorithm>
#include <cmath>

#include "isochron/core/require.h"
#include "isochron/schedule/execution_order.h"
#include "isochron/simulate/chunk_cost.h"

namespace isochron {

namespace {

constexpr std::string_view where = "simulate";

// A group of a slot on its way through the chunks.
struct Traveller {
  RankRange ranks;
  std::int32_t position = 0;    // in its slot
  std::size_t own_row = 0;      // of the costs: how long its operations take
  std::size_t pace_row = 0;     // how long they keep its ranks: the slowest group's, if all wait
  double activation_bytes = 0;  // of each member, over all chunks
  Nanoseconds ready_ns = 0;
};

Nanoseconds later(Nanoseconds time, Nanoseconds delay) {
  require(delay <= max_total_cost - time, where, "the step takes more than 2^62");
  return time + delay;
}

double activation_bytes(const StepPlan& plan, const ContextGroup& group) {
  Tokens tokens = 0;
  for (const SequenceId id : group.sequences) {
    const Tokens length = id.index() < plan.batch.lengths.size() ? plan.batch.lengths[id.index()]
                                                                 : padding_row_length;
    tokens += padded_length(length, group.ranks.size, plan.options.tensor_parallel);
  }
  return static_cast<double>(tokens / group.ranks.size) * plan.cost.activation_bytes_per_token;
}

class Player {
 public:
  explicit Player(const StepPlan& plan)
      : plan_(plan),
        shape_(plan.topology.pipeline),
        num_stages_(static_cast<std::size_t>(shape_.stages)),
        waits_(plan.options.sync == Sync::microbatch),
        costs_(shape_),
        free_(static_cast<std::size_t>(plan.topology.ranks) * num_stages_, 0),
        held_bytes_(free_.size(), 0) {
    timeline_.busy_ns.assign(free_.size(), 0);
    timeline_.peak_activation_bytes.assign(static_cast<std::size_t>(plan.topology.ranks), 0);
    for (const Slot& slot : plan.microbatches) add(slot);
  }

  Timeline play() {
    const auto num_slots = static_cast<std::int32_t>(plan_.microbatches.size());
    const PipelineSchedule schedule = pipeline_schedule(shape_, num_slots, plan_.options.pass);
    const auto order = find_execution_order(schedule, shape_, num_slots);
    ISOCHRON_ASSERT(order.has_value());
    for (const PipelineOperation& operation : *order) {
      for (Traveller& group : slots_[static_cast<std::size_t>(operation.slot)]) {
        run(operation, group);
      }
      if (waits_ && shape_.stages == 1 && is_last_of_slot(operation)) meet();
    }
    sort_spans();
    return std::move(timeline_);
  }

 private:
  void add(const Slot& slot) {
    auto& travellers = slots_.emplace_back();
    Nanoseconds slowest = -1;
    std::size_t slowest_row = 0;
    for (const ContextGroup& group : slot) {
      const Nanoseconds cost = group_cost(plan_, group);
      const std::size_t row = costs_.num_rows();
      costs_.add(plan_.options.pass == Pass::train ? split_cost(cost, plan_.cost.forward_share)
                                                   : PassCost{.forward = cost});
      if (cost > slowest) {
        slowest = cost;
        slowest_row = row;
      }
      travellers.push_back({.ranks = group.ranks,
                            .position = static_cast<std::int32_t>(travellers.size()),
                            .own_row = row,
                            .pace_row = row,
                            .activation_bytes = activation_bytes(plan_, group)});
    }
    if (!waits_ || shape_.stages == 1) return;
    for (Traveller& group : travellers) group.pace_row = slowest_row;
  }

  void run(const PipelineOperation& operation, Traveller& group) {
    const bool is_backward = operation.direction == Direction::backward;
    const std::int32_t stage = operation.chunk % shape_.stages;
    const std::size_t column = costs_.column(operation.chunk, is_backward);
    const auto place_of = [&](std::int64_t rank) {
      return static_cast<std::size_t>(rank) * num_stages_ + static_cast<std::size_t>(stage);
    };
    const std::int64_t last_rank = group.ranks.first + group.ranks.size - 1;

    Nanoseconds begin = group.ready_ns;
    for (std::int64_t rank = group.ranks.first; rank <= last_rank; ++rank) {
      begin = std::max(begin, free_[place_of(rank)]);
    }
    const Nanoseconds own = costs_.row(group.own_row)[column];
    const Nanoseconds end = later(begin, own);
    const Nanoseconds free_again = later(begin, costs_.row(group.pace_row)[column]);
    group.ready_ns =
        is_sent_on(operation, shape_) ? later(free_again, shape_.transfer_ns) : free_again;
    timeline_.step_ns = std::max(timeline_.step_ns, free_again);

    const std::int64_t bytes = bytes_of(group, operation.chunk);
    for (std::int64_t rank = group.ranks.first; rank <= last_rank; ++rank) {
      const std::size_t place = place_of(rank);
      free_[place] = free_again;
      timeline_.busy_ns[place] += own;
      timeline_.spans.push_back({.rank = static_cast<std::int32_t>(rank),
                                 .stage = stage,
                                 .operation = operation,
                                 .group = group.position,
                                 .begin_ns = begin,
                                 .end_ns = end});
      hold(static_cast<std::size_t>(rank), place, bytes, operation.direction);
    }
  }

  void hold(std::size_t rank, std::size_t place, std::int64_t bytes, Direction direction) {
    if (direction == Direction::backward) {
      held_bytes_[place] -= bytes;
      return;
    }
    require(bytes <= max_total_cost - held_bytes_[place], where,
            "the activations of rank {} take more than 2^62 bytes", rank);
    std::int64_t& peak = timeline_.peak_activation_bytes[rank];
    peak = std::max(peak, held_bytes_[place] + bytes);
    if (plan_.options.pass == Pass::train) held_bytes_[place] += bytes;
  }

  std::int64_t bytes_of(const Traveller& group, std::int32_t chunk) const {
    const double bytes = group.activation_bytes * chunk_share(shape_, chunk);
    require(bytes <= static_cast<double>(max_total_cost), where,
            "the activations of rank {} take more than 2^62 bytes", group.ranks.first);
    return std::llround(bytes);
  }

  bool is_last_of_slot(const PipelineOperation& operation) const {
    return plan_.options.pass == Pass::forward || operation.direction == Direction::backward;
  }

  // All ranks wait for the last one.
  void meet() { std::fill(free_.begin(), free_.end(), timeline_.step_ns); }

  // By rank and stage. Each of them was played in its own order, which a stable sort keeps.
  void sort_spans() {
    std::stable_sort(timeline_.spans.begin(), timeline_.spans.end(),
                     [](const TimelineSpan& a, const TimelineSpan& b) {
                       return a.rank != b.rank ? a.rank < b.rank : a.stage < b.stage;
                     });
  }

  const StepPlan& plan_;
  const PipelineShape& shape_;
  std::size_t num_stages_;
  bool waits_;
  ChunkCosts costs_;
  std::vector<std::vector<Traveller>> slots_;
  std::vector<Nanoseconds> free_;         // of each rank and stage
  std::vector<std::int64_t> held_bytes_;  // of each rank and stage
  Timeline timeline_;
};

}  // namespace

Timeline simulate(const StepPlan& plan) { return Player(plan).play(); }

}  // namespace isochron
