// The simplex method, from a basis of every element alone.
//
// Sets are looked at a few at a time, and the one that saves most of these enters. Where fewer sets
// are asked for than before, those of the basis that are not are dear, so that they leave.

#include "isochron/plan/bundles/set_program.h"

#include <algorithm>

namespace isochron {

namespace {

constexpr double rounding = 1e-9;
constexpr double dear = 5;  // what a set of many elements costs more, by what one costs alone

}  // namespace

SetProgram::SetProgram(std::size_t num_elements, double alone, std::span<const Set> sets)
    : alone_(alone) {
  basis_.begin(std::vector<double>(num_elements, 1));
  for (std::size_t i = 0; i < num_elements; ++i) {
    sets_.emplace_back(num_elements, alone).members[0] = static_cast<std::uint8_t>(i);
    set_of_.push_back(i);
  }
  sets_.insert(sets_.end(), sets.begin(), sets.end());
}

std::span<const double> SetProgram::prices(std::size_t count) {
  const std::size_t end = basis_.size() + count;
  begin(end);
  // About what it takes; without an end a basis could come again.
  for (std::size_t left = 50 + 16 * basis_.size(); left > 0; --left) {
    const std::size_t entering = find_entering(end);
    if (entering == end || !enter(entering)) break;
  }
  lower(end);
  return basis_.prices().first(basis_.size());
}

std::vector<double> SetProgram::uses(std::size_t count) const {
  std::vector<double> uses(count, 0);
  const std::size_t first = basis_.size();  // behind the elements alone
  for (std::size_t row = 0; row < basis_.size(); ++row) {
    const std::size_t set = set_of_[row];
    if (set >= first && set < first + count) uses[set - first] = basis_.uses()[row];
  }
  return uses;
}

// What the elements cost in the basis at hand.
void SetProgram::begin(std::size_t end) {
  const auto prices = basis_.prices();
  std::fill(prices.begin(), prices.end(), 0.0);
  for (std::size_t row = 0; row < basis_.size(); ++row) {
    const double cost = sets_[set_of_[row]].cost + (set_of_[row] < end ? 0 : dear * alone_);
    for (std::size_t i = 0; i < basis_.size(); ++i) prices[i] += basis_.inverse(i)[row] * cost;
  }
}

double SetProgram::saving(const Set& set) const {
  double sum = -set.cost;
  for (const std::uint8_t member : set.members) sum += basis_.prices()[member];
  return sum;
}

// The best of a few, from where the last look ended.
std::size_t SetProgram::find_entering(std::size_t end) {
  constexpr std::size_t few = 128;
  std::size_t best = end;
  double most = rounding;
  if (next_ >= end) next_ = 0;
  for (std::size_t looked = 0; looked < end && best == end;) {
    const std::size_t last = std::min({end, next_ + few, next_ + end - looked});
    looked += last - next_;
    for (; next_ < last; ++next_) {
      const double saved = saving(sets_[next_]);
      if (saved <= most) continue;
      most = saved;
      best = next_;
    }
    if (next_ == end) next_ = 0;
  }
  return best;
}

bool SetProgram::enter(std::size_t set) {
  basis_.begin_column();
  for (const std::uint8_t member : sets_[set].members) {
    if (member < basis_.size()) basis_.add(member, 1);
  }
  const auto row = basis_.exchange(saving(sets_[set]));
  if (row) set_of_[*row] = set;
  return row.has_value();
}

// What is left where the steps ended early, and what was rounded.
void SetProgram::lower(std::size_t end) {
  for (std::size_t k = 0; k < end; ++k) {
    const double saved = saving(sets_[k]);
    if (saved > 0) basis_.prices()[sets_[k].members[0]] -= saved;
  }
}

}  // namespace isochron
