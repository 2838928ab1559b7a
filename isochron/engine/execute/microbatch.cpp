#include "isochron/engine/execute/microbatch.h"

#include <algorithm>

#include "isochron/core/require.h"

namespace isochron {

namespace {

template <class T>
at::Tensor to_tensor(std::vector<T>& values, at::ScalarType type, at::Device device) {
  const auto size = static_cast<std::int64_t>(values.size());
  return at::from_blob(values.data(), {size}, at::TensorOptions(type)).clone().to(device);
}

// Calls visit(begin, count) for each stretch of [begin, end) whose targets follow one another.
template <class Visit>
void for_each_run(const std::vector<std::int64_t>& target, std::size_t begin, std::size_t end,
                  Visit visit) {
  for (std::size_t next = begin; begin < end; begin = next) {
    next = begin + 1;
    if (target[begin] < 0) continue;
    while (next < end && target[next] == target[next - 1] + 1) ++next;
    visit(begin, next - begin);
  }
}

}  // namespace

Microbatch make_microbatch(const Rows& rows, const ContextGroup& group, std::int32_t rank,
                           Labels labels, at::Device device) {
  Microbatch microbatch;
  std::vector<Tokens> lengths;
  for (const SequenceId sequence : group.sequences) {
    const bool is_row = sequence.index() < rows.tokens.size();
    lengths.push_back(is_row ? rows.batch.lengths[sequence.index()] : padding_row_length);
    ISOCHRON_ASSERT(!is_row || std::ssize(rows.tokens[sequence.index()]) == lengths.back());
  }
  microbatch.layout =
      packed_layout(lengths, {.context_size = static_cast<std::int32_t>(group.ranks.size),
                              .context_rank = static_cast<std::int32_t>(rank - group.ranks.first)});
  const PackedLayout& layout = microbatch.layout;

  const std::size_t num_held = layout.source.size();
  std::vector<std::int64_t> held(num_held, 0);
  std::vector<std::int64_t> label(num_held, -1);
  std::vector<double> weight(num_held, 0);
  std::vector<std::int64_t> row(num_held, -1);
  std::vector<std::int64_t> starts = {0};  // of the shards
  for (std::size_t i = 1; i < layout.cu_seqlens.size(); ++i) {
    starts.push_back(layout.cu_seqlens[i] / group.ranks.size);
  }
  std::int64_t start = 0;  // of the tokens of a sequence, among those of the group
  for (std::size_t i = 0; i < lengths.size(); start += lengths[i++]) {
    const SequenceId sequence = group.sequences[i];
    if (sequence.index() >= rows.tokens.size()) continue;
    const auto index_of = [&](std::int64_t token) {
      return static_cast<std::size_t>(token - start);
    };
    const std::span<const std::int32_t> tokens = rows.tokens[sequence.index()];
    const auto begin = static_cast<std::size_t>(starts[i]);
    const auto end = static_cast<std::size_t>(starts[i + 1]);
    if (labels == Labels::weighted) {
      for_each_run(layout.target, begin, end, [&](std::size_t first, std::size_t count) {
        rows.fill_weights(sequence, index_of(layout.target[first]),
                          std::span(weight).subspan(first, count));
      });
    }
    for (std::size_t t = begin; t < end; ++t) {
      row[t] = rows.ids[sequence.index()];
      if (layout.source[t] >= 0) held[t] = tokens[index_of(layout.source[t])];
      const bool is_asked = labels == Labels::all || weight[t] != 0;
      if (layout.target[t] >= 0 && is_asked) label[t] = tokens[index_of(layout.target[t])];
    }
  }

  std::vector<std::int64_t> position(layout.positions.begin(), layout.positions.end());
  microbatch.input.tokens_T = to_tensor(held, at::kLong, device);
  microbatch.input.positions_T = to_tensor(position, at::kLong, device);
  microbatch.input.cu_seqlens = std::move(starts);
  microbatch.input.lengths.assign(lengths.begin(), lengths.end());
  microbatch.input.rows_T = to_tensor(row, at::kLong, device);
  microbatch.labels_T = to_tensor(label, at::kLong, device);
  microbatch.weights_T = to_tensor(weight, at::kDouble, device);
  return microbatch;
}

}  // namespace isochron
