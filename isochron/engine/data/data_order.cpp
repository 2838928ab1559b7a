#include "isochron/engine/data/data_order.h"

#include <numeric>

#include "isochron/core/random.h"

namespace isochron {

DataOrder::DataOrder(std::int64_t num_rows, std::int64_t batch_size, std::int64_t seed)
    : num_rows_(num_rows), batch_size_(batch_size), seed_(seed) {}

DataCursor DataOrder::cursor_of(std::int64_t step) const {
  return {.epoch = (step - 1) / steps_per_epoch(), .batch = (step - 1) % steps_per_epoch()};
}

std::span<const std::int64_t> DataOrder::rows_of(std::int64_t step) {
  const auto [epoch, batch] = cursor_of(step);
  if (epoch != shuffled_epoch_) {
    permutation_.resize(static_cast<std::size_t>(num_rows_));
    std::iota(permutation_.begin(), permutation_.end(), std::int64_t{0});
    // Mixed twice: neighbouring seeds and epochs share nothing.
    const std::uint64_t of_seed = Random(static_cast<std::uint64_t>(seed_)).next();
    Random(Random(of_seed ^ static_cast<std::uint64_t>(epoch)).next()).shuffle(permutation_);
    shuffled_epoch_ = epoch;
  }
  return std::span(permutation_)
      .subspan(static_cast<std::size_t>(batch * batch_size_),
               static_cast<std::size_t>(batch_size_));
}

}  // namespace isochron
