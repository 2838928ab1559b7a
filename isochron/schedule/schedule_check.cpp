#include "isochron/schedule/schedule_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "isochron/schedule/execution_order.h"
#include "isochron/schedule/in_flight.h"

namespace isochron {

namespace {

std::string text_of(const PipelineOperation& operation) {
  return fmt::format("the {} of slot {} on chunk {}",
                     operation.direction == Direction::forward ? "forward" : "backward",
                     operation.slot, operation.chunk);
}

std::optional<std::string> find_misplaced(const PipelineSchedule& schedule,
                                          const PipelineShape& shape, std::int32_t num_slots,
                                          Pass pass) {
  if (schedule.size() != static_cast<std::size_t>(shape.stages)) {
    return fmt::format("there are {} stages, must be {}", schedule.size(), shape.stages);
  }
  const std::int32_t num_chunks = shape.num_chunks();
  const std::int32_t num_directions = pass == Pass::train ? 2 : 1;
  std::vector<bool> is_done(
      static_cast<std::size_t>(num_slots) * static_cast<std::size_t>(num_chunks * num_directions),
      false);
  std::size_t num_done = 0;
  for (std::int32_t stage = 0; stage < shape.stages; ++stage) {
    for (const PipelineOperation& operation : schedule[static_cast<std::size_t>(stage)]) {
      const auto& [slot, chunk, direction] = operation;
      const std::int32_t way = direction == Direction::forward ? 0 : 1;
      if (slot < 0 || slot >= num_slots || chunk < 0 || chunk >= num_chunks ||
          way >= num_directions) {
        return fmt::format("stage {} has {}, which is not in the step", stage, text_of(operation));
      }
      if (chunk % shape.stages != stage) {
        return fmt::format("stage {} has {}, which is on stage {}", stage, text_of(operation),
                           chunk % shape.stages);
      }
      const auto place =
          static_cast<std::size_t>(slot) * static_cast<std::size_t>(num_chunks * num_directions) +
          static_cast<std::size_t>(chunk * num_directions + way);
      if (is_done[place]) return fmt::format("stage {} has {} twice", stage, text_of(operation));
      is_done[place] = true;
      ++num_done;
    }
  }
  if (num_done == is_done.size()) return std::nullopt;
  return fmt::format("{} of {} operations are missing", is_done.size() - num_done, is_done.size());
}

}  // namespace

std::optional<std::string> find_schedule_violation(const PipelineSchedule& schedule,
                                                   const PipelineShape& shape,
                                                   std::int32_t num_slots, Pass pass) {
  if (auto misplaced = find_misplaced(schedule, shape, num_slots, pass)) return misplaced;
  if (!find_execution_order(schedule, shape, num_slots)) {
    return "the stages wait for each other for ever";
  }
  for (std::int32_t stage = 0; stage < shape.stages; ++stage) {
    const std::int64_t num_visits = std::int64_t{num_slots} * shape.virtual_;
    const std::int64_t most =
        pass == Pass::train ? std::min(num_visits, num_warmup_visits(shape, stage) + 1) : 1;
    const std::int64_t peak = peak_in_flight(schedule[static_cast<std::size_t>(stage)], pass,
                                             [](std::int32_t, std::int32_t) { return 1; });
    if (peak > most) {
      return fmt::format("stage {} has {} visits in flight, must be at most {}", stage, peak, most);
    }
  }
  return std::nullopt;
}

}  // namespace isochron
