#include <ATen/ATen.h>

#include <cmath>
#include <cstdio>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "isochron/engine/execute/engine.h"
#include "isochron/engine/model/hf_folder.h"
#include "isochron/engine/parallel/launcher.h"

// One training step of a tiny model on one rank: values, tensors and an exception cross the border.
int main() {
  isochron::World world(isochron::launched_place([](const auto&) { return std::nullopt; }), {});
  isochron::ModelConfig config;
  config.model_type = "qwen3";
  config.shape = {.name = "tiny",
                  .hidden = 16,
                  .layers = 1,
                  .heads = 2,
                  .kv_heads = 1,
                  .head_dim = 8,
                  .ffn = 24,
                  .vocabulary = 32,
                  .tied_head = true,
                  .qk_norm = true};
  isochron::Decoder model(config, {});
  for (const isochron::Parameter& parameter : model.parameters()) {
    parameter.value.data().fill_(parameter.value.dim() == 1 ? 1.0 : 0.01);
  }
  isochron::ShardedAdamW optimizer(model.parameters(), world.all(), {});
  isochron::Tracer tracer;
  isochron::Engine engine(world, model, &optimizer, {}, tracer, {.capacity = 64});

  const std::vector<std::int32_t> tokens = {1, 2, 3, 4};
  isochron::Rows rows;
  rows.batch.lengths = {4, 3};
  rows.ids = {0, 1};
  rows.tokens = {std::span(tokens), std::span(tokens).first(3)};
  rows.fill_weights = [](isochron::SequenceId, std::size_t first, std::span<double> weights) {
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = first + i == 0 ? 0 : 0.2;
  };
  const auto loss = [](const isochron::TokenOutputs& outputs) { return -outputs.log_prob_T; };
  const isochron::StepPlan plan = engine.plan(rows.batch, isochron::Pass::train);
  const isochron::StepResult result = engine.train(1, plan, {rows, loss}, 1e-3);
  std::printf("loss %.3f, gradient norm %.3f\n", result.loss, result.grad_norm);

  try {
    (void)isochron::load_decoder("nowhere", {});
    return 1;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
  }
  return std::abs(result.loss - std::log(32.0)) < 0.1 && result.grad_norm > 0 ? 0 : 1;
}
