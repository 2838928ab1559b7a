#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "isochron/engine/parallel/communicator.h"

namespace isochron {

// What a rank issued, in order, over all its communicators.
class CollectiveLog {
 public:
  explicit CollectiveLog(bool is_on) : is_on_(is_on) {}

  void add(IssuedCollective collective) {
    if (!is_on_) return;
    const std::lock_guard lock(mutex_);
    issued_.push_back(std::move(collective));
  }

  [[nodiscard]] std::vector<IssuedCollective> issued() const {
    const std::lock_guard lock(mutex_);
    return issued_;
  }

 private:
  bool is_on_;
  mutable std::mutex mutex_;  // backward hooks run in threads of autograd
  std::vector<IssuedCollective> issued_;
};

}  // namespace isochron
