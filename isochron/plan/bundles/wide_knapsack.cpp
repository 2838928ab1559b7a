#include "isochron/plan/bundles/wide_knapsack.h"

#include <algorithm>
#include <numeric>

namespace isochron {

WideKnapsack::WideKnapsack(const BundleTable& table, std::int32_t level, Nanoseconds latest)
    : cell_(latest / static_cast<Nanoseconds>(num_cells) + 1), fixed_(latest) {
  for (std::int32_t l = level + 1; l < table.num_levels(); ++l) {
    fixed_ = std::min(fixed_, table.fixed(l));
  }
  for (BundleId bundle = 0; bundle < table.num_bundles(); ++bundle) {
    Nanoseconds least = latest + 1;  // of narrower groups, which have more of it
    for (std::int32_t l = level + 1; l < table.num_levels(); ++l) {
      if (!table.fits(l, bundle)) continue;
      const Nanoseconds time = table.time(l, bundle);
      const Nanoseconds cost = table.use(l, bundle).cost;
      if (time > latest || cost >= least) continue;
      least = cost;
      groups_.push_back({.time = time,
                         .cells = static_cast<std::size_t>(cost / cell_),
                         .bundle = bundle,
                         .part = static_cast<double>(table.size(level)) / table.size(l)});
    }
  }
}

void WideKnapsack::set_prices(std::span<const double> prices) {
  constexpr double low = 0.2;  // of the best rate
  const auto worth_of = [&](const Group& group) {
    return group.part * prices[static_cast<std::size_t>(group.bundle)];
  };
  const auto rate_of = [&](const Group& group) {
    return worth_of(group) / static_cast<double>(std::max<std::size_t>(1, group.cells));
  };
  double best = 0;
  for (const Group& group : groups_) best = std::max(best, rate_of(group));
  worth_.assign(row_size, 0);
  whole_.clear();
  rows_.clear();
  cut_ = nullptr;
  cut_rate_ = 0;
  least_cut_ = row_size;
  for (const Group& group : groups_) {
    const double worth = worth_of(group);
    if (worth <= 0) continue;
    if (rate_of(group) >= low * best || group.cells == 0) {
      add_whole(group, worth);
      continue;
    }
    least_cut_ = std::min(least_cut_, group.cells);
    if (rate_of(group) <= cut_rate_) continue;
    cut_rate_ = rate_of(group);
    cut_ = &group;
  }
  add_cut();
}

void WideKnapsack::add_whole(const Group& group, double worth) {
  whole_.push_back(&group);
  rows_.insert(rows_.end(), worth_.begin(), worth_.end());
  const double* before = &rows_[rows_.size() - row_size];
  for (std::size_t c = group.cells; c < row_size; ++c) {
    worth_[c] = std::max(before[c], before[c - group.cells] + worth);
  }
}

// What whole groups leave, if one of the others fits there.
void WideKnapsack::add_cut() {
  before_cut_.resize(row_size);
  std::iota(before_cut_.begin(), before_cut_.end(), 0);
  rows_.insert(rows_.end(), worth_.begin(), worth_.end());
  if (cut_ == nullptr) return;
  std::size_t best = 0;  // cells of whole groups beside which most is cut
  const double* whole = &rows_[rows_.size() - row_size];
  const auto beyond_rate = [&](std::size_t c) {
    return whole[c] - cut_rate_ * static_cast<double>(c);
  };
  for (std::size_t c = least_cut_; c < row_size; ++c) {
    if (beyond_rate(c - least_cut_) > beyond_rate(best)) best = c - least_cut_;
    const double with = beyond_rate(best) + cut_rate_ * static_cast<double>(c + 1);
    if (with <= whole[c]) continue;
    worth_[c] = with;
    before_cut_[c] = best;
  }
}

std::size_t WideKnapsack::cells_of(Nanoseconds time) const {
  return static_cast<std::size_t>((time - fixed_) / cell_);
}

double WideKnapsack::most_worth(Nanoseconds time) const {
  return time < fixed_ ? 0 : worth_[cells_of(time)];
}

void WideKnapsack::add_dearest(Nanoseconds time, std::vector<CoverProgram::Part>& content) const {
  if (time < fixed_) return;
  const std::size_t cells = cells_of(time);
  std::size_t left = before_cut_[cells];
  if (left < cells) {
    const auto filled = static_cast<double>(cells + 1 - left);
    content.push_back(
        {.bundle = cut_->bundle, .part = cut_->part * filled / static_cast<double>(cut_->cells)});
  }
  for (std::size_t i = whole_.size(); i-- > 0;) {
    const double* before = &rows_[i * row_size];
    if (before[row_size + left] <= before[left]) continue;
    content.push_back({.bundle = whole_[i]->bundle, .part = whole_[i]->part});
    left -= whole_[i]->cells;
  }
}

double WideKnapsack::most_of(BundleId bundle, Nanoseconds time) const {
  double most = 0;
  for (const Group& group : groups_) {
    if (group.bundle == bundle && group.time <= time) most = std::max(most, group.part);
  }
  return most;
}

}  // namespace isochron
