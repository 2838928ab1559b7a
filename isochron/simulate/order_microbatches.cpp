#include "isochron/simulate/order_microbatches.h"

#include <algorithm>
#include <optional>

#include "isochron/simulate/order_bound.h"
#include "isochron/simulate/order_memory.h"
#include "isochron/simulate/order_search.h"
#include "isochron/simulate/pipeline_time.h"
#include "isochron/simulate/pipeline_waves.h"
#include "isochron/simulate/step_player.h"

namespace isochron {

namespace {

MicrobatchOrder result_of(FoundOrder found, Nanoseconds lower_bound_ns) {
  if (found.score.excess_bytes > 0) {
    return {.status = found.is_best ? Status::infeasible : Status::unknown,
            .lower_bound_ns = lower_bound_ns};
  }
  return {.status = found.is_best ? Status::optimal : Status::feasible,
          .order = std::move(found.order),
          .time_ns = found.score.time_ns,
          .lower_bound_ns = found.is_best ? found.score.time_ns : lower_bound_ns};
}

std::int64_t num_operations(const PipelineShape& shape, Pass pass, std::size_t num_visitors) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(num_visitors) * shape.num_chunks() *
                                       (pass == Pass::train ? 2 : 1));
}

// Orders of the micro-batches of one pipeline.
class PipelineRule final : public OrderRule {
 public:
  PipelineRule(const ChunkCosts& rows, const PipelineShape& shape, Pass pass,
               const PipelineMemory* memory, std::int64_t max_bytes)
      : rows_(rows), memory_(memory), max_bytes_(max_bytes) {
    const std::size_t num_slots = rows.num_rows();
    if (PipelineWaves::can_time(rows, shape, pass)) {
      waves_.emplace(rows, shape);
    } else {
      time_.emplace(shape, static_cast<std::int32_t>(num_slots), pass);
    }
    work_per_order_ = num_operations(shape, pass, num_slots);
  }

  OrderScore score(std::span<const std::int32_t> order) override {
    ++num_orders_;
    return {.excess_bytes = max_bytes_ == 0 ? 0
                                            : std::max<std::int64_t>(
                                                  0, memory_->peak_bytes(order) - max_bytes_),
            .time_ns = waves_ ? waves_->makespan(order) : time_->makespan(rows_, order)};
  }

  // Besides what is simulated an order takes as long as an operation for every fourth slot.
  std::int64_t work() const override {
    const auto num_slots = static_cast<std::int64_t>(rows_.num_rows());
    return waves_ ? waves_->num_operations() + num_orders_ * (num_slots / 4 + 1)
                  : num_orders_ * work_per_order_;
  }

 private:
  const ChunkCosts& rows_;
  const PipelineMemory* memory_;  // none: no limit
  std::int64_t max_bytes_;
  std::optional<PipelineWaves> waves_;
  std::optional<PipelineTime> time_;
  std::int64_t work_per_order_ = 1;
  std::int64_t num_orders_ = 0;
};

}  // namespace

MicrobatchOrder order_microbatches(std::span<const PipelineItem> items, const PipelineShape& shape,
                                   const OrderOptions& options) {
  ChunkCosts rows(shape);
  std::vector<PassCost> costs;
  std::vector<Nanoseconds> sizes;
  std::vector<double> bytes;
  for (const PipelineItem& item : items) {
    rows.add(item.cost);
    costs.push_back(item.cost);
    sizes.push_back(item.cost.forward + item.cost.backward);
    bytes.push_back(item.activation_bytes);
  }
  const Nanoseconds first_bound_ns = options.bound_work > 0
                                         ? order_bound(costs, shape, options.pass)
                                         : quick_order_bound(costs, shape, options.pass);

  const std::int64_t max_bytes = options.max_activation_bytes;
  const bool is_limited = max_bytes > 0;
  std::optional<PipelineMemory> memory;
  if (is_limited) memory.emplace(shape, options.pass, bytes);
  if (is_limited && memory->lower_bound() > max_bytes) {
    return {.status = Status::infeasible, .lower_bound_ns = first_bound_ns};
  }
  PipelineRule rule(rows, shape, options.pass, memory ? &*memory : nullptr, max_bytes);
  const auto start = is_limited ? spread_order(bytes, static_cast<std::size_t>(shape.stages))
                                : std::vector<std::int32_t>{};
  // The further above its bound, the larger detours the search takes: a better one holds it back.
  FoundOrder found = find_order({.sizes = sizes,
                                 .lower_bound_ns = first_bound_ns,
                                 .max_work = options.max_work,
                                 .start = start},
                                rule);
  if (found.is_best || options.bound_work == 0) return result_of(std::move(found), first_bound_ns);
  const Nanoseconds bound_ns = order_bound(costs, shape, options.pass, options.bound_work);
  found.is_best = found.score.excess_bytes == 0 && found.score.time_ns <= bound_ns;
  return result_of(std::move(found), bound_ns);
}

namespace {

PassCost slowest_of(std::span<const PlayedGroup> groups) {
  PassCost slowest;
  for (const PlayedGroup& group : groups) {
    slowest = {.forward = std::max(slowest.forward, group.cost.forward),
               .backward = std::max(slowest.backward, group.cost.backward)};
  }
  return slowest;
}

// If all wait for the slowest group of every slot, the step is one pipeline. Otherwise a rank takes
// at least as long as it would without waiting for the others.
Nanoseconds slots_bound(const StepPlayer& player) {
  std::vector<PassCost> costs;
  if (player.sync() == Sync::microbatch) {
    for (std::int32_t slot = 0; slot < player.num_slots(); ++slot) {
      costs.push_back(slowest_of(player.groups(slot)));
    }
    return order_bound(costs, player.shape(), player.pass());
  }
  PipelineTime time(player.shape(), player.num_slots(), player.pass());
  Nanoseconds bound = 0;
  for (std::int32_t rank = 0; rank < player.num_ranks(); ++rank) {
    costs.clear();
    for (std::int32_t slot = 0; slot < player.num_slots(); ++slot) {
      const PlayedGroup* group = player.find_group(rank, slot);
      if (group != nullptr) costs.push_back(group->cost);
    }
    // A rank that is done before that in some order has no higher bound.
    const bool is_everywhere = std::ssize(costs) == player.num_slots();
    if (is_everywhere && time.makespan(costs) <= bound) continue;
    bound = std::max(bound, quick_order_bound(costs, player.shape(), player.pass()));
  }
  return bound;
}

std::int64_t peak_bytes_bound(const StepPlayer& player, std::int32_t rank) {
  std::vector<double> bytes;
  for (std::int32_t slot = 0; slot < player.num_slots(); ++slot) {
    const PlayedGroup* group = player.find_group(rank, slot);
    bytes.push_back(group == nullptr ? 0 : group->activation_bytes);
  }
  return PipelineMemory(player.shape(), player.pass(), bytes).lower_bound();
}

// Whether every rank has a group in every slot.
bool has_all_ranks(const StepPlayer& player) {
  for (std::int32_t slot = 0; slot < player.num_slots(); ++slot) {
    std::int64_t num_busy = 0;
    for (const PlayedGroup& group : player.groups(slot)) num_busy += group.ranks.size;
    if (num_busy < player.num_ranks()) return false;
  }
  return true;
}

// Orders of the slots of a plan.
class SlotsRule final : public OrderRule {
 public:
  SlotsRule(StepPlayer& player, std::int64_t max_bytes, std::int64_t work_per_order)
      : player_(player),
        max_bytes_(max_bytes),
        work_per_order_(work_per_order),
        paces_(player.shape()) {
    const bool is_one_pipeline = player.sync() == Sync::microbatch && player.shape().stages > 1;
    if (!is_one_pipeline || !has_all_ranks(player)) return;
    pipeline_.emplace(player.shape(), player.num_slots(), player.pass());
    for (std::int32_t slot = 0; slot < player.num_slots(); ++slot) {
      paces_.add(slowest_of(player.groups(slot)));
    }
  }

  OrderScore score(std::span<const std::int32_t> order) override {
    ++num_orders_;
    std::int64_t excess = 0;
    if (max_bytes_ > 0) {
      const std::vector<std::int64_t> peaks = player_.peak_bytes(order);
      excess = std::max(excess, *std::max_element(peaks.begin(), peaks.end()) - max_bytes_);
    }
    return {.excess_bytes = excess, .time_ns = time_of(order)};
  }

  std::int64_t work() const override { return num_orders_ * work_per_order_; }

 private:
  Nanoseconds time_of(std::span<const std::int32_t> order) {
    if (pipeline_) return pipeline_->makespan(paces_, order);
    return player_.play(
        order, [](const PipelineOperation&, const PlayedGroup&, Nanoseconds, Nanoseconds) {});
  }

  StepPlayer& player_;
  std::int64_t max_bytes_;  // 0: no limit
  std::int64_t work_per_order_;
  // Where all ranks wait for the slowest group of every slot they are one pipeline.
  std::optional<PipelineTime> pipeline_;
  ChunkCosts paces_;
  std::int64_t num_orders_ = 0;
};

}  // namespace

MicrobatchOrder order_slots(const StepPlan& plan, std::int64_t max_work) {
  StepPlayer player(plan);
  const Nanoseconds lower_bound_ns = slots_bound(player);
  const std::int64_t max_bytes = plan.options.max_activation_bytes;
  std::vector<Nanoseconds> sizes;
  std::vector<double> bytes;     // of the fullest group
  std::size_t num_visitors = 0;  // a group takes as much work as it has ranks
  for (std::int32_t slot = 0; slot < player.num_slots(); ++slot) {
    const PassCost slowest = slowest_of(player.groups(slot));
    sizes.push_back(slowest.forward + slowest.backward);
    double fullest = 0;
    for (const PlayedGroup& group : player.groups(slot)) {
      fullest = std::max(fullest, group.activation_bytes);
      num_visitors += static_cast<std::size_t>(group.ranks.size);
    }
    bytes.push_back(fullest);
  }
  for (std::int32_t rank = 0; max_bytes > 0 && rank < player.num_ranks(); ++rank) {
    if (peak_bytes_bound(player, rank) > max_bytes) {
      return {.status = Status::infeasible, .lower_bound_ns = lower_bound_ns};
    }
  }
  SlotsRule rule(player, max_bytes, num_operations(player.shape(), player.pass(), num_visitors));
  const auto start = max_bytes > 0
                         ? spread_order(bytes, static_cast<std::size_t>(player.shape().stages))
                         : std::vector<std::int32_t>{};
  return result_of(
      find_order(
          {.sizes = sizes, .lower_bound_ns = lower_bound_ns, .max_work = max_work, .start = start},
          rule),
      lower_bound_ns);
}

}  // namespace isochron
