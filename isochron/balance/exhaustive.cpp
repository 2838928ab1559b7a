// Depth-first branch and bound over all assignments: the proof for a handful of units.
//
// The dearest unit not yet placed goes to every bin that may take it; of bins that are equal in
// cost, tokens, size and count one is tried, so that k! orders of the bins are one case. A branch
// ends where a bin would cost as much as the best assignment known, or where the units left over
// cannot fill what the bins still need.

#include <algorithm>

#include "isochron/balance/assignment.h"

namespace isochron {

namespace {

class Search {
 public:
  Search(const Units& units, const DearestFirst& order, std::int32_t num_bins, const Limits& limits,
         Nanoseconds target, std::int64_t& work, std::optional<BinOf>& best)
      : units_(units),
        order_(order.units),
        limits_(limits),
        target_(target),
        work_(work),
        best_(best),
        state_(static_cast<std::size_t>(num_bins)),
        bin_of_(units.count()),
        missing_(static_cast<std::int64_t>(limits.min_units) * num_bins) {
    if (best) best_cost_ = largest_cost(units, num_bins, *best);
  }

  SearchEnd run() {
    place(0, 0);
    return work_ > 0 || is_done() ? SearchEnd::complete : SearchEnd::out_of_work;
  }

 private:
  struct State {
    Nanoseconds cost = 0;
    Tokens tokens = 0;
    std::int64_t size = 0;
    std::int32_t count = 0;
    bool operator==(const State&) const = default;
  };

  [[nodiscard]] bool is_done() const { return best_ && best_cost_ <= target_; }

  void place(std::size_t depth, Nanoseconds largest) {
    if (depth == order_.size()) {
      if (missing_ == 0) keep(largest);
      return;
    }
    const auto id = static_cast<std::size_t>(order_[depth]);
    for (std::size_t bin = 0; bin < state_.size(); ++bin) {
      if (--work_ <= 0 || is_done()) return;
      State& state = state_[bin];
      if (std::find(state_.begin(), state_.begin() + static_cast<std::ptrdiff_t>(bin), state) !=
          state_.begin() + static_cast<std::ptrdiff_t>(bin)) {
        continue;
      }
      const Nanoseconds cost = state.cost + units_.costs[id];
      if (best_ && cost >= best_cost_) continue;
      if (state.tokens + units_.tokens_of(id) > limits_.capacity) continue;
      if (state.size + units_.size_of(id) > limits_.max_size || state.count >= limits_.max_units)
        continue;
      const bool fills = state.count < limits_.min_units;
      const auto left = static_cast<std::int64_t>(order_.size() - depth) - 1;
      if (missing_ - (fills ? 1 : 0) > left) continue;
      const State before = state;
      state = {cost, state.tokens + units_.tokens_of(id), state.size + units_.size_of(id),
               state.count + 1};
      missing_ -= fills ? 1 : 0;
      bin_of_[id] = static_cast<std::int32_t>(bin);
      place(depth + 1, std::max(largest, cost));
      state_[bin] = before;
      missing_ += fills ? 1 : 0;
    }
  }

  void keep(Nanoseconds largest) {
    best_cost_ = largest;
    best_ = bin_of_;
  }

  const Units& units_;
  std::span<const std::int32_t> order_;
  const Limits& limits_;
  Nanoseconds target_;
  std::int64_t& work_;
  std::optional<BinOf>& best_;
  Nanoseconds best_cost_ = 0;
  std::vector<State> state_;
  BinOf bin_of_;
  std::int64_t missing_;  // units that bins still need to reach min_units
};

}  // namespace

SearchEnd search_all(const Units& units, const DearestFirst& order, std::int32_t num_bins,
                     const Limits& limits, Nanoseconds target, std::int64_t& work,
                     std::optional<BinOf>& best) {
  return Search(units, order, num_bins, limits, target, work, best).run();
}

}  // namespace isochron
