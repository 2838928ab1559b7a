#include "isochron/engine/parallel/single_rank.h"

#include <utility>

namespace isochron {

namespace {

class Done final : public Pending {
 public:
  void wait() override {}
};

class SingleRank final : public Communicator {
 public:
  SingleRank(std::string name, std::int32_t rank, CollectiveLog& log)
      : name_(std::move(name)), world_rank_(rank), log_(log) {}

  [[nodiscard]] std::int32_t rank() const override { return 0; }
  [[nodiscard]] std::int32_t size() const override { return 1; }
  [[nodiscard]] const std::string& name() const override { return name_; }

  void all_reduce_sum(at::Tensor& values, std::string_view what) override { add(what, values); }
  void all_reduce_max(at::Tensor& values, std::string_view what) override { add(what, values); }
  void broadcast(at::Tensor& values, std::int32_t, std::string_view what) override {
    add(what, values);
  }
  std::unique_ptr<Pending> all_gather(at::Tensor& all, std::string_view what) override {
    add(what, all);
    return std::make_unique<Done>();
  }
  std::unique_ptr<Pending> reduce_scatter_sum(at::Tensor& part, at::Tensor& all,
                                              std::string_view what) override {
    add(what, all);
    if (part.data_ptr() != all.data_ptr()) part.view(-1).copy_(all.view(-1));
    return std::make_unique<Done>();
  }
  std::unique_ptr<Pending> all_to_all(at::Tensor& received, at::Tensor& sent,
                                      std::string_view what) override {
    add(what, sent);
    received.view(-1).copy_(sent.view(-1));
    return std::make_unique<Done>();
  }

 private:
  void add(std::string_view what, const at::Tensor& values) {
    log_.add({.communicator = name_,
              .first_rank = world_rank_,
              .num_ranks = 1,
              .operation = std::string(what),
              .elements = values.numel()});
  }

  std::string name_;
  std::int32_t world_rank_;
  CollectiveLog& log_;
};

}  // namespace

std::unique_ptr<Communicator> single_rank(std::string name, std::int32_t rank, CollectiveLog& log) {
  return std::make_unique<SingleRank>(std::move(name), rank, log);
}

}  // namespace isochron
