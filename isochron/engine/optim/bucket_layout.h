#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "isochron/engine/model/decoder.h"

namespace isochron {

// Where a parameter lies in a bucket: elements [begin, begin + count).
struct BucketSlice {
  std::size_t parameter = 0;  // its index
  std::int64_t begin = 0;
  std::int64_t count = 0;

  bool operator==(const BucketSlice&) const = default;
};

// A flat stretch of whole parameters of one dtype. Rank r owns elements [r * width, (r + 1) *
// width); what no slice covers is zero.
struct BucketLayout {
  std::vector<BucketSlice> slices;
  std::int64_t width = 0;

  bool operator==(const BucketLayout&) const = default;
};

// All parameters, in the reverse of their order, which is that of the forward: the order in which
// a backward completes their gradients. Joined parameters stay together, in their own order. A
// bucket ends where the next parameter would make its fp32
// gradients larger than `bucket_bytes`, so a larger one has a bucket of its own.
[[nodiscard]] std::vector<BucketLayout> bucket_layouts(std::span<const Parameter> parameters,
                                                       std::int64_t num_ranks,
                                                       std::int64_t bucket_bytes);

}  // namespace isochron
