// The event loop of the checker. Every stage has its list of operations, the same for all ranks. A
// slot walks through a chain: forward through all chunks, then backward; an operation can run when
// it is the next of its stage and the next of its slot. A stage that is done with one looks for the
// stage that the slot visits next, so that nothing is looked at twice in vain.
//
//   stage 0   F0 F1    B0 F2    B1 ..        warm-up of one forward, then by turns
//   stage 1      F0 B0    F1 B1    ..        F1 of stage 1 waits for B0, the chain of 1 for F1
//
// Within an operation each group starts when its last member is free at that stage and its input is
// there. If ranks wait for each other after every slot they are all in one group, as slow as the
// slowest; that makes them a single lane.

#include "isochron/check/plan_time.h"

#include <algorithm>
#include <cmath>

#include "isochron/check/plan_cost.h"
#include "isochron/check/result_input.h"

namespace isochron::check {

namespace {

struct Visit {
  std::size_t slot = 0;
  std::int64_t chunk = 0;
  bool is_forward = true;
};

// 1F1B as Megatron-LM runs it, interleaved with virtual stages: `group` slots pass a chunk of the
// stage before its next chunk begins.
class StageOrder {
 public:
  StageOrder(const PipelineShape& shape, std::int64_t num_slots, Pass pass, std::int64_t stage)
      : stages_(shape.stages),
        virtual_(shape.virtual_),
        group_(shape.group),
        stage_(stage),
        num_forwards_(num_slots * shape.virtual_),
        num_visits_(pass == Pass::train ? 2 * num_forwards_ : num_forwards_) {
    const std::int64_t stages_behind = stages_ - 1 - stage;
    const std::int64_t depth =
        virtual_ > 1 ? 2 * stages_behind + (virtual_ - 1) * group_ : stages_behind;
    num_warm_up_ = pass == Pass::train ? std::min(depth, num_forwards_) : num_forwards_;
  }

  [[nodiscard]] std::int64_t size() const { return num_visits_; }

  [[nodiscard]] Visit at(std::int64_t i) const {
    if (i < num_warm_up_) return forward(i);
    const std::int64_t step = i - num_warm_up_;
    if (step >= 2 * (num_forwards_ - num_warm_up_)) return backward(i - num_forwards_);
    return step % 2 == 0 ? forward(num_warm_up_ + step / 2) : backward(step / 2);
  }

 private:
  [[nodiscard]] std::size_t slot(std::int64_t k) const {
    return static_cast<std::size_t>(k / (group_ * virtual_) * group_ + k % group_);
  }
  [[nodiscard]] Visit forward(std::int64_t k) const {
    return {.slot = slot(k), .chunk = k / group_ % virtual_ * stages_ + stage_, .is_forward = true};
  }
  [[nodiscard]] Visit backward(std::int64_t k) const {
    const std::int64_t turn = virtual_ - 1 - k / group_ % virtual_;
    return {.slot = slot(k), .chunk = turn * stages_ + stage_, .is_forward = false};
  }

  std::int64_t stages_, virtual_, group_, stage_, num_forwards_, num_visits_;
  std::int64_t num_warm_up_ = 0;
};

// A cost over the chunks of a model.
class Split {
 public:
  Split(const PlanView& view, Nanoseconds cost) : shape_(view.plan().topology.pipeline) {
    const bool is_train = view.options().pass == Pass::train;
    const double share = view.plan().cost.forward_share;
    forward_ = is_train ? std::llround(share * static_cast<double>(cost)) : cost;
    backward_ = cost - forward_;
  }

  [[nodiscard]] Nanoseconds of(std::int64_t chunk, bool is_forward) const {
    const Nanoseconds whole = is_forward ? forward_ : backward_;
    if (shape_.shares.empty()) return rounded_up(whole, shape_.num_chunks());
    const double share = shape_.shares[static_cast<std::size_t>(chunk)];
    return static_cast<Nanoseconds>(std::ceil(share * static_cast<double>(whole)));
  }

  // Of all visits.
  [[nodiscard]] Nanoseconds total() const {
    Nanoseconds sum = 0;
    for (std::int64_t chunk = 0; chunk < shape_.num_chunks(); ++chunk) {
      sum = added(sum, added(of(chunk, true), of(chunk, false)));
    }
    return sum;
  }

 private:
  const PipelineShape& shape_;
  Nanoseconds forward_ = 0;
  Nanoseconds backward_ = 0;
};

// What a group does in a slot, on lanes that run one thing at a time.
struct Run {
  std::size_t first_lane = 0;
  std::size_t num_lanes = 1;
  Split split;
  Nanoseconds input_at = 0;  // when the next chunk of the chain may begin
};

class EventLoop {
 public:
  EventLoop(const PlanView& view, std::vector<std::vector<Run>> runs, std::size_t num_lanes)
      : shape_(view.plan().topology.pipeline),
        runs_(std::move(runs)),
        num_lanes_(num_lanes),
        free_at_(num_lanes * static_cast<std::size_t>(shape_.stages)),
        next_of_slot_(runs_.size()) {
    for (std::int64_t stage = 0; stage < shape_.stages; ++stage) {
      orders_.emplace_back(shape_, view.num_slots(), view.options().pass, stage);
    }
    next_of_stage_.resize(orders_.size());
  }

  Nanoseconds run() {
    std::vector<std::size_t> waiting;  // stages that may have something to run
    for (std::size_t stage = orders_.size(); stage-- > 0;) waiting.push_back(stage);
    while (!waiting.empty()) {
      const std::size_t stage = waiting.back();
      if (!has_ready(stage)) {
        waiting.pop_back();
        continue;
      }
      const Visit visit = orders_[stage].at(next_of_stage_[stage]);
      play(stage, visit);
      ++next_of_stage_[stage];
      const std::int64_t link = ++next_of_slot_[visit.slot];
      const std::int64_t chunk = std::min(link, 2 * std::int64_t{shape_.num_chunks()} - 1 - link);
      if (chunk >= 0) waiting.push_back(static_cast<std::size_t>(chunk % shape_.stages));
    }
    for (std::size_t stage = 0; stage < orders_.size(); ++stage) {
      ISOCHRON_ASSERT(next_of_stage_[stage] == orders_[stage].size());
    }
    return *std::max_element(free_at_.begin(), free_at_.end());
  }

 private:
  // Place of a visit in the chain of its slot.
  [[nodiscard]] std::int64_t link_of(const Visit& visit) const {
    return visit.is_forward ? visit.chunk : 2 * std::int64_t{shape_.num_chunks()} - 1 - visit.chunk;
  }

  [[nodiscard]] bool has_ready(std::size_t stage) const {
    if (next_of_stage_[stage] == orders_[stage].size()) return false;
    const Visit visit = orders_[stage].at(next_of_stage_[stage]);
    return next_of_slot_[visit.slot] == link_of(visit);
  }

  void play(std::size_t stage, const Visit& visit) {
    const auto lanes = free_at_.begin() + static_cast<std::ptrdiff_t>(stage * num_lanes_);
    const bool is_turn = visit.is_forward && visit.chunk == shape_.num_chunks() - 1;
    for (Run& run : runs_[visit.slot]) {
      const auto first = lanes + static_cast<std::ptrdiff_t>(run.first_lane);
      const auto last = first + static_cast<std::ptrdiff_t>(run.num_lanes);
      const Nanoseconds begin = std::max(run.input_at, *std::max_element(first, last));
      const Nanoseconds end = added(begin, run.split.of(visit.chunk, visit.is_forward));
      std::fill(first, last, end);
      run.input_at = is_turn ? end : added(end, shape_.transfer_ns);
    }
  }

  const PipelineShape& shape_;
  std::vector<std::vector<Run>> runs_;  // of each slot
  std::size_t num_lanes_;
  std::vector<Nanoseconds> free_at_;         // of each stage and lane
  std::vector<std::int64_t> next_of_slot_;   // place in its chain
  std::vector<std::int64_t> next_of_stage_;  // place in its order
  std::vector<StageOrder> orders_;
};

using Costs = std::vector<std::vector<Nanoseconds>>;  // of each slot and group

Nanoseconds step_time(const PlanView& view, const Costs& costs) {
  const bool is_lockstep = view.options().sync == Sync::microbatch;
  std::vector<std::vector<Run>> runs(costs.size());
  for (std::size_t slot = 0; slot < costs.size(); ++slot) {
    if (is_lockstep) {
      const Nanoseconds slowest = *std::max_element(costs[slot].begin(), costs[slot].end());
      runs[slot].push_back(Run{.split = Split(view, slowest)});
      continue;
    }
    for (std::size_t i = 0; i < costs[slot].size(); ++i) {
      const RankRange ranks = view.plan().microbatches[slot][i].ranks;
      runs[slot].push_back(Run{.first_lane = static_cast<std::size_t>(ranks.first),
                               .num_lanes = static_cast<std::size_t>(ranks.size),
                               .split = Split(view, costs[slot][i])});
    }
  }
  const std::size_t num_lanes = is_lockstep ? 1 : static_cast<std::size_t>(view.num_ranks());
  return EventLoop(view, std::move(runs), num_lanes).run();
}

double imbalance(const PlanView& view, const Costs& costs) {
  std::vector<Nanoseconds> busy(static_cast<std::size_t>(view.num_ranks()));
  for (std::size_t slot = 0; slot < costs.size(); ++slot) {
    for (std::size_t i = 0; i < costs[slot].size(); ++i) {
      const Nanoseconds total = Split(view, costs[slot][i]).total();
      const RankRange ranks = view.plan().microbatches[slot][i].ranks;
      for (std::int64_t rank = ranks.first; rank < ranks.first + ranks.size; ++rank) {
        Nanoseconds& sum = busy[static_cast<std::size_t>(rank)];
        sum = added(sum, total);
      }
    }
  }
  double total = 0;
  for (const Nanoseconds each : busy) total += static_cast<double>(each);
  if (total == 0) return 1;
  const auto busiest = static_cast<double>(*std::max_element(busy.begin(), busy.end()));
  return busiest / (total / static_cast<double>(busy.size()));
}

}  // namespace

// By the order of a stage alone: what a rank runs one after the other never overlaps.
std::vector<std::int64_t> peak_activation_bytes(const PlanView& view) {
  const PipelineShape& shape = view.plan().topology.pipeline;
  const double bytes_per_token = view.plan().cost.activation_bytes_per_token;
  const bool is_train = view.options().pass == Pass::train;
  std::vector<std::vector<double>> bytes(view.plan().microbatches.size());  // of whole groups
  for (std::size_t slot = 0; slot < bytes.size(); ++slot) {
    for (const ContextGroup& group : view.plan().microbatches[slot]) {
      const Tokens tokens = view.tokens_per_rank(group.sequences, group.ranks.size);
      bytes[slot].push_back(static_cast<double>(tokens) * bytes_per_token);
    }
  }
  std::vector<std::int64_t> peak(static_cast<std::size_t>(view.num_ranks()));
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    const StageOrder order(shape, view.num_slots(), view.options().pass, stage);
    std::vector<std::int64_t> held(peak.size());
    for (std::int64_t i = 0; i < order.size(); ++i) {
      const Visit visit = order.at(i);
      const double share = shape.shares.empty()
                               ? 1.0 / shape.num_chunks()
                               : shape.shares[static_cast<std::size_t>(visit.chunk)];
      const Slot& groups = view.plan().microbatches[visit.slot];
      for (std::size_t j = 0; j < groups.size(); ++j) {
        const std::int64_t size = rounded(bytes[visit.slot][j] * share, "activation bytes");
        const RankRange ranks = groups[j].ranks;
        for (std::int64_t k = ranks.first; k < ranks.first + ranks.size; ++k) {
          const auto rank = static_cast<std::size_t>(k);
          if (visit.is_forward) {
            held[rank] = added(held[rank], size);
            peak[rank] = std::max(peak[rank], held[rank]);
          }
          if (!visit.is_forward || !is_train) held[rank] -= size;
        }
      }
    }
  }
  return peak;
}

PlanTimes plan_times(const PlanView& view) {
  const double num_operations = 2.0 * static_cast<double>(view.num_slots()) *
                                static_cast<double>(view.num_ranks()) *
                                view.plan().topology.pipeline.num_chunks();
  require(num_operations <= 0x1p28, where, "the plan has {} operations, must have at most 2^28",
          num_operations);
  Costs costs;
  for (const Slot& slot : view.plan().microbatches) {
    costs.emplace_back();
    for (const ContextGroup& group : slot) costs.back().push_back(cost_in_pass(view, group));
  }
  return {.step_ns = step_time(view, costs),
          .imbalance = imbalance(view, costs),
          .peak_activation_bytes = peak_activation_bytes(view)};
}

}  // namespace isochron::check
