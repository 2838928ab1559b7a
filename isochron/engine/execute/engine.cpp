// One step on one rank:
//
//   compare the hash of the plan -> per slot: read the rows of the own group, forward, backward
//   -> sum the gradients over the ranks -> clip, update, gather the weights -> exchange the numbers
//
// A rank that a slot leaves out goes on to the next one; nothing but the reduction waits for
// others.

#include "isochron/engine/execute/engine.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "isochron/core/require.h"
#include "isochron/engine/execute/microbatch.h"
#include "isochron/plan/plan.h"
#include "isochron/simulate/simulate.h"

namespace isochron {

namespace {

constexpr const char* where = "engine";

// A group that a rank is in, with its slot.
struct Turn {
  std::int32_t slot = 0;
  const ContextGroup* group = nullptr;
};

// What a rank runs, in order; placeholders run nothing.
std::vector<Turn> turns_of(const StepPlan& plan, std::int32_t rank) {
  std::vector<Turn> turns;
  for (std::size_t slot = 0; slot < plan.microbatches.size(); ++slot) {
    for (const ContextGroup& group : plan.microbatches[slot]) {
      const bool is_member =
          group.ranks.first <= rank && rank < group.ranks.first + group.ranks.size;
      if (is_member && !group.sequences.empty()) {
        turns.push_back({static_cast<std::int32_t>(slot), &group});
      }
    }
  }
  return turns;
}

void require_executable(const StepPlan& plan, std::int32_t num_ranks) {
  require(plan.topology.ranks == num_ranks, where, "the plan is for {} ranks, there are {}",
          plan.topology.ranks, num_ranks);
  require(plan.topology.pipeline.stages == 1, where,
          "the plan has {} pipeline stages, the engine executes 1", plan.topology.pipeline.stages);
  for (const Slot& slot : plan.microbatches) {
    for (const ContextGroup& group : slot) {
      require(group.ranks.size == 1, where,
              "the plan has a group of {} ranks, the engine executes groups of 1",
              group.ranks.size);
    }
  }
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
      options_(std::move(options)) {}

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
}

at::Tensor Engine::forward_loss(const ContextGroup& group, std::int32_t slot, const Update& update,
                                const Dropout& dropout) {
  const auto scope = tracer_.scope("forward", slot);
  const Microbatch microbatch =
      make_microbatch(update.rows, group, Labels::weighted, model_.options().device);
  const at::Tensor hidden_TD = model_.hidden_TD(microbatch.input, dropout);
  const TokenOutputs outputs =
      token_outputs(hidden_TD, model_.head_weight(), microbatch.labels_T, options_.head);
  const at::Tensor loss_T = update.loss(outputs);
  return loss_T.mul(microbatch.weights_T.to(loss_T.scalar_type())).sum();
}

StepResult Engine::train(std::int64_t step, const StepPlan& plan, const Update& update, double lr) {
  ISOCHRON_ASSERT(optimizer_ != nullptr);
  begin(step, plan);
  const at::Device device = model_.options().device;
  const std::vector<Turn> turns = turns_of(plan, world_.place().rank);
  at::Tensor total = at::zeros({}, at::TensorOptions(at::kDouble).device(device));
  Nanoseconds busy_ns = 0;
  const Dropout dropout = {.probability = options_.dropout, .seed = options_.seed, .step = step};

  optimizer_->begin();
  for (const Turn& turn : turns) {
    world_.set_activity(step, turn.slot, "forward");
    const Nanoseconds begin_ns = tracer_.now_ns();
    const at::Tensor loss = forward_loss(*turn.group, turn.slot, update, dropout);
    total.add_(loss.detach());
    if (&turn == &turns.back()) optimizer_->begin_last_backward(/*overlap=*/true);
    world_.set_activity(step, turn.slot, "backward");
    const auto scope = tracer_.scope("backward", turn.slot);
    if (loss.requires_grad()) torch::autograd::backward({loss}, {});
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
    total.add_(forward_loss(*turn.group, turn.slot, update, /*dropout=*/{}));
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

std::vector<std::vector<float>> Engine::log_probs(std::int64_t step, const StepPlan& plan,
                                                  const Rows& rows) {
  begin(step, plan);
  const at::NoGradGuard no_grad;
  const at::Device device = model_.options().device;

  // Every rank knows from the plan which numbers each of the others sends, in which order.
  const std::int32_t num_ranks = world_.place().size;
  std::vector<std::vector<SequenceId>> sequences_of(static_cast<std::size_t>(num_ranks));
  std::vector<std::int64_t> num_sent(static_cast<std::size_t>(num_ranks), 0);
  const std::vector<Tokens> lengths = all_lengths(plan);
  for (std::int32_t rank = 0; rank < num_ranks; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    for (const Turn& turn : turns_of(plan, rank)) {
      for (const SequenceId sequence : turn.group->sequences) {
        sequences_of[index].push_back(sequence);
        num_sent[index] += lengths[sequence.index()];
      }
    }
  }

  std::vector<at::Tensor> own;
  for (const Turn& turn : turns_of(plan, world_.place().rank)) {
    world_.set_activity(step, turn.slot, "forward");
    const auto scope = tracer_.scope("forward", turn.slot);
    const Microbatch microbatch = make_microbatch(rows, *turn.group, Labels::all, device);
    own.push_back(token_outputs(model_.hidden_TD(microbatch.input), model_.head_weight(),
                                microbatch.labels_T, options_.head)
                      .log_prob_T.to(at::kFloat));
  }
  at::Tensor mine = at::zeros({std::max<std::int64_t>(1, *std::ranges::max_element(num_sent))},
                              at::TensorOptions(at::kFloat).device(device));
  if (!own.empty()) {
    const at::Tensor sent = at::cat(own);
    mine.narrow(0, 0, sent.numel()).copy_(sent);
  }
  const at::Tensor gathered = gather_rows(world_, mine, "gather log-probs");

  std::vector<std::vector<float>> log_probs(rows.tokens.size());
  for (std::int32_t rank = 0; rank < num_ranks; ++rank) {
    const float* next = gathered.const_data_ptr<float>() + rank * gathered.size(1);
    for (const SequenceId sequence : sequences_of[static_cast<std::size_t>(rank)]) {
      const Tokens length = lengths[sequence.index()];
      // The last position of a row predicts nothing; a padding row is nobody's.
      if (sequence.index() < log_probs.size()) {
        log_probs[sequence.index()].assign(next, next + length - 1);
      }
      next += length;
    }
  }
  return log_probs;
}

}  // namespace isochron
