#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "isochron/cost/memory.h"
#include "isochron/engine/model/dropout.h"
#include "isochron/engine/model/model_config.h"

// T packed tokens, D hidden width, V vocabulary.

namespace isochron {

class Attention;

// The tokens of a micro-batch that a rank holds, sequences or their shards one behind the other.
struct PackedTokens {
  at::Tensor tokens_T;                     // int64, on the device of the model
  at::Tensor positions_T;                  // int64, on the device: index in the own sequence
  std::vector<std::int64_t> cu_seqlens;    // starts of what is held of each sequence, and T
  std::vector<std::int64_t> lengths = {};  // of the sequences; empty: those of cu_seqlens
  at::Tensor rows_T = {};  // int64, on the device: row of each token in its data set; for dropout
};

// A trained tensor under its Hugging Face name. `value` is a leaf that requires a gradient. Write
// to it in place: weights that one matrix product takes together share an allocation.
struct Parameter {
  std::string name;
  at::Tensor value;
  // It lies in memory directly behind the parameter before it, because one product takes both:
  // whoever moves one moves them together.
  bool joined = false;
};

struct DecoderOptions {
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;  // of weights and computation
  Recompute recompute = Recompute::none;
};

// A decoder-only transformer: embedding, layers of grouped-query attention and SwiGLU, final norm.
// The output head belongs to the loss (isochron/engine/loss), which takes head_weight().
class Decoder {
 public:
  // Weights are not initialised: load_decoder() of hf_folder.h fills them.
  Decoder(const ModelConfig& config, const DecoderOptions& options);
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;
  ~Decoder();

  [[nodiscard]] const ModelConfig& config() const;
  [[nodiscard]] const DecoderOptions& options() const;

  // In the order of the forward: embedding, layers, norm, head. A tied head is not listed again.
  [[nodiscard]] const std::vector<Parameter>& parameters() const;

  // Hidden states after the final norm. Sequences do not see each other; a result does not depend
  // on what else is packed beside a sequence, to rounding.
  //
  // Throws std::invalid_argument unless `cu_seqlens` ascends from 0 to T and tokens, positions and,
  // with dropout, rows are T numbers each.
  [[nodiscard]] at::Tensor hidden_TD(const PackedTokens& input, const Dropout& dropout = {}) const;
  // With another attention (model/attention.h), for tokens that are not whole sequences.
  [[nodiscard]] at::Tensor hidden_TD(const PackedTokens& input,
                                     std::shared_ptr<const Attention> attention,
                                     const Dropout& dropout = {}) const;

  // The weight of the output head, V x D: the embedding if it is tied.
  [[nodiscard]] const at::Tensor& head_weight() const;

 private:
  struct Weights;
  std::unique_ptr<Weights> weights_;
};

}  // namespace isochron
