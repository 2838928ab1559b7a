#include "tests/engine/support/tiny_model.h"

#include <ATen/core/grad_mode.h>

#include "isochron/core/random.h"

namespace isochron {

Decoder make_tiny_model(const TinyModel& model) {
  ModelConfig config;
  config.model_type = "qwen3";
  config.shape = {.name = "tiny",
                  .hidden = 16,
                  .layers = 2,
                  .heads = 4,
                  .kv_heads = 2,
                  .head_dim = model.head_dim,
                  .ffn = 24,
                  .vocabulary = tiny_vocabulary,
                  .tied_head = model.tied,
                  .qk_norm = true};
  Decoder decoder(config,
                  {.device = model.device, .dtype = model.dtype, .recompute = model.recompute});
  Random random(model.seed);
  const at::NoGradGuard no_grad;
  for (const Parameter& parameter : decoder.parameters()) {
    at::Tensor values = at::empty({parameter.value.numel()}, at::kDouble);
    auto value = values.accessor<double, 1>();
    for (std::int64_t i = 0; i < value.size(0); ++i) {
      // Norm weights around 1, others around 0; exact in fp32, so that every dtype starts equal.
      const double draw = static_cast<double>(static_cast<float>(random.unit() - 0.5));
      value[i] = parameter.value.dim() == 1 ? 1 + draw / 4 : draw;
    }
    at::Tensor(parameter.value).copy_(values.view(parameter.value.sizes()));
  }
  return decoder;
}

}  // namespace isochron
