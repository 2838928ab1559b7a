// Each stage runs as far as it can, stages in turn, until nothing is left. Forwards travel down the
// stages and backwards up, so the turns do as well: either way a slot crosses all stages at once.

#include "isochron/schedule/execution_order.h"

namespace isochron {

namespace {

// How far a slot has come: forwards done, then backwards done on top of all forwards.
std::int32_t place_of(const PipelineOperation& operation, std::int32_t num_chunks) {
  return operation.direction == Direction::forward ? operation.chunk
                                                   : 2 * num_chunks - 1 - operation.chunk;
}

}  // namespace

std::optional<std::vector<PipelineOperation>> find_execution_order(const PipelineSchedule& schedule,
                                                                   const PipelineShape& shape,
                                                                   std::int32_t num_slots) {
  std::vector<std::int32_t> place_of_slot(static_cast<std::size_t>(num_slots), 0);
  std::vector<std::size_t> next(schedule.size(), 0);
  std::size_t num_operations = 0;
  for (const auto& operations : schedule) num_operations += operations.size();

  std::vector<PipelineOperation> order;
  order.reserve(num_operations);
  const auto advance = [&](std::size_t stage) {
    for (; next[stage] < schedule[stage].size(); ++next[stage]) {
      const PipelineOperation& operation = schedule[stage][next[stage]];
      std::int32_t& place = place_of_slot[static_cast<std::size_t>(operation.slot)];
      if (place != place_of(operation, shape.num_chunks())) return;
      ++place;
      order.push_back(operation);
    }
  };
  while (order.size() < num_operations) {
    const std::size_t before = order.size();
    for (std::size_t stage = 0; stage < schedule.size(); ++stage) advance(stage);
    for (std::size_t stage = schedule.size(); stage-- > 0;) advance(stage);
    if (order.size() == before) return std::nullopt;
  }
  return order;
}

bool is_sent_on(const PipelineOperation& operation, const PipelineShape& shape) {
  return operation.direction == Direction::forward ? operation.chunk + 1 < shape.num_chunks()
                                                   : operation.chunk > 0;
}

}  // namespace isochron
