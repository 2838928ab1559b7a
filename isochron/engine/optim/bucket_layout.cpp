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
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const at::Tensor& value = parameters[i].value;
    const bool has_room =
        !layouts.empty() &&
        (end + value.numel()) * static_cast<std::int64_t>(sizeof(float)) <= bucket_bytes &&
        parameters[i + 1].value.dtype() == value.dtype();
    if (!has_room) {
      layouts.emplace_back();
      end = 0;
    }
    layouts.back().slices.push_back({.parameter = i, .begin = end, .count = value.numel()});
    end = round_up(end + value.numel(), slice_alignment);
    layouts.back().width = round_up(end, num_ranks * width_alignment) / num_ranks;
  }
  return layouts;
}

}  // namespace isochron
