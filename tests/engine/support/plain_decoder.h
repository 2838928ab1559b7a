#pragma once

#include <ATen/core/Tensor.h>

#include "isochron/engine/model/decoder.h"
#include "isochron/engine/model/mask_stream.h"

namespace isochron {

// Decoder::hidden_TD() as a textbook has it: torch's operations on whole matrices, gradients by
// autograd, masks number by number from their definition. Shares the parameters and the table of
// angles with the decoder, nothing else.
[[nodiscard]] at::Tensor plain_hidden_TD(const Decoder& decoder, const PackedTokens& input,
                                         const Dropout& dropout = {});

// 0 where an input of the product is dropped, else 1 / (1 - probability): T x `width`, fp64.
[[nodiscard]] at::Tensor plain_mask_TD(const PackedTokens& input, const Dropout& dropout,
                                       std::int64_t layer, MaskedInput product, std::int64_t width);

}  // namespace isochron
