#include "isochron/schedule/known_schedule.h"

#include <tuple>
#include <utility>

#include "isochron/core/memo.h"
#include "isochron/core/require.h"
#include "isochron/schedule/execution_order.h"
#include "isochron/schedule/require_schedule.h"

namespace isochron {

std::shared_ptr<const KnownSchedule> known_schedule(const PipelineShape& shape,
                                                    std::int32_t num_slots, Pass pass) {
  require_schedule(shape, num_slots);
  const auto make = [&] {
    auto known = std::make_shared<KnownSchedule>();
    known->stages = pipeline_schedule(shape, num_slots, pass);
    auto operations = find_execution_order(known->stages, shape, num_slots);
    ISOCHRON_ASSERT(operations.has_value());
    known->operations = *std::move(operations);
    return std::shared_ptr<const KnownSchedule>(std::move(known));
  };
  constexpr std::int64_t small = 4096;  // operations of a pass
  if (std::int64_t{num_slots} * shape.num_chunks() > small) return make();
  using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t, Pass>;
  static Memo<Key, std::shared_ptr<const KnownSchedule>> known(256);
  return known.of({shape.stages, shape.virtual_, shape.group, num_slots, pass}, make);
}

}  // namespace isochron
