#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "isochron/cost/cost_model.h"
#include "isochron/engine/context/context_attention.h"
#include "isochron/engine/data/rows.h"
#include "isochron/engine/execute/context_groups.h"
#include "isochron/engine/execute/microbatch.h"
#include "isochron/engine/execute/turns.h"
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

// Outputs of one token, which the tokens before it predict.
struct TokenScore {
  SequenceId row;
  std::int32_t token = 0;  // its index in the row, from 1 on
  float log_prob = 0;
  float entropy = 0;  // of the distribution it was drawn from; 0 unless options.head asks for it
};

// Outputs of a whole row: of each token after the first.
struct RowScores {
  std::vector<float> log_probs;
  std::vector<float> entropies;  // empty unless options.head asks for them
};

struct EngineOptions {
  Tokens capacity = 8192;  // tokens of a micro-batch on a rank
  PlanOptions plan = {};   // context, balance, max_sequences, ..; `pass` is set by the call
  HeadOptions head = {};
  ContextOptions context = {};
  std::int32_t max_context_groups = 64;  // that a rank keeps open between steps
  double dropout = 0;  // in front of the linear products of the layers, in train() alone; below 1
  std::int64_t seed = 0;  // of the masks
};

// Executes step plans on all ranks: each runs the micro-batches that the plan gives it, in its
// order, together with the other ranks of their groups, each on its shards of the sequences. Equal
// rows give equal gradients, to rounding, for every plan of them.
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

  // Outputs of the tokens that this rank predicts, in the order of its micro-batches. Over all
  // ranks, each token after the first of each row that the plan did not drop occurs once.
  [[nodiscard]] std::vector<TokenScore> scores(std::int64_t step, const StepPlan& plan,
                                               const Rows& rows);
  // The scores of all ranks by row, on every rank; a row that the plan dropped has none. `own` is
  // what scores() gave for this plan.
  [[nodiscard]] std::vector<RowScores> gather_scores(const StepPlan& plan,
                                                     const std::vector<TokenScore>& own);

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
  [[nodiscard]] Microbatch microbatch_of(const ContextGroup& group, const Rows& rows,
                                         Labels labels) const;
  [[nodiscard]] at::Tensor hidden_TD(const StepPlan& plan, const ContextGroup& group,
                                     const Microbatch& microbatch, const Dropout& dropout);
  // The hidden states of a shard whose loss does not depend on them, for its backward; undefined
  // otherwise.
  struct ForwardResult {
    at::Tensor loss, hidden_TD;
  };
  [[nodiscard]] ForwardResult forward(const StepPlan& plan, const Turn& turn, const Update& update,
                                      const Dropout& dropout);
  static void backward(const ContextGroup& group, const ForwardResult& result);
  [[nodiscard]] StepResult finish(const StepPlan& plan, const at::Tensor& loss,
                                  Nanoseconds busy_ns);

  World& world_;
  Decoder& model_;
  ShardedAdamW* optimizer_;
  CostModel cost_;
  Tracer& tracer_;
  EngineOptions options_;
  ContextGroups groups_;
  std::atomic<bool> wants_stop_ = false;  // a signal handler may set it
  bool stop_agreed_ = false;
};

}  // namespace isochron
