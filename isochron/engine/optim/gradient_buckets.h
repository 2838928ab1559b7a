#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "isochron/engine/model/decoder.h"
#include "isochron/engine/optim/bucket_layout.h"
#include "isochron/engine/parallel/communicator.h"
#include "isochron/engine/profile/tracer.h"

namespace isochron {

// Collects the gradients of parameters in flat fp32 buckets as backwards produce them, and sums
// each bucket over the ranks: one after the other, in one order on every rank.
class GradientBuckets {
 public:
  // Takes the gradients of the parameters over: param.grad() belongs to it from here on.
  GradientBuckets(const std::vector<Parameter>& parameters, std::vector<BucketLayout> layouts,
                  Communicator& ranks, Tracer* tracer);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  void begin();  // gradients are zero
  // With `overlap` a bucket is reduced as soon as it and all before it are complete, inside the
  // backward; a parameter then gets at most one gradient from here on.
  void begin_last_backward(bool overlap);

  // Reduces what is not yet and waits; calls `reduced` with each bucket, in order.
  void finish(const std::function<void(std::size_t bucket)>& reduced);

  [[nodiscard]] const std::vector<BucketLayout>& layouts() const { return layouts_; }
  // This rank's elements of a bucket: summed over the ranks between finish() and begin().
  [[nodiscard]] const at::Tensor& shard(std::size_t bucket) const { return buckets_[bucket].shard; }

 private:
  enum class Phase { idle, accumulating, last_backward };

  struct Bucket {
    at::Tensor gradients;  // all of it
    at::Tensor shard;
    std::size_t num_missing = 0;  // parameters without a gradient in the last backward
    std::unique_ptr<Pending> pending;
    std::optional<Tracer::Scope> scope;  // from issue to wait
  };

  class Hook;
  void attach(std::size_t parameter);
  void receive(std::size_t parameter);  // a gradient has arrived
  void reduce_complete_ones();
  void issue(std::size_t bucket);
  void await(std::size_t bucket);

  std::vector<Parameter> parameters_;
  std::vector<BucketLayout> layouts_;
  Communicator& ranks_;
  Tracer* tracer_;
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> bucket_of_;  // parameter
  std::vector<at::Tensor> slice_of_;    // parameter: its elements of the bucket, in its shape
  std::vector<bool> is_stale_;          // parameter: its slice holds the step before
  std::vector<bool> is_complete_;       // parameter: it got its gradient of the last backward
  Phase phase_ = Phase::idle;
  bool overlaps_ = false;
  std::size_t num_issued_ = 0;
};

}  // namespace isochron
