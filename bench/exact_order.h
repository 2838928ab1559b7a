#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "isochron/simulate/chunk_cost.h"

namespace isochron {

// The least time in which a pipeline of equal stages, without virtual ones and transfers, trains
// micro-batches in some order: branch and bound over the slots, first to last.
//
// In wave n a stage with e stages behind it runs the forward of slot n and the backward of slot
// n - e. What is free when after a wave decides all later ones; every stage has all the rest before
// it, and the last micro-batch then goes up to the first stage.
class ExactOrder {
 public:
  ExactOrder(std::span<const PassCost> costs, std::int32_t stages)
      : num_stages_(static_cast<std::size_t>(stages)), is_used_(costs.size(), false) {
    const PipelineShape shape = {.stages = stages};
    for (const PassCost& cost : costs) {
      forwards_.push_back(chunk_cost(shape, cost.forward, 0));
      backwards_.push_back(chunk_cost(shape, cost.backward, 0));
    }
  }

  // `known` is the time of some order. Gives up after `max_nodes` orders of the first slots, and
  // then returns 0.
  [[nodiscard]] Nanoseconds best_time(Nanoseconds known, std::int64_t max_nodes) {
    best_ = known;
    nodes_left_ = max_nodes;
    std::vector<Nanoseconds> rest(num_stages_, 0);
    for (std::size_t i = 0; i < forwards_.size(); ++i) {
      for (Nanoseconds& work : rest) work += forwards_[i] + backwards_[i];
    }
    search(std::vector<Nanoseconds>(num_stages_, 0), rest);
    return nodes_left_ > 0 ? best_ : 0;
  }

 private:
  struct Child {
    Nanoseconds bound = 0;
    std::size_t item = 0;
    std::vector<Nanoseconds> free = {};
    std::vector<Nanoseconds> rest = {};
  };

  void search(const std::vector<Nanoseconds>& free, const std::vector<Nanoseconds>& rest) {
    if (--nodes_left_ <= 0) return;
    std::vector<Child> children;
    for (std::size_t item = 0; item < forwards_.size(); ++item) {
      if (is_used_[item]) continue;
      Child child = {.item = item, .free = free, .rest = rest};
      order_.push_back(item);
      is_used_[item] = true;
      run_wave(child);
      if (order_.size() == forwards_.size()) {
        // Nothing is left to choose: the backwards run out.
        for (std::size_t wave = 1; wave < num_stages_; ++wave) drain(wave, child.free);
        best_ = std::min(best_, child.free.front());
      } else {
        child.bound = bound_of(child);
        if (child.bound < best_) children.push_back(std::move(child));
      }
      is_used_[item] = false;
      order_.pop_back();
    }
    std::stable_sort(children.begin(), children.end(),
                     [](const Child& a, const Child& b) { return a.bound < b.bound; });
    for (const Child& child : children) {
      if (child.bound >= best_) break;
      order_.push_back(child.item);
      is_used_[child.item] = true;
      search(child.free, child.rest);
      is_used_[child.item] = false;
      order_.pop_back();
    }
  }

  void run_wave(Child& child) const {
    const std::vector<Nanoseconds> before = child.free;
    Nanoseconds end = 0;
    for (std::size_t stage = 0; stage < num_stages_; ++stage) {
      end = std::max(child.free[stage], end) + forwards_[order_.back()];
      child.free[stage] = end;
      child.rest[stage] -= forwards_[order_.back()];
    }
    for (std::size_t stage = 0; stage < num_stages_; ++stage) {
      const std::size_t behind = num_stages_ - 1 - stage;
      if (behind >= order_.size()) continue;
      const Nanoseconds backward = backwards_[order_[order_.size() - 1 - behind]];
      const Nanoseconds arrived = behind == 0 ? 0 : before[stage + 1];
      child.free[stage] = std::max(child.free[stage], arrived) + backward;
      child.rest[stage] -= backward;
    }
  }

  void drain(std::size_t wave, std::vector<Nanoseconds>& free) const {
    const std::vector<Nanoseconds> before = free;
    for (std::size_t stage = 0; stage + wave < num_stages_; ++stage) {
      const std::size_t behind = num_stages_ - 1 - stage;
      if (behind >= order_.size() + wave) continue;
      const Nanoseconds backward = backwards_[order_[order_.size() - 1 + wave - behind]];
      free[stage] = std::max(free[stage], before[stage + 1]) + backward;
    }
  }

  [[nodiscard]] Nanoseconds bound_of(const Child& child) const {
    Nanoseconds last = backwards_[0];  // of what comes last, at least
    bool is_first = true;
    for (std::size_t item = 0; item < backwards_.size(); ++item) {
      if (is_used_[item]) continue;
      last = is_first ? backwards_[item] : std::min(last, backwards_[item]);
      is_first = false;
    }
    Nanoseconds bound = 0;
    for (std::size_t stage = 0; stage < num_stages_; ++stage) {
      bound = std::max(
          bound, child.free[stage] + child.rest[stage] + static_cast<Nanoseconds>(stage) * last);
    }
    return bound;
  }

  std::size_t num_stages_;
  std::vector<Nanoseconds> forwards_;
  std::vector<Nanoseconds> backwards_;
  std::vector<std::size_t> order_;
  std::vector<bool> is_used_;
  Nanoseconds best_ = 0;
  std::int64_t nodes_left_ = 0;
};

}  // namespace isochron
