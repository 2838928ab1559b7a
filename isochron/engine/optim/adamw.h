#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "isochron/engine/model/decoder.h"
#include "isochron/engine/parallel/communicator.h"
#include "isochron/engine/profile/tracer.h"

namespace isochron {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;  // decoupled; of every parameter, as torch's AdamW does
  double clip_grad = 1.0;      // largest global L2 norm of the gradients
  std::int64_t bucket_bytes = std::int64_t{32} << 20;  // of fp32 gradients
};

// A part of the optimizer's state that this rank holds: elements [begin, begin + values.numel()) of
// a parameter, flattened. `values` is a 1-D fp32 view of the state itself.
struct StatePiece {
  std::string parameter;
  std::string_view kind;  // "master", "exp_avg", "exp_avg_sq"; "gradient"
  std::int64_t begin = 0;
  at::Tensor values;
};

struct UpdateOutcome {
  double grad_norm = 0;  // of the whole gradient, before clipping
  bool skipped = false;  // it was not finite: no weight changed, on no rank
};

// AdamW whose state is spread evenly over the ranks (ZeRO-1). Gradients accumulate in fp32 in flat
// buckets, in one fixed order, are summed over the ranks into shards, and each rank updates its
// shard of fp32 master weights and gathers the rest.
//
//   optimizer.begin();                       // gradients are zero
//   ..backward of every micro-batch but the last..
//   optimizer.begin_last_backward(overlap);  // every parameter gets its last gradient from here on
//   ..backward of the last micro-batch, if there is one..
//   optimizer.finish(lr);
class ShardedAdamW {
 public:
  // Takes the values of the parameters as master weights, those of rank 0 on every rank. They are
  // contiguous leaves that require a gradient, in the order of the forward; they become views of
  // flat memory, and their gradients belong to the optimizer. `ranks` and `tracer`, which gets
  // scopes "reduce" (a bucket, from issue to arrival) and "optimizer", outlive it.
  ShardedAdamW(std::vector<Parameter> parameters, Communicator& ranks, const AdamWOptions& options,
               Tracer* tracer = nullptr);
  ~ShardedAdamW();
  ShardedAdamW(const ShardedAdamW&) = delete;
  ShardedAdamW& operator=(const ShardedAdamW&) = delete;

  void begin();
  // With `overlap` a bucket is reduced as soon as it and all before it are complete. Buckets are
  // reduced in the same order with and without, so ranks may differ in it. With `overlap` a
  // parameter gets at most one gradient from here on; one that gets none counts with what it has.
  void begin_last_backward(bool overlap);
  // Reduces what is not yet, clips, updates with learning rate `lr`, gathers the weights.
  [[nodiscard]] UpdateOutcome finish(double lr);

  [[nodiscard]] std::int64_t num_updates() const;  // counts every finish() that was not skipped
  void set_num_updates(std::int64_t count);        // when resuming

  // This rank's share of the state, in a fixed order: written out as it is, or filled when
  // resuming. Over all ranks every element of every parameter occurs once per kind.
  [[nodiscard]] std::vector<StatePiece> pieces();
  // After pieces() were filled: gathers the weights of all ranks into the parameters.
  void publish_weights();

  [[nodiscard]] std::int64_t state_bytes() const;  // of this rank's masters and moments

  // This rank's share of the gradient that finish() summed over the ranks, before clipping, of kind
  // "gradient"; until begin().
  [[nodiscard]] std::vector<StatePiece> gradients();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace isochron
