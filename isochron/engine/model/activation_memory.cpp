// The peak lies in the backward of the last layer or of the norm behind it, where the tensors of
// all layers are still there. Each goes as soon as it has been used, so the working set of a part
// stands against what the parts before it have freed:
//
//   norm        gradients of result and input, the input; copies of them in fp32
//   mlp         gradients of its result and of the product, the product itself if it is not kept
//   attention   gradients of the results of both blocks, of the heads' output and of q, k and v,
//               these once more from the kernel, and all of them again while ranks exchange heads;
//               nothing of the mlp
//
// With Recompute::full the inputs of the layers stand beside one layer with its parts as above.

#include "isochron/engine/model/activation_memory.h"

#include <algorithm>

namespace isochron {

namespace {

// Bytes of the tensors of a layer, per token, by what they hold.
struct Widths {
  std::int64_t hidden, ffn;
  std::int64_t query;         // the query heads
  std::int64_t key_value;     // the key and value heads
  std::int64_t rotated;       // normed query and key heads; 0 where they are rotated in place
  std::int64_t rstd, lse;     // of a row, of its heads
  std::int64_t norm_scratch;  // of the backward of a norm
  std::int64_t mlp_scratch;   // of the backward of the SwiGLU product
  std::int64_t kernel;        // gradients of q, k and v as the attention kernel makes them
  std::int64_t exchange;     // q, k, v, output and gradients of a share of the heads, of all tokens
  std::int64_t bookkeeping;  // token, label, weight, angles

  Widths(const ModelShape& shape, const ActivationOptions& options) {
    const std::int64_t element_bytes = options.element_bytes;
    const std::int64_t wide_bytes = std::max<std::int64_t>(element_bytes, 4);  // of sums
    const std::int64_t kv_heads = element_bytes * shape.kv_heads * shape.head_dim;
    hidden = element_bytes * shape.hidden;
    ffn = element_bytes * shape.ffn;
    query = element_bytes * shape.heads * shape.head_dim;
    key_value = 2 * kv_heads;
    rotated = shape.qk_norm ? query + kv_heads : 0;
    rstd = wide_bytes;
    lse = wide_bytes * shape.heads;
    exchange = options.in_groups ? 4 * query + 2 * key_value : 0;
    bookkeeping = 32 + wide_bytes * shape.head_dim;
    if (element_bytes < 4) {
      norm_scratch = 3 * wide_bytes * shape.hidden;
      mlp_scratch = ffn;
      // Made in fp32 on the CPU; a copy for each query head, and q in fp32, on CUDA.
      kernel = std::max(3 * (query + key_value), 5 * query + key_value);
    } else {
      norm_scratch = hidden + hidden / 32;  // the result, and sums over blocks of 32 rows
      mlp_scratch = 0;
      kernel = query + key_value;
    }
  }
};

ActivationBytes layer_bytes(const Widths& width, bool keeps_all) {
  const std::int64_t qkv = width.query + width.key_value;
  const std::int64_t attention_kept = width.hidden + width.rstd + qkv + width.query + width.lse +
                                      (keeps_all ? width.hidden + width.rotated : 0);
  const std::int64_t mlp_kept =
      width.hidden + width.rstd + 2 * width.ffn + (keeps_all ? width.hidden + width.ffn : 0);

  const std::int64_t product = width.hidden + width.ffn + width.mlp_scratch -  //
                               (keeps_all ? width.ffn : 0);
  const std::int64_t mlp_norm = 2 * width.hidden + width.norm_scratch - 2 * width.ffn;
  const std::int64_t heads = 2 * width.hidden + width.query + qkv + width.kernel + width.exchange +
                             (keeps_all ? 0 : width.rotated) - mlp_kept;
  const std::int64_t attention_norm =
      3 * width.hidden + width.norm_scratch - width.query - mlp_kept;
  return {.kept = attention_kept + mlp_kept,
          .working = std::max({product, mlp_norm, heads, attention_norm})};
}

}  // namespace

ActivationBytes activation_bytes(const ModelShape& shape, const ActivationOptions& options) {
  require_valid(shape);
  const Widths width(shape, options);
  const ActivationBytes layer = layer_bytes(width, options.recompute == Recompute::none);
  const std::int64_t final_norm = 2 * width.hidden + width.norm_scratch;
  if (options.recompute == Recompute::full) {
    return {.kept = width.bookkeeping + shape.layers * width.hidden,
            .working = std::max(final_norm, layer.kept - width.hidden + layer.working)};
  }
  return {.kept = width.bookkeeping + shape.layers * layer.kept,
          .working = std::max(final_norm, layer.working)};
}

std::int64_t head_bytes(const ModelShape& shape, Tokens chunk, std::int64_t element_bytes) {
  require_valid(shape);
  const std::int64_t weight = shape.vocabulary * shape.hidden;
  // In fp32, and in the type of the weights before or after that.
  const std::int64_t both = element_bytes < 4 ? 4 + element_bytes : element_bytes;
  const std::int64_t states = 2 * element_bytes * shape.hidden;  // of a token, and their gradient
  return std::max(chunk * (both * shape.vocabulary + states) +
                      std::max<std::int64_t>(4, element_bytes) * weight,
                  both * weight);
}

}  // namespace isochron
