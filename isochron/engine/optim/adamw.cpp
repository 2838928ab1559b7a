// ZeRO-1: bucket b of the weights is one flat tensor that the parameters are views of, and rank r
// owns the r-th part of it: master weights and moments exist for that part alone. An update goes
//
//   gradients, all ranks --reduce-scatter--> shard --norm, clip, AdamW--> master
//   master --cast--> own part of the weights --all-gather--> all parts    (flat_update.h)
//
// If the weights are fp32 the master is the own part of the weights, not a copy of it.

#include "isochron/engine/optim/adamw.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "isochron/core/require.h"
#include "isochron/engine/optim/flat_update.h"
#include "isochron/engine/optim/gradient_buckets.h"

namespace isochron {

namespace {

void require_parameters(const std::vector<Parameter>& parameters) {
  require(!parameters.empty(), "optimizer", "there are {} parameters, must be at least 1",
          parameters.size());
  for (const Parameter& parameter : parameters) {
    require(parameter.value.is_leaf() && parameter.value.requires_grad(), "optimizer",
            "{} is not trained", parameter.name);
    require(parameter.value.is_contiguous() && parameter.value.is_floating_point(), "optimizer",
            "{} must be contiguous numbers", parameter.name);
  }
}

void require_options(const AdamWOptions& options) {
  for (const double beta : {options.beta1, options.beta2}) {
    require(beta >= 0 && beta < 1, "optimizer", "a beta is {}, must be from 0 to below 1", beta);
  }
  require(options.epsilon > 0, "optimizer", "epsilon is {}, must be above 0", options.epsilon);
  require(options.weight_decay >= 0, "optimizer", "weight_decay is {}, must not be negative",
          options.weight_decay);
  require(options.clip_grad > 0, "optimizer", "clip_grad is {}, must be above 0",
          options.clip_grad);
  require(options.bucket_bytes >= 1, "optimizer", "bucket_bytes is {}, must be at least 1",
          options.bucket_bytes);
}

// As torch's clip_grad_norm_.
double clip_factor(double norm, double largest) { return std::min(1.0, largest / (norm + 1e-6)); }

}  // namespace

struct ShardedAdamW::State {
  // This rank's part of a bucket, and the weights of all of it.
  struct Shard {
    at::Tensor weights;
    at::Tensor own_weights;
    at::Tensor master;
    at::Tensor exp_avg;
    at::Tensor exp_avg_sq;
  };

  std::vector<Parameter> parameters;
  Communicator& ranks;
  AdamWOptions options;
  Tracer* tracer;
  GradientBuckets gradients;
  std::vector<Shard> shards;
  std::int64_t num_updates = 0;

  State(std::vector<Parameter> trained, Communicator& all, const AdamWOptions& how, Tracer* trace)
      : parameters(std::move(trained)),
        ranks(all),
        options(how),
        tracer(trace),
        gradients(parameters, bucket_layouts(parameters, all.size(), how.bucket_bytes), all,
                  trace) {
    const at::NoGradGuard no_gradient;
    for (const BucketLayout& layout : gradients.layouts()) make_shard(layout);
  }

  // Moves the parameters of a bucket into one flat tensor.
  void make_shard(const BucketLayout& layout) {
    const at::Tensor& first = parameters[layout.slices.front().parameter].value;
    Shard& shard = shards.emplace_back();
    shard.weights = at::zeros({layout.width * ranks.size()},
                              at::device(first.device()).dtype(first.scalar_type()));
    for (const BucketSlice& slice : layout.slices) {
      at::Tensor& value = parameters[slice.parameter].value;
      at::Tensor view = shard.weights.narrow(0, slice.begin, slice.count).view(value.sizes());
      view.copy_(value);
      value.set_data(view);
    }
    ranks.broadcast(shard.weights, 0, "broadcast weights");
    shard.own_weights = shard.weights.narrow(0, ranks.rank() * layout.width, layout.width);
    shard.master = shard.own_weights.to(at::kFloat);  // the same tensor if it is fp32
    shard.exp_avg = at::zeros_like(shard.master);
    shard.exp_avg_sq = at::zeros_like(shard.master);
  }

  [[nodiscard]] std::optional<Tracer::Scope> scope(std::string_view name) const {
    if (tracer == nullptr) return std::nullopt;
    return tracer->scope(name);
  }

  // Waits for every bucket. In double, so that the norm does not depend on how a bucket is cut.
  double global_norm() {
    at::Tensor squares = at::zeros({1}, shards.front().master.options().dtype(at::kDouble));
    gradients.finish([&](std::size_t bucket) { add_squares_(squares, gradients.shard(bucket)); });
    ranks.all_reduce_sum(squares, "gradient norm");
    return std::sqrt(squares.item<double>());
  }

  void update_shard(std::size_t bucket, double lr, double factor) {
    const Shard& shard = shards[bucket];
    adamw_({.master = shard.master,
            .exp_avg = shard.exp_avg,
            .exp_avg_sq = shard.exp_avg_sq,
            .gradient = gradients.shard(bucket),
            .weights = shard.own_weights},
           {.num_updates = num_updates,
            .lr = lr,
            .beta1 = options.beta1,
            .beta2 = options.beta2,
            .epsilon = options.epsilon,
            .weight_decay = options.weight_decay,
            .gradient_factor = factor});
  }

  [[nodiscard]] std::unique_ptr<Pending> gather(Shard& shard) {
    return ranks.all_gather(shard.weights, "gather weights");
  }

  // Elements [begin, end) of the shard of a bucket that belong to parameters, piece by piece.
  template <class Visit>
  void visit_pieces(Visit visit) const {
    for (std::size_t bucket = 0; bucket < shards.size(); ++bucket) {
      const BucketLayout& layout = gradients.layouts()[bucket];
      const std::int64_t first = ranks.rank() * layout.width;
      for (const BucketSlice& slice : layout.slices) {
        const std::int64_t begin = std::max(first, slice.begin);
        const std::int64_t end = std::min(first + layout.width, slice.begin + slice.count);
        if (begin >= end) continue;
        visit(bucket, parameters[slice.parameter].name, begin - slice.begin, begin - first,
              end - begin);
      }
    }
  }
};

ShardedAdamW::ShardedAdamW(std::vector<Parameter> parameters, Communicator& ranks,
                           const AdamWOptions& options, Tracer* tracer) {
  require_parameters(parameters);
  require_options(options);
  state_ = std::make_unique<State>(std::move(parameters), ranks, options, tracer);
}

ShardedAdamW::~ShardedAdamW() = default;

void ShardedAdamW::begin() { state_->gradients.begin(); }

void ShardedAdamW::begin_last_backward(bool overlap) {
  state_->gradients.begin_last_backward(overlap);
}

UpdateOutcome ShardedAdamW::finish(double lr) {
  State& state = *state_;
  const at::NoGradGuard no_gradient;
  const double norm = state.global_norm();
  if (!std::isfinite(norm)) return {.grad_norm = norm, .skipped = true};

  const auto scope = state.scope("optimizer");
  ++state.num_updates;
  const double factor = clip_factor(norm, state.options.clip_grad);
  std::vector<std::unique_ptr<Pending>> gathers;
  for (std::size_t bucket = 0; bucket < state.shards.size(); ++bucket) {
    state.update_shard(bucket, lr, factor);
    gathers.push_back(state.gather(state.shards[bucket]));
  }
  for (auto& gather : gathers) gather->wait();
  return {.grad_norm = norm, .skipped = false};
}

std::int64_t ShardedAdamW::num_updates() const { return state_->num_updates; }

void ShardedAdamW::set_num_updates(std::int64_t count) {
  require(count >= 0, "optimizer", "num_updates is {}, must not be negative", count);
  state_->num_updates = count;
}

std::vector<StatePiece> ShardedAdamW::pieces() {
  std::vector<StatePiece> pieces;
  state_->visit_pieces([&](std::size_t bucket, const std::string& parameter, std::int64_t begin,
                           std::int64_t offset, std::int64_t count) {
    const State::Shard& shard = state_->shards[bucket];
    const auto add = [&](std::string_view kind, const at::Tensor& values) {
      pieces.push_back({parameter, kind, begin, values.narrow(0, offset, count)});
    };
    add("master", shard.master);
    add("exp_avg", shard.exp_avg);
    add("exp_avg_sq", shard.exp_avg_sq);
  });
  return pieces;
}

void ShardedAdamW::publish_weights() {
  const at::NoGradGuard no_gradient;
  for (State::Shard& shard : state_->shards) {
    if (!shard.own_weights.is_same(shard.master)) shard.own_weights.copy_(shard.master);
    state_->gather(shard)->wait();
  }
}

std::int64_t ShardedAdamW::state_bytes() const {
  std::int64_t bytes = 0;
  for (const State::Shard& shard : state_->shards) {
    for (const at::Tensor& values : {shard.master, shard.exp_avg, shard.exp_avg_sq}) {
      bytes += static_cast<std::int64_t>(values.nbytes());
    }
  }
  return bytes;
}

std::vector<StatePiece> ShardedAdamW::gradients() {
  std::vector<StatePiece> pieces;
  state_->visit_pieces([&](std::size_t bucket, const std::string& parameter, std::int64_t begin,
                           std::int64_t offset, std::int64_t count) {
    pieces.push_back(
        {parameter, "gradient", begin, state_->gradients.shard(bucket).narrow(0, offset, count)});
  });
  return pieces;
}

}  // namespace isochron
