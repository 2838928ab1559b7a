#include "isochron/engine/parallel/network.h"

#include <vector>

namespace isochron {

std::unique_ptr<Pending> all_reduce_of(c10d::Backend& backend, at::Tensor& values,
                                       c10d::ReduceOp::RedOpType operation) {
  std::vector<at::Tensor> tensors{values};
  c10d::AllreduceOptions options;
  options.reduceOp = operation;
  return std::make_unique<PendingWork>(backend.allreduce(tensors, options));
}

std::unique_ptr<Pending> broadcast_of(c10d::Backend& backend, at::Tensor& values,
                                      std::int32_t root) {
  std::vector<at::Tensor> tensors{values};
  c10d::BroadcastOptions options;
  options.rootRank = root;
  return std::make_unique<PendingWork>(backend.broadcast(tensors, options));
}

}  // namespace isochron
