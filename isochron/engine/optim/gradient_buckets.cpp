// An fp32 parameter's gradient is a view of its bucket, so autograd adds into the bucket itself and
// nothing is copied. The gradient of another dtype is added to the bucket in fp32 as soon as it is
// there, and freed. The first of a step takes the place of what the bucket held, so that most of a
// bucket is never zeroed.

#include "isochron/engine/optim/gradient_buckets.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <utility>

#include "isochron/core/require.h"
#include "isochron/engine/optim/flat_update.h"

namespace isochron {

class GradientBuckets::Hook final : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(GradientBuckets& buckets, std::size_t parameter)
      : buckets_(buckets), parameter_(parameter) {}
  void operator()(const at::Tensor&) override { buckets_.receive(parameter_); }

 private:
  GradientBuckets& buckets_;
  std::size_t parameter_;
};

GradientBuckets::GradientBuckets(const std::vector<Parameter>& parameters,
                                 std::vector<BucketLayout> layouts, Communicator& ranks,
                                 Tracer* tracer)
    : parameters_(parameters),
      layouts_(std::move(layouts)),
      ranks_(ranks),
      tracer_(tracer),
      bucket_of_(parameters.size()),
      slice_of_(parameters.size()),
      is_stale_(parameters.size(), false) {
  for (std::size_t i = 0; i < layouts_.size(); ++i) {
    const BucketLayout& layout = layouts_[i];
    const at::Tensor& first = parameters_[layout.slices.front().parameter].value;
    Bucket& bucket = buckets_.emplace_back();
    bucket.gradients =
        at::zeros({layout.width * ranks.size()}, at::device(first.device()).dtype(at::kFloat));
    bucket.shard = bucket.gradients.narrow(0, ranks.rank() * layout.width, layout.width);
    for (const BucketSlice& slice : layout.slices) {
      bucket_of_[slice.parameter] = i;
      slice_of_[slice.parameter] = bucket.gradients.narrow(0, slice.begin, slice.count)
                                       .view(parameters_[slice.parameter].value.sizes());
    }
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    attach(i);
    torch::autograd::impl::set_post_acc_grad_hooks(parameters_[i].value,
                                                   std::make_unique<Hook>(*this, i));
  }
}

GradientBuckets::~GradientBuckets() {
  for (Parameter& parameter : parameters_) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameter.value, nullptr);
    parameter.value.mutable_grad() = at::Tensor();
  }
}

void GradientBuckets::attach(std::size_t parameter) {
  at::Tensor& value = parameters_[parameter].value;
  value.mutable_grad() = value.scalar_type() == at::kFloat ? slice_of_[parameter] : at::Tensor();
}

void GradientBuckets::begin() {
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    // One dtype in a bucket.
    const at::Tensor& first = parameters_[layouts_[i].slices.front().parameter].value;
    const bool is_added_to = first.scalar_type() == at::kFloat;
    if (is_added_to) buckets_[i].gradients.zero_();
    for (const BucketSlice& slice : layouts_[i].slices) is_stale_[slice.parameter] = !is_added_to;
    buckets_[i].pending.reset();
    buckets_[i].scope.reset();
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) attach(i);
  num_issued_ = 0;
  phase_ = Phase::accumulating;
}

void GradientBuckets::begin_last_backward(bool overlap) {
  require(phase_ == Phase::accumulating, "optimizer", "begin_last_backward() comes after begin(){}",
          phase_ == Phase::last_backward ? ", once" : "");
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    buckets_[i].num_missing = layouts_[i].slices.size();
  }
  is_complete_.assign(parameters_.size(), false);
  overlaps_ = overlap;
  phase_ = Phase::last_backward;
}

void GradientBuckets::receive(std::size_t parameter) {
  const std::string& name = parameters_[parameter].name;
  require(phase_ != Phase::idle, "optimizer", "a gradient of {} came before begin()", name);
  const bool is_reducing = phase_ == Phase::last_backward && overlaps_;
  require(!is_reducing || !is_complete_[parameter], "optimizer",
          "{} got a second gradient in the last backward, where its bucket is reduced", name);
  at::Tensor& gradient = parameters_[parameter].value.mutable_grad();
  if (!gradient.is_same(slice_of_[parameter])) {
    accumulate_(slice_of_[parameter], gradient, is_stale_[parameter] ? Onto::zero : Onto::sum);
    is_stale_[parameter] = false;
    attach(parameter);
  }
  if (!is_reducing) return;
  is_complete_[parameter] = true;
  --buckets_[bucket_of_[parameter]].num_missing;
  reduce_complete_ones();
}

void GradientBuckets::reduce_complete_ones() {
  while (num_issued_ < buckets_.size() && buckets_[num_issued_].num_missing == 0) {
    issue(num_issued_);
  }
}

void GradientBuckets::issue(std::size_t bucket) {
  Bucket& it = buckets_[bucket];
  const auto is_stale = [&](const BucketSlice& slice) { return is_stale_[slice.parameter]; };
  const std::vector<BucketSlice>& slices = layouts_[bucket].slices;
  if (std::ranges::all_of(slices, is_stale)) {
    it.gradients.zero_();
  } else {
    for (const BucketSlice& slice : slices) {
      if (is_stale(slice)) slice_of_[slice.parameter].zero_();
    }
  }
  if (tracer_ != nullptr) it.scope.emplace(tracer_->scope("reduce"));
  it.pending = ranks_.reduce_scatter_sum(it.shard, it.gradients, "reduce");
  ++num_issued_;
}

void GradientBuckets::await(std::size_t bucket) {
  buckets_[bucket].pending->wait();
  buckets_[bucket].pending.reset();
  buckets_[bucket].scope.reset();
}

void GradientBuckets::finish(const std::function<void(std::size_t bucket)>& reduced) {
  require(phase_ == Phase::last_backward, "optimizer", "finish() comes after {}",
          "begin_last_backward()");
  phase_ = Phase::idle;
  // One bucket travels while the one before is summed; more would only hold more memory.
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    while (num_issued_ < std::min(bucket + 2, buckets_.size())) issue(num_issued_);
    await(bucket);
    reduced(bucket);
  }
}

}  // namespace isochron
