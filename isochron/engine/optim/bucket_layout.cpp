#include "isochron/engine/optim/bucket_layout.h"

namespace isochron {

namespace {

// Parameters are views of a bucket, and matrix kernels want them on cache lines: 128 bytes in bf16.
constexpr std::int64_t slice_alignment = 64;
constexpr std::int64_t width_alignment = 16;

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

std::vector<BucketLayout> bucket_layouts(std::span<const Parameter> parameters,
                                         std::int64_t num_ranks, std::int64_t bucket_bytes) {
  std::vector<BucketLayout> layouts;
  std::int64_t end = 0;  // of the last bucket
  for (std::size_t behind = parameters.size(); behind > 0;) {
    std::size_t first = behind - 1;  // of those that stay together
    while (parameters[first].joined) --first;
    std::int64_t count = 0;
    for (std::size_t i = first; i < behind; ++i) count += parameters[i].value.numel();
    const bool has_room =
        !layouts.empty() &&
        (end + count) * static_cast<std::int64_t>(sizeof(float)) <= bucket_bytes &&
        parameters[behind].value.dtype() == parameters[first].value.dtype();
    if (!has_room) {
      layouts.emplace_back();
      end = 0;
    }
    for (std::size_t i = first; i < behind; ++i) {
      const std::int64_t size = parameters[i].value.numel();
      layouts.back().slices.push_back({.parameter = i, .begin = end, .count = size});
      end += size;
    }
    end = round_up(end, slice_alignment);
    layouts.back().width = round_up(end, num_ranks * width_alignment) / num_ranks;
    behind = first;
  }
  return layouts;
}

}  // namespace isochron
