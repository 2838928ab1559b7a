#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <vector>

namespace isochron {

// Many short lists, kept one behind the other: thousands of them are two allocations. Only the last
// one grows.
template <class T>
class Lists {
 public:
  Lists() = default;
  Lists(std::initializer_list<std::initializer_list<T>> lists) {
    for (const auto& list : lists) push_back(list);
  }

  [[nodiscard]] std::size_t size() const { return ends_.size(); }
  [[nodiscard]] bool empty() const { return ends_.empty(); }
  [[nodiscard]] std::span<const T> operator[](std::size_t place) const {
    const std::size_t begin = place == 0 ? 0 : ends_[place - 1];
    return std::span(values_).subspan(begin, ends_[place] - begin);
  }
  // All lists together.
  [[nodiscard]] std::span<const T> values() const { return values_; }

  void reserve(std::size_t num_lists, std::size_t num_values) {
    ends_.reserve(num_lists);
    values_.reserve(num_values);
  }
  void push_back(std::span<const T> list) {
    values_.insert(values_.end(), list.begin(), list.end());
    ends_.push_back(values_.size());
  }
  void push_back(std::initializer_list<T> list) { push_back(std::span(list.begin(), list.size())); }
  // Adds to the last list, which there is.
  void extend(const T& value) {
    values_.push_back(value);
    ++ends_.back();
  }

 private:
  std::vector<T> values_;
  std::vector<std::size_t> ends_;
};

}  // namespace isochron
