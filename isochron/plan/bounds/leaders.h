#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "isochron/plan/bounds/share_rule.h"
#include "isochron/plan/problem.h"

namespace isochron {

using SizeRules = std::vector<ShareRule>;  // by size

// A bundle that leads a group of some size.
struct Lead {
  std::size_t place = 0;  // of the size, or of the first of several
  std::size_t last = 0;   // of those
  double ranks = 1;
  double tokens = 0;  // padded
  double cost = 0;    // without what is fixed
  double fixed = 0;   // of a micro-batch
  double waste = 0;   // above the bundle's price, in time of all ranks
  double worth = 0;   // at most, of the bundle and of all that joins it, by tokens

  [[nodiscard]] double time() const { return cost + fixed; }
};

// A group is led by its longest bundle: what joins it fits the tokens that the leader leaves, which
// is short, and cheap by the token. So no group is worth more than its leader says, and no two
// groups have the same leader.
//
// Bundles are of one item each, no rank is slow, and prices are least areas over all ranks: what
// shares a micro-batch of c of N ranks is worth no more than c / N of its time.
class Leaders {
 public:
  Leaders(const Problem& problem, const SizeRules& rules, std::span<const double> prices);

  // By their place in the order, longest first. Of equally long ones the lower bundle leads.
  [[nodiscard]] std::size_t size() const { return order_.size(); }
  [[nodiscard]] double price(std::size_t i) const { return price_[i]; }
  [[nodiscard]] double tokens_alone(std::size_t i) const { return tokens_[i]; }  // padded to least
  // The best price of a token, of this one and all that follow.
  [[nodiscard]] double density(std::size_t i) const { return density_[i]; }
  // On all sizes that admit it, by rising size. Where those are many some of the wider ones are
  // one, which is as fast and gains as much over any rent of a rank, up to its time, as each of
  // them.
  [[nodiscard]] std::span<const Lead> leads(std::size_t i);

  // What joins a leader on a group of this place is worth no more than this part of what it takes
  // of all ranks: on groups that cross a node less than 1.
  [[nodiscard]] double efficiency(std::size_t place);

  // What a group is worth at most in a slot of some time.
  [[nodiscard]] double value(const Lead& lead, double time) const;

 private:
  [[nodiscard]] Lead widest(std::size_t i, std::size_t first, std::size_t last) const;
  [[nodiscard]] double density_within(std::size_t leader, double tokens) const;
  void find_efficiencies();

  const Problem& problem_;
  const SizeRules& rules_;
  std::vector<BundleId> order_;
  std::vector<double> price_, tokens_, density_;
  std::vector<double> efficiency_;        // by place; empty: not known
  std::vector<std::vector<Lead>> leads_;  // empty: not known
};

}  // namespace isochron
