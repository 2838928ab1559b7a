#include "isochron/plan/plan_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "isochron/core/int128.h"
#include "isochron/plan/plan_work.h"
#include "isochron/simulate/chunk_cost.h"

namespace isochron {

namespace {

Tokens tokens_per_rank(const StepPlan& plan, const Problem& problem, ItemId item,
                       std::int32_t size) {
  Tokens tokens = 0;
  for (const SequenceId id : problem.sequences_of(item)) {
    tokens += padded_length(problem.work().lengths[id.index()], size, plan.options.tensor_parallel);
  }
  return tokens / size;
}

// Sizes of the groups that an item may run on: all ranks for one that the capacity of no other
// holds, if that is what oversized items do.
std::vector<std::int32_t> sizes_of(const StepPlan& plan, const Problem& problem, ItemId item) {
  std::vector<std::int32_t> sizes(problem.sizes().begin(), problem.sizes().end());
  const bool is_fixed = context_mode(plan.options.context).kind == ContextMode::Kind::fixed;
  const bool is_held = std::any_of(sizes.begin(), sizes.end(), [&](std::int32_t size) {
    return tokens_per_rank(plan, problem, item, size) <= plan.topology.capacity;
  });
  if (is_held || is_fixed || plan.options.oversize != Oversize::alone) return sizes;
  return {plan.topology.ranks};
}

// What an item alone holds at least on its fullest stage, on whichever group: at its last chunk, in
// a training pass, all chunks of a stage hold it.
std::int64_t least_bytes(const StepPlan& plan, const Problem& problem, ItemId item) {
  const PipelineShape& shape = plan.topology.pipeline;
  std::int64_t least = max_total_cost + 1;
  for (const std::int32_t size : sizes_of(plan, problem, item)) {
    const double bytes = static_cast<double>(tokens_per_rank(plan, problem, item, size)) *
                         plan.cost.activation_bytes_per_token;
    Int128 fullest = 0;
    for (std::int32_t stage = 0; stage < shape.stages; ++stage) {
      Int128 held = 0;
      for (std::int32_t chunk = stage; chunk < shape.num_chunks(); chunk += shape.stages) {
        const std::int64_t part = chunk_bytes(shape, bytes, chunk);
        held = plan.options.pass == Pass::train ? held + part : std::max<Int128>(held, part);
      }
      fullest = std::max(fullest, held);
    }
    least = static_cast<std::int64_t>(std::min<Int128>(least, fullest));
  }
  return least;
}

// What some rank holds at least on some stage of a training pass without virtual stages. Every slot
// has an item, and a stage holds as many slots at a time as there are stages from it on, or all of
// them: the longest item with as many others, at best the shortest, all spread evenly over the
// ranks.
struct InFlight {
  std::int64_t bytes = 0;
  std::int32_t num_items = 0;
};

InFlight least_in_flight(const StepPlan& plan, const Problem& problem) {
  const PipelineShape& shape = plan.topology.pipeline;
  InFlight most;
  if (plan.options.pass == Pass::forward || shape.virtual_ > 1) return most;
  std::vector<Tokens> ascending;  // on all ranks of the group that pads an item least
  for (ItemId item = 0; item < problem.num_items(); ++item) {
    Tokens least = std::numeric_limits<Tokens>::max();
    for (const std::int32_t size : sizes_of(plan, problem, item)) {
      least = std::min(least, tokens_per_rank(plan, problem, item, size) * size);
    }
    ascending.push_back(least);
  }
  std::sort(ascending.begin(), ascending.end());
  for (std::int32_t stage = 0; stage < shape.stages; ++stage) {
    const std::int32_t width = std::min(shape.stages - stage, problem.num_items());
    double tokens = static_cast<double>(ascending.back());
    for (std::int32_t i = 0; i + 1 < width; ++i) {
      tokens += static_cast<double>(ascending[static_cast<std::size_t>(i)]);
    }
    const double share =
        shape.shares.empty() ? 1.0 / shape.stages : shape.shares[static_cast<std::size_t>(stage)];
    const double bytes =
        tokens * plan.cost.activation_bytes_per_token * share / problem.num_ranks();
    // Every micro-batch is rounded, by half a byte at most, and so is this.
    const double least = std::floor(bytes * (1 - 1e-12) - 0.5 * width);
    if (least > static_cast<double>(most.bytes)) {
      const double cut = std::min(least, static_cast<double>(max_total_cost));
      most = {.bytes = static_cast<std::int64_t>(cut), .num_items = width};
    }
  }
  return most;
}

}  // namespace

std::optional<std::string> find_memory_obstacle(const StepPlan& plan, const Problem& problem) {
  const std::int64_t limit = plan.options.max_activation_bytes;
  for (ItemId item = 0; limit > 0 && item < problem.num_items(); ++item) {
    const std::int64_t least = least_bytes(plan, problem, item);
    if (least <= limit) continue;
    return fmt::format(
        "{} holds at least {} activation bytes on a stage, max_activation_bytes is {}",
        item_text(plan, problem.sequences_of(item)), least, limit);
  }
  const InFlight least = limit > 0 ? least_in_flight(plan, problem) : InFlight{};
  if (least.bytes <= limit) return std::nullopt;
  return fmt::format(
      "{} micro-batches in flight hold at least {} activation bytes on a stage of some rank, "
      "max_activation_bytes is {}",
      least.num_items, least.bytes, limit);
}

Topology within_memory(const StepPlan& plan) {
  Topology topology = plan.topology;
  const double limit = static_cast<double>(plan.options.max_activation_bytes);
  const double bytes = plan.cost.activation_bytes_per_token;
  if (limit == 0 || bytes <= 0 || topology.pipeline.stages > 1) return topology;
  const double tokens = std::floor((limit + 0.5) / bytes);
  if (tokens >= static_cast<double>(topology.capacity)) return topology;
  topology.capacity = static_cast<Tokens>(tokens);
  const auto is_over = [&] {
    return std::llround(static_cast<double>(topology.capacity) * bytes) >
           plan.options.max_activation_bytes;
  };
  while (topology.capacity > 1 && is_over()) --topology.capacity;
  topology.capacity = std::max<Tokens>(1, topology.capacity);
  return topology;
}

std::int64_t memory_excess(const StepPlan& plan) {
  const std::int64_t limit = plan.options.max_activation_bytes;
  const auto& peaks = plan.peak_activation_bytes;
  const std::int64_t fullest = *std::max_element(peaks.begin(), peaks.end());
  return limit == 0 ? 0 : std::max<std::int64_t>(0, fullest - limit);
}

std::optional<std::string> find_memory_excess(const StepPlan& plan) {
  const std::int64_t limit = plan.options.max_activation_bytes;
  const auto& peaks = plan.peak_activation_bytes;
  const auto fullest = std::max_element(peaks.begin(), peaks.end());
  if (limit == 0 || *fullest <= limit) return std::nullopt;
  return fmt::format(
      "rank {} holds {} activation bytes in the best plan found, more than "
      "max_activation_bytes {}",
      fullest - peaks.begin(), *fullest, limit);
}

}  // namespace isochron
