#pragma once

#include <algorithm>
#include <cstddef>

#include "isochron/core/units.h"

namespace isochron {

// What a wave of 1F1B without virtual stages runs (pipeline_waves.cpp).
struct WaveShape {
  std::size_t num_stages = 1;
  std::size_t num_slots = 1;
  Nanoseconds transfer = 0;
  std::size_t half = 1;  // columns of a pass in a row of costs: one if all stages are equal
};

// When the stages are free after a wave, from when they are before it, which may be the same place.
// `row_of` has the costs of a slot, as ChunkCosts keeps them.
template <class RowOf>
void play_wave(const WaveShape& shape, std::size_t wave, const RowOf& row_of,
               const Nanoseconds* before, Nanoseconds* after) {
  const std::size_t last = shape.num_stages - 1;
  const bool is_equal = shape.half == 1;
  const bool has_forward = wave < shape.num_slots;
  const Nanoseconds* forwards = has_forward ? row_of(wave) : nullptr;
  Nanoseconds end = -shape.transfer;  // of the forward, stage by stage
  for (std::size_t stage = 0; stage <= last; ++stage) {
    Nanoseconds free = before[stage];
    if (has_forward) {
      end = std::max(free, end + shape.transfer) + forwards[is_equal ? 0 : stage];
      free = end;
    }
    if (wave + stage >= last && wave + stage - last < shape.num_slots) {
      const Nanoseconds* backwards = row_of(wave + stage - last) + shape.half;
      if (stage < last) free = std::max(free, before[stage + 1] + shape.transfer);
      free += backwards[is_equal ? 0 : stage];
    }
    after[stage] = free;
  }
}

}  // namespace isochron
