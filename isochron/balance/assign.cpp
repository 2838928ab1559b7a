// Starts, refinement, proof: the order in which assign() tries.
//
// Longest first, refined, is the answer nearly always. Karmarkar-Karp runs where it might be
// better. With equal counts that is rare, because it gives every bin one of each k neighbours in
// sorted order, the dearest unit's too: so its sums run first, without the sets behind them.

#include <algorithm>
#include <functional>

#include "isochron/balance/assignment.h"
#include "isochron/balance/karmarkar_karp.h"

namespace isochron {

namespace {

// Work of refine(): near the cost of the starts; where the spread counts, there is more to do.
std::int64_t default_work(std::size_t num_units, RefineGoal goal) {
  const auto n = static_cast<std::int64_t>(num_units);
  return goal == RefineGoal::largest ? 24 * n : std::min<std::int64_t>(256 * n, 16'000'000);
}

// Stops 2^-11 above the bound: 0.05 % of a step is below what a cluster's clock can see.
constexpr Nanoseconds near_enough = 1 << 11;
// Within proof_work all assignments of 10 units are seen, and of 12 what branch and bound leaves.
constexpr std::size_t few_units = 12;
constexpr std::int64_t proof_work = 400'000;
constexpr std::size_t cheap_units = 2048;

// Whether Karmarkar-Karp with equal counts ends below `cost`. Sums never shrink, so the first one
// that reaches the cost decides. Where it is not plain which states merge next, says that it may.
bool may_end_below(Nanoseconds cost, const DearestFirst& order, std::int32_t num_bins) {
  const auto k = static_cast<std::size_t>(num_bins);
  // The bin of the dearest unit takes at least the cheapest one of every other block.
  Nanoseconds least = order.costs.front();
  for (std::size_t last = 2 * k - 1; last < order.costs.size(); last += k)
    least += order.costs[last];
  if (least >= cost) return false;

  struct State {
    std::vector<Nanoseconds> sums;  // descending
    [[nodiscard]] auto key() const { return std::pair(sums.front() - sums.back(), sums.front()); }
  };
  std::vector<State> states;  // a heap by key
  const auto is_later = [](const State& a, const State& b) { return a.key() < b.key(); };
  // Blocks from the cheapest unit up; units of no cost fill the first one.
  for (std::size_t end = order.costs.size(); end > 0;) {
    const std::size_t begin = (end - 1) / k * k;
    State& state = states.emplace_back();
    state.sums.assign(order.costs.begin() + static_cast<std::ptrdiff_t>(begin),
                      order.costs.begin() + static_cast<std::ptrdiff_t>(end));
    state.sums.resize(k, 0);
    end = begin;
  }
  std::make_heap(states.begin(), states.end(), is_later);
  const auto pop = [&] {
    std::pop_heap(states.begin(), states.end(), is_later);
    State state = std::move(states.back());
    states.pop_back();
    return state;
  };
  while (states.size() > 1) {
    State first = pop();
    const State second = pop();
    if (first.key() == second.key()) return true;
    if (!states.empty() && states.front().key() == second.key()) return true;
    for (std::size_t i = 0; i < k; ++i) first.sums[i] += second.sums[k - 1 - i];
    std::sort(first.sums.begin(), first.sums.end(), std::greater<>());
    if (first.sums.front() >= cost) return false;
    states.push_back(std::move(first));
    std::push_heap(states.begin(), states.end(), is_later);
  }
  return true;
}

// Karmarkar-Karp; where counts do not divide, units of no cost make up the number. They come first
// in the order of (value, index), so that no bin gets two of them.
BinOf karmarkar_karp_bins(const Units& units, std::int32_t num_bins, PartSizes sizes) {
  const std::size_t n = units.count();
  const auto k = static_cast<std::size_t>(num_bins);
  const std::size_t padding = sizes == PartSizes::equal ? (k - n % k) % k : (n < k ? k - n : 0);
  std::vector<Nanoseconds> values(padding, 0);
  values.insert(values.end(), units.costs.begin(), units.costs.end());
  BinOf bin_of(n);
  std::int32_t bin = 0;
  for (const auto& set : karmarkar_karp(std::span<const Nanoseconds>(values), num_bins, sizes)) {
    for (const SequenceId id : set) {
      if (id.index() >= padding) bin_of[id.index() - padding] = bin;
    }
    ++bin;
  }
  return bin_of;
}

// Whether the bins together are too few, or too many, for all units.
bool is_excluded(const Units& units, std::int64_t num_bins, const Limits& limits) {
  const auto count = static_cast<std::int64_t>(units.count());
  const auto exceeds = [&](std::int64_t sum, std::int64_t of_a_bin) {
    return of_a_bin < (sum + num_bins - 1) / num_bins;
  };
  std::int64_t num_tokens = 0;
  std::int64_t num_sequences = 0;
  for (std::size_t i = 0; i < units.count(); ++i) {
    num_tokens += units.tokens_of(i);
    num_sequences += units.size_of(i);
  }
  return exceeds(num_tokens, limits.capacity) || exceeds(num_sequences, limits.max_size) ||
         exceeds(count, limits.max_units) || limits.min_units * num_bins > count;
}

// The search for one set of units: the best assignment so far and the work left.
struct Attempt {
  const Units& units;
  const DearestFirst& order;
  std::int32_t num_bins;
  const Limits& limits;
  std::optional<BinOf> bin_of = {};
  Nanoseconds cost = 0;

  // An assignment that keeps the limits.
  void offer(std::optional<BinOf> candidate) {
    if (!candidate) return;
    const Nanoseconds candidate_cost = largest_cost(units, num_bins, *candidate);
    if (bin_of && candidate_cost >= cost) return;
    bin_of = std::move(candidate);
    cost = candidate_cost;
  }

  void offer_longest_first() {
    const bool has_offset = limits.are_counts_equal() && units.count() > 0;
    offer(longest_first(units, order, num_bins, limits, has_offset ? order.costs.back() : 0));
  }

  void offer_karmarkar_karp() {
    const bool is_equal = limits.are_counts_equal();
    if (is_equal && bin_of && !may_end_below(cost, order, num_bins)) return;
    BinOf candidate =
        karmarkar_karp_bins(units, num_bins, is_equal ? PartSizes::equal : PartSizes::free);
    // It knows neither tokens nor sequences, nor that a bin of units without a cost must not be
    // empty.
    if (are_kept(limits, units, num_bins, candidate)) offer(std::move(candidate));
  }

  void refine_to(RefineGoal goal, Nanoseconds target, std::int64_t& work) {
    if (!bin_of || (goal == RefineGoal::largest && cost <= target)) return;
    cost = refine(units, order, num_bins, limits, goal, target, work, *bin_of);
  }
};

// Balances the tokens instead of the costs, down to the capacity: what fits at all, fits so.
std::optional<BinOf> balanced_by_tokens(const Units& units, std::int32_t num_bins,
                                        const Limits& limits, std::int64_t work) {
  const Units by_tokens{units.tokens, units.tokens, units.sizes};
  Limits without_capacity = limits;
  without_capacity.capacity = Limits::unlimited;
  const DearestFirst order = dearest_first(units.tokens);
  Attempt attempt{by_tokens, order, num_bins, without_capacity};
  attempt.offer_longest_first();
  attempt.offer_karmarkar_karp();
  attempt.refine_to(RefineGoal::largest, limits.capacity, work);
  if (attempt.bin_of && attempt.cost > limits.capacity) attempt.bin_of.reset();
  return attempt.bin_of;
}

// Proves the best assignment of a handful of units, or that there is none.
bool prove(Attempt& attempt, Nanoseconds target, std::int64_t work) {
  // Bins beyond one per unit stay empty: renumber the used ones from 0.
  const auto n = static_cast<std::int32_t>(attempt.units.count());
  const std::int32_t used = std::clamp(n, 1, attempt.num_bins);
  if (attempt.bin_of) {
    std::vector<std::int32_t> seen;
    for (std::int32_t& bin : *attempt.bin_of) {
      const auto place = std::find(seen.begin(), seen.end(), bin) - seen.begin();
      if (place == std::ssize(seen)) seen.push_back(bin);
      bin = static_cast<std::int32_t>(place);
    }
  }
  const SearchEnd end =
      search_all(attempt.units, attempt.order, used, attempt.limits, target, work, attempt.bin_of);
  if (attempt.bin_of) attempt.cost = largest_cost(attempt.units, used, *attempt.bin_of);
  return end == SearchEnd::complete;
}

}  // namespace

Fit find_fit(const Units& units, std::int32_t num_bins, const Limits& limits,
             std::optional<std::int64_t> max_work) {
  Fit result;
  if (units.count() > few_units) return result;
  const Units by_tokens{units.tokens, units.tokens, units.sizes};
  const DearestFirst order = dearest_first(units.tokens);
  Attempt attempt{by_tokens, order, num_bins, limits};
  result.is_excluded =
      prove(attempt, limits.capacity, max_work.value_or(proof_work)) && !attempt.bin_of;
  result.bin_of = std::move(attempt.bin_of);
  return result;
}

Assignment assign(const Units& units, std::int32_t num_bins, const Limits& limits, RefineGoal goal,
                  std::optional<std::int64_t> max_work, std::optional<BinOf> start) {
  const DearestFirst order = dearest_first(units.costs);
  Assignment result;
  result.lower_bound = std::max(cost_bound(order, num_bins, limits.min_units),
                                crowding_bound(units, order, num_bins, limits.capacity));
  if (is_excluded(units, num_bins, limits)) {
    result.is_proved = true;
    return result;
  }
  std::int64_t work = max_work.value_or(default_work(units.count(), goal));
  const Nanoseconds target = result.lower_bound + (max_work ? 0 : result.lower_bound / near_enough);

  Attempt attempt{units, order, num_bins, limits};
  attempt.offer(std::move(start));
  attempt.offer_longest_first();
  if (limits.are_counts_equal()) {
    attempt.refine_to(goal, target, work);
    // Without an offset it is now and then better for a few units with a long tail.
    if (units.count() <= cheap_units && (!attempt.bin_of || attempt.cost > result.lower_bound)) {
      attempt.offer(longest_first(units, order, num_bins, limits));
    }
  }
  if (!attempt.bin_of || attempt.cost > result.lower_bound) attempt.offer_karmarkar_karp();
  if (!attempt.bin_of && !units.tokens.empty()) {
    attempt.offer(balanced_by_tokens(units, num_bins, limits, work));
  }
  attempt.refine_to(goal, target, work);

  bool is_complete = false;
  if (units.count() <= few_units && (!attempt.bin_of || attempt.cost > result.lower_bound)) {
    is_complete = prove(attempt, result.lower_bound, max_work.value_or(proof_work));
  }
  if (attempt.bin_of && is_complete) result.lower_bound = attempt.cost;
  result.is_proved = attempt.bin_of ? attempt.cost == result.lower_bound : is_complete;
  result.max_cost = attempt.cost;
  result.bin_of = std::move(attempt.bin_of);
  return result;
}

}  // namespace isochron
