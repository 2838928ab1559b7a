// 1F1B in waves. In wave n the stage that has e stages behind it runs the forward of slot n and
// then the backward of slot n - e, whose gradient the next stage has made in the wave before, as
// its last operation. So the times at which the stages are free after a wave are all that later
// waves know of it:
//
//            wave   0      1      2      3      4     the last wave of a forward is m - 1,
//   stage 0        F0     F1     F2 B0  F3 B1  F4 B2  that of a backward m - 1 + e
//   stage 1        F0     F1 B0  F2 B1  F3 B2  F4 B3
//   stage 2        F0 B0  F1 B1  F2 B2  F3 B3  F4 B4
//
// An order is played from the first slot in which it differs from one of the last two, and no
// further than to the wave after which all times are the same again.

#include "isochron/simulate/pipeline_waves.h"

#include <algorithm>

#include "isochron/core/int128.h"
#include "isochron/simulate/wave.h"

namespace isochron {

bool PipelineWaves::can_time(const ChunkCosts& costs, const PipelineShape& shape, Pass pass) {
  if (shape.virtual_ > 1 || pass != Pass::train) return false;
  Int128 sum = 0;
  for (std::size_t row = 0; row < costs.num_rows(); ++row) {
    for (std::int32_t stage = 0; stage < shape.stages; ++stage) {
      sum += Int128{costs.row(row)[costs.column(stage, false)]} +
             costs.row(row)[costs.column(stage, true)] + 2 * Int128{shape.transfer_ns};
    }
  }
  return sum <= max_total_cost;
}

PipelineWaves::PipelineWaves(const ChunkCosts& costs, const PipelineShape& shape)
    : costs_(costs),
      num_stages_(static_cast<std::size_t>(shape.stages)),
      num_slots_(costs.num_rows()),
      num_waves_(num_slots_ == 0 ? 0 : num_slots_ + num_stages_ - 1),
      transfer_(shape.transfer_ns) {
  for (Played& played : played_) {
    played.order.assign(num_slots_, -1);
    played.times.assign((num_waves_ + 1) * num_stages_, 0);
  }
}

void PipelineWaves::run_wave(std::size_t wave, Played& played) {
  const auto row_of = [&](std::size_t slot) {
    return costs_.row(static_cast<std::size_t>(played.order[slot])).data();
  };
  play_wave({.num_stages = num_stages_,
             .num_slots = num_slots_,
             .transfer = transfer_,
             .half = costs_.width() / 2},
            wave, row_of, played.times.data() + wave * num_stages_,
            played.times.data() + (wave + 1) * num_stages_);
  // Of the stages whose backward has a slot: wave - (last - stage) from 0 to num_slots - 1.
  const std::size_t last = num_stages_ - 1;
  const std::size_t first = last > wave ? last - wave : 0;
  const std::size_t end = std::min(num_stages_, num_slots_ + last - wave);
  num_operations_ += static_cast<std::int64_t>(end - first + (wave < num_slots_ ? num_stages_ : 0));
}

Nanoseconds PipelineWaves::makespan(std::span<const std::int32_t> order) {
  if (num_slots_ == 0) return 0;
  const auto num_common = [&](const Played& played) {
    const auto ends = std::mismatch(order.begin(), order.end(), played.order.begin());
    return static_cast<std::size_t>(ends.first - order.begin());
  };
  const std::array<std::size_t, 2> common = {num_common(played_[0]), num_common(played_[1])};
  const std::size_t other = common[latest_] >= common[1 - latest_] ? latest_ : 1 - latest_;
  const Played& base = played_[other];
  const std::size_t num_times = base.times.size();
  if (common[other] == num_slots_) {
    latest_ = other;
    return base.times[num_times - num_stages_];
  }
  std::size_t last_changed = num_slots_ - 1;
  while (order[last_changed] == base.order[last_changed]) --last_changed;

  Played& played = played_[1 - other];
  const auto at_wave = [&](std::size_t wave) {
    return static_cast<std::ptrdiff_t>(wave * num_stages_);
  };
  std::copy(base.times.begin() + at_wave(common[1 - other]),
            base.times.begin() + at_wave(common[other] + 1),
            played.times.begin() + at_wave(common[1 - other]));
  std::copy(order.begin(), order.end(), played.order.begin());
  for (std::size_t wave = common[other]; wave < num_waves_; ++wave) {
    run_wave(wave, played);
    if (wave < last_changed + num_stages_ - 1) continue;
    const auto after = at_wave(wave + 1);
    if (!std::equal(played.times.begin() + after, played.times.begin() + after + at_wave(1),
                    base.times.begin() + after)) {
      continue;
    }
    std::copy(base.times.begin() + after, base.times.end(), played.times.begin() + after);
    break;
  }
  latest_ = 1 - other;
  return played.times[num_times - num_stages_];
}

}  // namespace isochron
