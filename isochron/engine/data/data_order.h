#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace isochron {

// Where a step stands in the data: independent of how many ranks there are.
struct DataCursor {
  std::int64_t epoch = 0;  // from 0
  std::int64_t batch = 0;  // of that epoch, from 0

  bool operator==(const DataCursor&) const = default;
};

// Which rows each step trains on. An epoch is a permutation of all rows by (seed, epoch), equal on
// every machine, cut into whole batches; its last rows wait for another epoch.
class DataOrder {
 public:
  // num_rows >= batch_size >= 1.
  DataOrder(std::int64_t num_rows, std::int64_t batch_size, std::int64_t seed);

  [[nodiscard]] std::int64_t steps_per_epoch() const { return num_rows_ / batch_size_; }
  [[nodiscard]] DataCursor cursor_of(std::int64_t step) const;  // step from 1

  // Valid until the next call.
  [[nodiscard]] std::span<const std::int64_t> rows_of(std::int64_t step);

 private:
  std::int64_t num_rows_;
  std::int64_t batch_size_;
  std::int64_t seed_;
  std::int64_t shuffled_epoch_ = -1;
  std::vector<std::int64_t> permutation_;  // of shuffled_epoch_
};

}  // namespace isochron
