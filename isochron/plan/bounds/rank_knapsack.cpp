// Dynamic programming over leaders and ranks. It is spared where the last filling says enough: no
// set of groups gains more by other rises than those have grown.

#include "isochron/plan/bounds/rank_knapsack.h"

#include <algorithm>
#include <limits>

namespace isochron {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double margin = 5e-12;  // of sums in double: more than their roundings

}  // namespace

RankKnapsack::RankKnapsack(std::size_t num_leaders, std::int32_t num_ranks, double limit)
    : width_(static_cast<std::size_t>(num_ranks) + 1),
      limit_(limit),
      most_gain_(num_leaders, -infinite),
      last_rises_(num_leaders, 0),
      last_excess_(infinite) {}

void RankKnapsack::add(std::size_t leader, std::int32_t size, double gain, double most) {
  // What is never worth its ranks, or no more than a smaller group, is not needed.
  if (gain + most <= 0 || gain <= most_gain_[leader]) return;
  most_gain_[leader] = gain;
  groups_.push_back({.leader = leader, .size = static_cast<std::size_t>(size), .gain = gain});
}

void RankKnapsack::close(Table& table) {
  const std::vector<double> nothing(most_gain_.size(), 0);
  room_ = -filled(nothing, table).excess;
}

RankKnapsack::Filled RankKnapsack::filled(std::span<const double> rises, Table& table) {
  double excess = last_excess_;
  for (std::size_t i = 0; i < rises.size(); ++i) {
    if (most_gain_[i] > -infinite) excess += std::max(0.0, rises[i] - last_rises_[i]);
  }
  if (excess <= 0) return {.excess = excess};
  // A row for each leader whose groups may gain, after all rows before it.
  struct Row {
    std::size_t first = 0;  // of its groups
    std::size_t last = 0;
  };
  std::vector<Row> rows;
  table.assign(width_, 0);
  for (std::size_t first = 0, last = 0; first < groups_.size(); first = last) {
    const std::size_t leader = groups_[first].leader;
    while (last < groups_.size() && groups_[last].leader == leader) ++last;
    const double rise = rises[leader];
    if (most_gain_[leader] + rise <= 0) continue;
    rows.push_back({.first = first, .last = last});
    table.resize((rows.size() + 1) * width_);
    const double* const before = &table[(rows.size() - 1) * width_];
    double* const after = &table[rows.size() * width_];
    std::copy(before, before + width_, after);
    for (std::size_t k = first; k < last; ++k) {
      const double gain = groups_[k].gain + rise;
      if (gain <= 0) continue;
      const std::size_t size = groups_[k].size;
      for (std::size_t r = size; r < width_; ++r) {
        after[r] = std::max(after[r], before[r - size] + gain);
      }
    }
  }
  Filled filled{.excess = table.back() - limit_,
                .work = static_cast<std::int64_t>(groups_.size() * width_)};
  if (filled.excess <= margin * limit_) filled.excess = std::min(filled.excess, 0.0);
  last_rises_.assign(rises.begin(), rises.end());
  last_excess_ = filled.excess;
  if (filled.excess <= 0) return filled;
  std::size_t ranks = width_ - 1;
  for (std::size_t i = rows.size(); i-- > 0;) {
    const double* const before = &table[i * width_];
    const double value = table[(i + 1) * width_ + ranks];
    if (value == before[ranks]) continue;
    const std::size_t leader = groups_[rows[i].first].leader;
    filled.leaders.push_back(leader);
    for (std::size_t k = rows[i].first; k < rows[i].last; ++k) {
      const std::size_t size = groups_[k].size;
      if (size > ranks) break;
      if (before[ranks - size] + (groups_[k].gain + rises[leader]) != value) continue;
      ranks -= size;
      break;
    }
  }
  return filled;
}

}  // namespace isochron
