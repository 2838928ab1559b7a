#include "isochron/layout/packed_layout.h"

#include "isochron/core/require.h"

namespace isochron {

namespace {

constexpr const char* where = "packed_layout";

void require_valid(const LayoutOptions& options) {
  require(options.context_size >= 1 && options.context_size <= max_ranks, where,
          "context_size is {}, must be from 1 to {}", options.context_size, max_ranks);
  require(options.context_rank >= 0 && options.context_rank < options.context_size, where,
          "context_rank is {}, must be from 0 to {}", options.context_rank,
          options.context_size - 1);
  require(options.tensor_parallel >= 1 && options.tensor_parallel <= max_ranks, where,
          "tensor_parallel is {}, must be from 1 to {}", options.tensor_parallel, max_ranks);
}

// Appends the padded tokens [first, first + count) of a sequence whose real tokens are `start` to
// `start + length` of the micro-batch.
void append_chunk(PackedLayout& layout, Tokens first, Tokens count, Tokens start, Tokens length) {
  for (Tokens position = first; position < first + count; ++position) {
    const bool is_real = position < length;
    const bool has_next = position + 1 < length;
    layout.positions.push_back(is_real ? static_cast<std::int32_t>(position) : 0);
    layout.source.push_back(is_real ? start + position : -1);
    layout.target.push_back(has_next ? start + position + 1 : -1);
  }
}

}  // namespace

PackedLayout packed_layout(std::span<const Tokens> lengths, const LayoutOptions& options) {
  require_valid(options);
  const std::int64_t size = options.context_size;
  const std::int64_t num_chunks = size > 1 ? 2 * size : 1;
  const std::int64_t multiple = num_chunks * options.tensor_parallel;

  PackedLayout layout;
  layout.cu_seqlens.push_back(0);
  Tokens end = 0;  // of the padded tokens so far
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    require(lengths[i] >= 1 && lengths[i] <= max_length, where,
            "lengths[{}] is {}, must be from 1 to {}", i, lengths[i], max_length);
    end += (lengths[i] + multiple - 1) / multiple * multiple;
    require(end <= max_length, where, "lengths[{}] brings the padded tokens to {}, allowed are {}",
            i, end, max_length);
    layout.cu_seqlens.push_back(static_cast<std::int32_t>(end));
  }
  const auto num_held = static_cast<std::size_t>(end / size);
  layout.positions.reserve(num_held);
  layout.source.reserve(num_held);
  layout.target.reserve(num_held);

  Tokens start = 0;  // of the real tokens of the sequence
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const Tokens padded = layout.cu_seqlens[i + 1] - layout.cu_seqlens[i];
    const Tokens chunk = padded / num_chunks;
    append_chunk(layout, options.context_rank * chunk, chunk, start, lengths[i]);
    if (size > 1) {
      append_chunk(layout, padded - (options.context_rank + 1) * chunk, chunk, start, lengths[i]);
    }
    start += lengths[i];
  }
  return layout;
}

std::vector<std::int64_t> shard_order(std::span<const std::int32_t> cu_seqlens,
                                      std::int32_t context_size) {
  require_valid({.context_size = context_size});
  const std::int64_t size = context_size;
  const std::int64_t num_chunks = size > 1 ? 2 * size : 1;
  const std::int64_t num_held = cu_seqlens.back() / size;
  std::vector<std::int64_t> order;
  order.reserve(static_cast<std::size_t>(cu_seqlens.back()));
  for (std::size_t i = 0; i + 1 < cu_seqlens.size(); ++i) {
    const std::int64_t padded = cu_seqlens[i + 1] - cu_seqlens[i];
    require(padded % num_chunks == 0, where,
            "sequence {} has {} padded tokens, must be a multiple of {}", i, padded, num_chunks);
    const std::int64_t chunk_size = padded / num_chunks;
    for (std::int64_t chunk = 0; chunk < num_chunks; ++chunk) {
      const bool is_first = chunk < size;  // of the two that its rank holds
      const std::int64_t rank = is_first ? chunk : num_chunks - 1 - chunk;
      const std::int64_t begin =
          rank * num_held + cu_seqlens[i] / size + (is_first ? 0 : chunk_size);
      for (std::int64_t k = 0; k < chunk_size; ++k) order.push_back(begin + k);
    }
  }
  return order;
}

}  // namespace isochron
