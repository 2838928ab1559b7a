// One step on one rank:
//
//   compare the hash of the plan -> open the groups it needs -> per slot: read the own shards of
//   the rows of the own group, forward, backward -> sum the gradients over the ranks -> clip,
//   update, gather the weights -> exchange the numbers
//
// A rank that a slot leaves out goes on to the next one; it waits for the members of its groups
// inside their micro-batches, and for all ranks in the reduction.

#include "isochron/engine/execute/engine.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "isochron/core/require.h"
#include "isochron/plan/plan.h"
#include "isochron/simulate/simulate.h"

namespace isochron {

namespace {

constexpr const char* where = "engine";

void require_executable(const StepPlan& plan, std::int32_t num_ranks) {
  require(plan.topology.ranks == num_ranks, where, "the plan is for {} ranks, there are {}",
          plan.topology.ranks, num_ranks);
  require(plan.topology.pipeline.stages == 1, where,
          "the plan has {} pipeline stages, the engine executes 1", plan.topology.pipeline.stages);
  require(plan.options.tensor_parallel == 1, where,
          "the plan has tensor_parallel {}, the engine executes 1", plan.options.tensor_parallel);
}

// How the ranks of a group exchange keys and values. A plan says so where its cost model offers
// several ways; a cost model that knows of none means that it costs nothing.
ContextKind exchange_of(const StepPlan& plan, const ContextGroup& group) {
  if (group.exchange) return *group.exchange;
  return plan.cost.context.empty() ? ContextKind::all_gather_kv : plan.cost.context.front().kind;
}

// Waits until the device is done, so that what follows is timed alone.
void synchronize(at::Device device) {
  if (device.is_cuda()) at::accelerator::synchronizeDevice(device.index());
}

// The rows of numbers that each rank gives, one after the other, on every rank.
at::Tensor gather_rows(World& world, const at::Tensor& row, std::string_view what) {
  Communicator& all = world.all();
  at::Tensor rows = at::zeros({all.size(), row.numel()}, row.options());
  rows[all.rank()].copy_(row);
  at::Tensor flat = rows.view({-1});
  all.all_gather(flat, what)->wait();
  return rows.cpu();
}

}  // namespace

Engine::Engine(World& world, Decoder& model, ShardedAdamW* optimizer, CostModel cost,
               Tracer& tracer, EngineOptions options)
    : world_(world),
      model_(model),
      optimizer_(optimizer),
      cost_(std::move(cost)),
      tracer_(tracer),
      options_(std::move(options)),
      groups_(world, options_.max_context_groups) {}

StepPlan Engine::plan(const Batch& batch, Pass pass) const {
  PlanOptions options = options_.plan;
  options.pass = pass;
  const Topology topology = {.ranks = world_.place().size, .capacity = options_.capacity};
  StepPlan plan = plan_step(batch, topology, cost_, options);
  const bool has_plan = plan.status == Status::optimal || plan.status == Status::feasible;
  require(has_plan, where, "there is no plan for these rows: {}", plan.reason);
  return plan;
}

void Engine::begin(std::int64_t step, const StepPlan& plan) {
  require_executable(plan, world_.place().size);
  tracer_.begin_step();
  const auto scope = tracer_.scope("agree");
  world_.set_activity(step, -1, "comparing plans");
  const auto hash = std::bit_cast<std::int64_t>(plan_hash(plan));
  const at::Tensor mine = at::tensor({hash, std::int64_t{wants_stop_.load() ? 1 : 0}}, at::kLong)
                              .to(model_.options().device);
  const at::Tensor rows = gather_rows(world_, mine, "compare plans");
  const auto row = rows.accessor<std::int64_t, 2>();
  std::string others;
  for (std::int64_t rank = 0; rank < row.size(0); ++rank) {
    stop_agreed_ = stop_agreed_ || row[rank][1] != 0;
    if (row[rank][0] == row[0][0]) continue;
    others += fmt::format("{}{}", others.empty() ? "" : ", ", rank);
  }
  if (!others.empty()) {
    throw std::runtime_error(fmt::format(
        "[engine] the plan of step {} differs between ranks: that of rank 0 from that of {}", step,
        others));
  }
  groups_.open(plan);
}

Microbatch Engine::microbatch_of(const ContextGroup& group, const Rows& rows, Labels labels) const {
  return make_microbatch(rows, group, world_.place().rank, labels, model_.options().device);
}

at::Tensor Engine::hidden_TD(const StepPlan& plan, const ContextGroup& group,
                             const Microbatch& microbatch, const Dropout& dropout) {
  if (group.ranks.size == 1) return model_.hidden_TD(microbatch.input, dropout);
  return model_.hidden_TD(
      microbatch.input,
      context_attention(exchange_of(plan, group), microbatch.layout.cu_seqlens, groups_.of(group),
                        model_.options().device, options_.context),
      dropout);
}

Engine::ForwardResult Engine::forward(const StepPlan& plan, const Turn& turn, const Update& update,
                                      const Dropout& dropout) {
  const auto scope = tracer_.scope("forward", turn.slot);
  const Microbatch microbatch = microbatch_of(*turn.group, update.rows, Labels::weighted);
  at::Tensor states_TD = hidden_TD(plan, *turn.group, microbatch, dropout);
  const TokenOutputs outputs =
      token_outputs(states_TD, model_.head_weight(), microbatch.labels_T, options_.head);
  const at::Tensor loss_T = update.loss(outputs);
  ForwardResult result;
  result.loss = loss_T.mul(microbatch.weights_T.to(loss_T.scalar_type())).sum();
  if (!result.loss.requires_grad()) result.hidden_TD = std::move(states_TD);
  return result;
}

void Engine::backward(const ContextGroup& group, const ForwardResult& result) {
  if (result.loss.requires_grad()) {
    torch::autograd::backward({result.loss}, {});
  } else if (group.ranks.size > 1) {
    // The other members wait for what this one knows of their keys, be it nothing.
    torch::autograd::backward({result.hidden_TD}, {at::zeros_like(result.hidden_TD)});
  }
}

StepResult Engine::train(std::int64_t step, const StepPlan& plan, const Update& update, double lr) {
  ISOCHRON_ASSERT(optimizer_ != nullptr);
  begin(step, plan);
  const at::Device device = model_.options().device;
  const std::vector<Turn> turns = turns_of(plan, world_.place().rank);
  at::Tensor total = at::zeros({}, at::TensorOptions(at::kDouble).device(device));
  const bool may_overlap = may_overlap_reduction(plan, world_.place().rank);
  Nanoseconds busy_ns = 0;
  const Dropout dropout = {.probability = options_.dropout, .seed = options_.seed, .step = step};

  optimizer_->begin();
  for (const Turn& turn : turns) {
    world_.set_activity(step, turn.slot, "forward");
    const Nanoseconds begin_ns = tracer_.now_ns();
    const ForwardResult result = forward(plan, turn, update, dropout);
    total.add_(result.loss.detach());
    if (&turn == &turns.back()) optimizer_->begin_last_backward(may_overlap);
    world_.set_activity(step, turn.slot, "backward");
    const auto scope = tracer_.scope("backward", turn.slot);
    backward(*turn.group, result);
    synchronize(device);
    busy_ns += tracer_.now_ns() - begin_ns;
  }
  if (turns.empty()) optimizer_->begin_last_backward(/*overlap=*/false);

  world_.set_activity(step, -1, "optimizer");
  const UpdateOutcome outcome = optimizer_->finish(lr);
  synchronize(device);
  StepResult result = finish(plan, total, busy_ns);
  result.grad_norm = outcome.grad_norm;
  result.skipped = outcome.skipped;
  return result;
}

StepResult Engine::evaluate(std::int64_t step, const StepPlan& plan, const Update& update) {
  begin(step, plan);
  const at::NoGradGuard no_grad;
  const at::Device device = model_.options().device;
  at::Tensor total = at::zeros({}, at::TensorOptions(at::kDouble).device(device));
  Nanoseconds busy_ns = 0;
  for (const Turn& turn : turns_of(plan, world_.place().rank)) {
    world_.set_activity(step, turn.slot, "forward");
    const Nanoseconds begin_ns = tracer_.now_ns();
    total.add_(forward(plan, turn, update, /*dropout=*/{}).loss);
    synchronize(device);
    busy_ns += tracer_.now_ns() - begin_ns;
  }
  return finish(plan, total, busy_ns);
}

StepResult Engine::finish(const StepPlan& plan, const at::Tensor& loss, Nanoseconds busy_ns) {
  const auto scope = tracer_.scope("exchange");
  const PeakMemory memory = peak_memory(model_.options().device);
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const at::Tensor mine =
      at::tensor(
          {loss.item<double>(), number(busy_ns), number(tracer_.now_ns()), number(memory.host),
           number(memory.device_allocated), number(memory.device_reserved)},
          at::kDouble)
          .to(model_.options().device);
  const at::Tensor rows = gather_rows(world_, mine, "exchange results");
  const auto row = rows.accessor<double, 2>();
  const Timeline predicted = simulate(plan);
  StepResult result;
  for (std::int64_t rank = 0; rank < row.size(0); ++rank) {
    const auto integer = [&](std::int64_t column) {
      return static_cast<std::int64_t>(row[rank][column]);
    };
    result.loss += row[rank][0];
    result.ranks.push_back({.predicted_ns = predicted.busy_ns[static_cast<std::size_t>(rank)],
                            .busy_ns = integer(1),
                            .step_ns = integer(2),
                            .memory = {integer(3), integer(4), integer(5)}});
  }
  return result;
}

std::vector<TokenScore> Engine::scores(std::int64_t step, const StepPlan& plan, const Rows& rows) {
  begin(step, plan);
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> log_probs;
  std::vector<at::Tensor> entropies;
  for (const Turn& turn : turns_of(plan, world_.place().rank)) {
    world_.set_activity(step, turn.slot, "forward");
    const auto scope = tracer_.scope("forward", turn.slot);
    const Microbatch microbatch = microbatch_of(*turn.group, rows, Labels::all);
    const TokenOutputs outputs =
        token_outputs(hidden_TD(plan, *turn.group, microbatch, /*dropout=*/{}),
                      model_.head_weight(), microbatch.labels_T, options_.head);
    const at::Tensor is_predicted_T = microbatch.labels_T >= 0;
    const auto predicted = [&](const at::Tensor& values_T) {
      return values_T.masked_select(is_predicted_T).to(at::kFloat).cpu();
    };
    log_probs.push_back(predicted(outputs.log_prob_T));
    if (options_.head.entropy) entropies.push_back(predicted(outputs.entropy_T));
  }

  std::vector<TokenScore> scores;
  for (const PredictedToken& token : predicted_tokens(plan, world_.place().rank)) {
    scores.push_back({.row = token.row, .token = token.token});
  }
  const auto fill = [&](const std::vector<at::Tensor>& parts, float TokenScore::*field) {
    auto next = scores.begin();
    for (const at::Tensor& part : parts) {
      for (std::int64_t i = 0; i < part.numel(); ++i) {
        (*next++).*field = part.const_data_ptr<float>()[i];
      }
    }
  };
  fill(log_probs, &TokenScore::log_prob);
  fill(entropies, &TokenScore::entropy);
  return scores;
}

std::vector<RowScores> Engine::gather_scores(const StepPlan& plan,
                                             const std::vector<TokenScore>& own) {
  // Every rank knows from the plan which tokens each of the others sends, in which order.
  std::vector<std::vector<PredictedToken>> tokens_of;
  std::size_t most = 1;
  for (std::int32_t rank = 0; rank < world_.place().size; ++rank) {
    tokens_of.push_back(predicted_tokens(plan, rank));
    most = std::max(most, tokens_of.back().size());
  }
  ISOCHRON_ASSERT(own.size() == tokens_of[static_cast<std::size_t>(world_.place().rank)].size());
  at::Tensor mine = at::zeros({static_cast<std::int64_t>(2 * most)}, at::kFloat);
  float* sent = mine.mutable_data_ptr<float>();
  for (const TokenScore& score : own) {
    *sent++ = score.log_prob;
    *sent++ = score.entropy;
  }
  const at::Tensor gathered =
      gather_rows(world_, mine.to(model_.options().device), "gather scores");

  std::vector<RowScores> rows(plan.batch.lengths.size());
  for (std::size_t rank = 0; rank < tokens_of.size(); ++rank) {
    const float* received =
        gathered.const_data_ptr<float>() + static_cast<std::int64_t>(rank) * gathered.size(1);
    for (const PredictedToken& token : tokens_of[rank]) {
      RowScores& row = rows[token.row.index()];
      const auto size = static_cast<std::size_t>(plan.batch.lengths[token.row.index()] - 1);
      const auto index = static_cast<std::size_t>(token.token - 1);
      row.log_probs.resize(size);
      row.log_probs[index] = *received++;
      const float entropy = *received++;
      if (!options_.head.entropy) continue;
      row.entropies.resize(size);
      row.entropies[index] = entropy;
    }
  }
  return rows;
}

}  // namespace isochron
