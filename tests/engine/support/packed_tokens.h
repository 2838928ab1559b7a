#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <span>
#include <vector>

#include "isochron/engine/model/decoder.h"

namespace isochron {

// Sequences one behind the other, with the positions of each from 0 on.
inline PackedTokens packed(std::span<const std::vector<std::int64_t>> sequences) {
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> positions;
  PackedTokens input = {.tokens_T = {}, .positions_T = {}, .cu_seqlens = {0}};
  for (const auto& sequence : sequences) {
    for (std::size_t i = 0; i < sequence.size(); ++i) {
      tokens.push_back(sequence[i]);
      positions.push_back(static_cast<std::int64_t>(i));
    }
    input.cu_seqlens.push_back(static_cast<std::int64_t>(tokens.size()));
  }
  input.tokens_T = at::tensor(tokens, at::kLong);
  input.positions_T = at::tensor(positions, at::kLong);
  return input;
}

// The token that follows, -1 behind the last of each sequence.
inline at::Tensor next_tokens(const PackedTokens& input) {
  at::Tensor labels = at::full_like(input.tokens_T, -1);
  for (std::size_t i = 0; i + 1 < input.cu_seqlens.size(); ++i) {
    const std::int64_t begin = input.cu_seqlens[i];
    const std::int64_t count = input.cu_seqlens[i + 1] - begin - 1;
    labels.narrow(0, begin, count).copy_(input.tokens_T.narrow(0, begin + 1, count));
  }
  return labels;
}

}  // namespace isochron
