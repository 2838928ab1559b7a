#pragma once

#include <cstddef>
#include <map>
#include <mutex>

namespace isochron {

// Answers of a function that depend on nothing but its key, for all threads of a process. The
// function may be asked twice for a key; when there are more than `most` answers all are forgotten.
template <class Key, class Value>
class Memo {
 public:
  explicit Memo(std::size_t most) : most_(most) {}

  template <class Make>
  [[nodiscard]] Value of(const Key& key, Make make) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = known_.find(key); found != known_.end()) return found->second;
    }
    Value value = make();
    const std::lock_guard lock(mutex_);
    if (known_.size() >= most_) known_.clear();
    known_.emplace(key, value);
    return value;
  }

 private:
  std::size_t most_;
  std::mutex mutex_;
  std::map<Key, Value> known_;
};

}  // namespace isochron
