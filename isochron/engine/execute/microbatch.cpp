#include "isochron/engine/execute/microbatch.h"

#include <algorithm>

#include "isochron/core/require.h"
#include "isochron/layout/packed_layout.h"

namespace isochron {

namespace {

template <class T>
at::Tensor to_tensor(std::vector<T>& values, at::ScalarType type, at::Device device) {
  const auto size = static_cast<std::int64_t>(values.size());
  return at::from_blob(values.data(), {size}, at::TensorOptions(type)).clone().to(device);
}

}  // namespace

Microbatch make_microbatch(const Rows& rows, const ContextGroup& group, Labels labels,
                           at::Device device) {
  std::vector<Tokens> lengths;
  std::vector<std::int64_t> tokens;  // of the group, concatenated
  std::vector<double> weights;
  std::vector<std::int64_t> rows_of_tokens;
  for (const SequenceId sequence : group.sequences) {
    const bool is_row = sequence.index() < rows.tokens.size();
    const auto length = static_cast<std::size_t>(is_row ? rows.batch.lengths[sequence.index()]
                                                        : padding_row_length);
    const std::size_t start = tokens.size();
    lengths.push_back(static_cast<Tokens>(length));
    tokens.resize(start + length, 0);
    weights.resize(start + length, 0);
    rows_of_tokens.resize(start + length, is_row ? rows.ids[sequence.index()] : -1);
    if (!is_row) continue;
    ISOCHRON_ASSERT(rows.tokens[sequence.index()].size() == length);
    std::ranges::copy(rows.tokens[sequence.index()], tokens.data() + start);
    if (labels == Labels::weighted) {
      rows.fill_weights(sequence, std::span(weights).subspan(start, length));
    }
  }

  const PackedLayout layout = packed_layout(lengths);
  const std::size_t num_held = layout.source.size();
  std::vector<std::int64_t> held(num_held, 0);
  std::vector<std::int64_t> label(num_held, -1);
  std::vector<double> weight(num_held, 0);
  std::vector<std::int64_t> row(num_held, -1);
  std::vector<std::int64_t> position(layout.positions.begin(), layout.positions.end());
  for (std::size_t i = 0; i < num_held; ++i) {
    if (layout.source[i] >= 0) {
      held[i] = tokens[static_cast<std::size_t>(layout.source[i])];
      row[i] = rows_of_tokens[static_cast<std::size_t>(layout.source[i])];
    }
    if (layout.target[i] < 0) continue;
    const auto target = static_cast<std::size_t>(layout.target[i]);
    weight[i] = weights[target];
    if (labels == Labels::all || weight[i] != 0) label[i] = tokens[target];
  }

  Microbatch microbatch;
  microbatch.input.tokens_T = to_tensor(held, at::kLong, device);
  microbatch.input.positions_T = to_tensor(position, at::kLong, device);
  microbatch.input.cu_seqlens.assign(layout.cu_seqlens.begin(), layout.cu_seqlens.end());
  microbatch.input.rows_T = to_tensor(row, at::kLong, device);
  microbatch.labels_T = to_tensor(label, at::kLong, device);
  microbatch.weights_T = to_tensor(weight, at::kDouble, device);
  return microbatch;
}

}  // namespace isochron
