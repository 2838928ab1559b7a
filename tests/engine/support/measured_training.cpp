#include "tests/engine/support/measured_training.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>

#include <algorithm>
#include <functional>

#include "tests/engine/support/cpu_memory.h"
#include "tests/engine/support/random_decoder.h"
#include "tests/engine/support/random_rows.h"

namespace isochron {

namespace {

Decoder random_decoder(const MeasuredModel& model) {
  ModelConfig config;
  config.model_type = "qwen3";
  config.shape = model.shape;
  Decoder decoder(config, {.dtype = model.dtype, .recompute = model.recompute});
  randomise(decoder, 1);
  return decoder;
}

// Calls something when the backward gets to a node.
class OnBackward final : public torch::autograd::FunctionPreHook {
 public:
  explicit OnBackward(std::function<void()> call) : call_(std::move(call)) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& grads) override {
    call_();
    return grads;
  }

 private:
  std::function<void()> call_;
};

}  // namespace

MeasuredTraining::MeasuredTraining(World& world, const MeasuredModel& model,
                                   const EngineOptions& options)
    : model_(random_decoder(model)),
      optimizer_(model_.parameters(), world.all(), AdamWOptions{}),
      engine_(world, model_, &optimizer_, CostModel{}, tracer_, options) {}

StepMemory MeasuredTraining::step(const StepPlan& plan) {
  const TokenRows rows = random_rows(plan.batch.lengths, model_.config().shape.vocabulary, 1);
  StepMemory measured;
  CpuMemory memory;
  const auto note = [&](std::int64_t& peak) { peak = std::max(peak, memory.peak()); };
  const TokenLoss loss = [&](const TokenOutputs& outputs) {
    auto node = outputs.log_prob_T.grad_fn()->next_edge(0).function;  // the norm before the head
    node->add_pre_hook(std::make_unique<OnBackward>([&] {
      note(measured.all);
      memory.restart_peak();
    }));
    while (node->name() != "EmbeddingBackward0") node = node->next_edge(0).function;
    node->add_pre_hook(std::make_unique<OnBackward>([&] { note(measured.activations); }));
    return -outputs.log_prob_T;
  };
  measured.loss = engine_.train(++num_steps_, plan, {rows.view(), loss}, 1e-2).loss;
  note(measured.all);
  measured.all = std::max(measured.all, measured.activations);
  return measured;
}

}  // namespace isochron
