#include "isochron/engine/parallel/watched_group.h"

#include <stdexcept>
#include <utility>
#include <vector>

#include "isochron/core/require.h"
#include "isochron/engine/parallel/error_text.h"

namespace isochron {

namespace {

using Clock = std::chrono::steady_clock;

class WatchedGroup final : public Communicator {
 public:
  WatchedGroup(std::string name, std::int32_t first_rank, std::int32_t rank, std::int32_t size,
               std::unique_ptr<Channel> channel, Heartbeat& heartbeat, HangWatch& hang_watch,
               CollectiveLog& log)
      : name_(std::move(name)),
        first_rank_(first_rank),
        rank_(rank),
        size_(size),
        channel_(std::move(channel)),
        heartbeat_(heartbeat),
        hang_watch_(hang_watch),
        log_(log) {}

  [[nodiscard]] std::int32_t rank() const override { return rank_; }
  [[nodiscard]] std::int32_t size() const override { return size_; }
  [[nodiscard]] const std::string& name() const override { return name_; }

  void all_reduce_sum(at::Tensor& values, std::string_view what) override {
    all_reduce(values, c10d::ReduceOp::SUM, what);
  }

  void all_reduce_max(at::Tensor& values, std::string_view what) override {
    all_reduce(values, c10d::ReduceOp::MAX, what);
  }

  void broadcast(at::Tensor& values, std::int32_t root, std::string_view what) override {
    start(issue(values, what), [&] { return channel_->broadcast(values, root); })->wait();
  }

  std::unique_ptr<Pending> all_gather(at::Tensor& all, std::string_view what) override {
    require_parts(all, what);
    return start(issue(all, what), [&] { return channel_->all_gather(all); });
  }

  std::unique_ptr<Pending> reduce_scatter_sum(at::Tensor& part, at::Tensor& all,
                                              std::string_view what) override {
    require_parts(all, what);
    require(part.numel() * size_ == all.numel(), "communicator",
            "{} of {}: the part has {} elements, must have {}", what, name_, part.numel(),
            all.numel() / size_);
    return start(issue(all, what), [&] { return channel_->reduce_scatter_sum(part, all); });
  }

  std::unique_ptr<Pending> all_to_all(at::Tensor& received, at::Tensor& sent,
                                      std::string_view what) override {
    require_parts(sent, what);
    require(received.numel() == sent.numel() && received.dtype() == sent.dtype(), "communicator",
            "{} of {}: {} elements of {} are received, must be {} of {} like those that are sent",
            what, name_, received.numel(), received.dtype().name(), sent.numel(),
            sent.dtype().name());
    return start(issue(sent, what), [&] { return channel_->all_to_all(received, sent); });
  }

 private:
  struct Issued {
    std::string what;
    std::int64_t number = 0;
    Clock::time_point time;
  };

  class WatchedPending final : public Pending {
   public:
    WatchedPending(WatchedGroup& group, Issued issued, std::unique_ptr<Pending> pending)
        : group_(group), issued_(std::move(issued)), pending_(std::move(pending)) {}
    void wait() override {
      group_.watch(issued_, [&] { pending_->wait(); });
      group_.watch_device(issued_);
    }

   private:
    WatchedGroup& group_;
    Issued issued_;
    std::unique_ptr<Pending> pending_;
  };

  void require_parts(const at::Tensor& all, std::string_view what) const {
    require(all.numel() % size_ == 0, "communicator",
            "{} of {}: {} elements do not divide into {} parts", what, name_, all.numel(), size_);
  }

  Issued issue(const at::Tensor& values, std::string_view what) {
    log_.add({.communicator = name_,
              .first_rank = first_rank_,
              .num_ranks = size_,
              .operation = std::string(what),
              .elements = values.numel()});
    return {.what = std::string(what),
            .number = heartbeat_.count_collective(name_),
            .time = Clock::now()};
  }

  void all_reduce(at::Tensor& values, c10d::ReduceOp::RedOpType operation, std::string_view what) {
    start(issue(values, what), [&] { return channel_->all_reduce(values, operation); })->wait();
  }

  template <class Start>
  std::unique_ptr<Pending> start(Issued issued, Start begin) {
    std::unique_ptr<Pending> pending;
    watch(issued, [&] { pending = begin(); });
    return std::make_unique<WatchedPending>(*this, std::move(issued), std::move(pending));
  }

  template <class Call>
  void watch(const Issued& issued, Call call) {
    try {
      call();
    } catch (const std::exception& error) {
      const double seconds = std::chrono::duration<double>(Clock::now() - issued.time).count();
      throw std::runtime_error(failure_text(
          issued.what, name_, seconds, heartbeat_.find_culprit(failed(issued)), one_line(error)));
    }
  }

  void watch_device(const Issued& issued) {
    if (auto is_done = channel_->completion()) {
      hang_watch_.add({.what = issued.what,
                       .collective = failed(issued),
                       .is_done = std::move(is_done),
                       .since = Clock::now()});
    }
  }

  [[nodiscard]] FailedCollective failed(const Issued& issued) const {
    return {.communicator = name_,
            .first_rank = first_rank_,
            .num_ranks = size_,
            .number = issued.number};
  }

  std::string name_;
  std::int32_t first_rank_;
  std::int32_t rank_;
  std::int32_t size_;
  std::unique_ptr<Channel> channel_;
  Heartbeat& heartbeat_;
  HangWatch& hang_watch_;
  CollectiveLog& log_;
};

}  // namespace

std::unique_ptr<Communicator> watched_group(std::string name, std::int32_t first_rank,
                                            std::int32_t rank, std::int32_t size,
                                            std::unique_ptr<Channel> channel, Heartbeat& heartbeat,
                                            HangWatch& hang_watch, CollectiveLog& log) {
  return std::make_unique<WatchedGroup>(std::move(name), first_rank, rank, size, std::move(channel),
                                        heartbeat, hang_watch, log);
}

}  // namespace isochron
