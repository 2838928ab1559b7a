#include "isochron/engine/parallel/staged_channel.h"

#include <ATen/Functions.h>

#include <utility>

namespace isochron {

namespace {

// Uninitialised, and where a copy from and to the device is fastest.
at::Tensor host_like(const at::Tensor& values) {
  return at::empty(values.sizes(), values.options().device(at::kCPU).pinned_memory(true));
}

at::Tensor host_copy(const at::Tensor& values) { return host_like(values).copy_(values); }

// `on_host` becomes `values` when the collective has ended.
class StagedPending final : public Pending {
 public:
  StagedPending(std::unique_ptr<Pending> pending, at::Tensor values, at::Tensor on_host)
      : pending_(std::move(pending)), values_(std::move(values)), on_host_(std::move(on_host)) {}

  void wait() override {
    pending_->wait();
    values_.copy_(on_host_);
  }

 private:
  std::unique_ptr<Pending> pending_;
  at::Tensor values_;
  at::Tensor on_host_;
};

class StagedChannel final : public Channel {
 public:
  explicit StagedChannel(std::unique_ptr<Channel> host_channel) : host_(std::move(host_channel)) {}

  std::unique_ptr<Pending> all_reduce(at::Tensor& values,
                                      c10d::ReduceOp::RedOpType operation) override {
    at::Tensor on_host = host_copy(values);
    return staged(host_->all_reduce(on_host, operation), values, on_host);
  }

  std::unique_ptr<Pending> broadcast(at::Tensor& values, std::int32_t root) override {
    at::Tensor on_host = host_copy(values);
    return staged(host_->broadcast(on_host, root), values, on_host);
  }

  std::unique_ptr<Pending> all_gather(at::Tensor& all) override {
    at::Tensor on_host = host_copy(all);
    return staged(host_->all_gather(on_host), all, on_host);
  }

  std::unique_ptr<Pending> reduce_scatter_sum(at::Tensor& part, at::Tensor& all) override {
    at::Tensor all_on_host = host_copy(all);
    at::Tensor part_on_host = host_like(part);
    return staged(host_->reduce_scatter_sum(part_on_host, all_on_host), part, part_on_host);
  }

  std::unique_ptr<Pending> all_to_all(at::Tensor& received, at::Tensor& sent) override {
    at::Tensor sent_on_host = host_copy(sent);
    at::Tensor received_on_host = host_like(received);
    return staged(host_->all_to_all(received_on_host, sent_on_host), received, received_on_host);
  }

 private:
  static std::unique_ptr<Pending> staged(std::unique_ptr<Pending> pending, at::Tensor values,
                                         at::Tensor on_host) {
    return std::make_unique<StagedPending>(std::move(pending), std::move(values),
                                           std::move(on_host));
  }

  std::unique_ptr<Channel> host_;
};

}  // namespace

std::unique_ptr<Channel> staged_channel(std::unique_ptr<Channel> host_channel) {
  return std::make_unique<StagedChannel>(std::move(host_channel));
}

}  // namespace isochron
