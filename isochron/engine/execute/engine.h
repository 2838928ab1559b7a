#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "isochron/cost/cost_model.h"
#include "isochron/engine/data/rows.h"
#include "isochron/engine/loss/token_outputs.h"
#include "isochron/engine/model/decoder.h"
#include "isochron/engine/optim/adamw.h"
#include "isochron/engine/parallel/world.h"
#include "isochron/engine/profile/memory.h"
#include "isochron/engine/profile/tracer.h"
#include "isochron/step/plan_options.h"
#include "isochron/step/step_plan.h"
#include "isochron/step/topology.h"

namespace isochron {

// l of each token of a shard: what a task makes of the model's outputs. The engine adds up w * l.
using TokenLoss = std::function<at::Tensor(const TokenOutputs& outputs)>;

// One optimizer update: which rows, and what their loss is.
struct Update {
  Rows rows;
  TokenLoss loss;
};

// What one rank did in a step.
struct RankTimes {
  Nanoseconds predicted_ns = 0;  // in its micro-batches, by the plan
  Nanoseconds busy_ns = 0;       // in its micro-batches, measured
  Nanoseconds step_ns = 0;       // all of it, with reduction and optimizer
  PeakMemory memory = {};        // of its process so far
};

struct StepResult {
  double loss = 0;       // sum of w * l over all rows, equal on every rank
  double grad_norm = 0;  // before clipping; training alone
  bool skipped = false;  // the gradient was not finite: nothing was updated
  std::vector<RankTimes> ranks;
};

struct EngineOptions {
  Tokens capacity = 8192;  // tokens of a micro-batch on a rank
  PlanOptions plan = {};   // balance, max_sequences, ..; `pass` is set by the call
  HeadOptions head = {};
  double dropout = 0;  // in front of the linear products of the layers, in train() alone; below 1
  std::int64_t seed = 0;  // of the masks
};

// Executes step plans on all ranks: each runs the micro-batches that the plan gives it, in its
// order. Equal rows give equal gradients, to rounding, for every plan of them.
//
// All ranks make the same calls with equal arguments. They plan for themselves and compare the hash
// of the plan before the first operation: if plans differ, every rank throws std::runtime_error
// that names the ranks.
class Engine {
 public:
  // The references outlive the engine. Without an optimizer it evaluates only.
  Engine(World& world, Decoder& model, ShardedAdamW* optimizer, CostModel cost, Tracer& tracer,
         EngineOptions options);

  // Throws std::invalid_argument with the planner's reason if there is no plan.
  [[nodiscard]] StepPlan plan(const Batch& batch, Pass pass) const;

  // Forward, backward and one optimizer update with learning rate `lr`.
  [[nodiscard]] StepResult train(std::int64_t step, const StepPlan& plan, const Update& update,
                                 double lr);

  // The loss alone.
  [[nodiscard]] StepResult evaluate(std::int64_t step, const StepPlan& plan, const Update& update);

  // Log-probability of every token after the first of every row, in the order of the rows, on every
  // rank: row i has lengths[i] - 1 numbers; a row that the plan dropped has none.
  [[nodiscard]] std::vector<std::vector<float>> log_probs(std::int64_t step, const StepPlan& plan,
                                                          const Rows& rows);

  // A wish to stop travels with the hash of the next plan: after the next call stop_agreed() is
  // true on every rank if any rank had it.
  void ask_to_stop() { wants_stop_ = true; }
  [[nodiscard]] bool stop_agreed() const { return stop_agreed_; }

  [[nodiscard]] World& world() { return world_; }
  [[nodiscard]] Decoder& model() { return model_; }
  [[nodiscard]] ShardedAdamW* optimizer() { return optimizer_; }
  [[nodiscard]] const Tracer& tracer() const { return tracer_; }
  [[nodiscard]] const EngineOptions& options() const { return options_; }
  [[nodiscard]] const CostModel& cost() const { return cost_; }

 private:
  void begin(std::int64_t step, const StepPlan& plan);
  [[nodiscard]] at::Tensor forward_loss(const ContextGroup& group, std::int32_t slot,
                                        const Update& update, const Dropout& dropout);
  [[nodiscard]] StepResult finish(const StepPlan& plan, const at::Tensor& loss,
                                  Nanoseconds busy_ns);

  World& world_;
  Decoder& model_;
  ShardedAdamW* optimizer_;
  CostModel cost_;
  Tracer& tracer_;
  EngineOptions options_;
  std::atomic<bool> wants_stop_ = false;  // a signal handler may set it
  bool stop_agreed_ = false;
};

}  // namespace isochron
