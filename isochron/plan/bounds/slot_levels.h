#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "isochron/plan/bounds/leaders.h"

namespace isochron {

// A level of the times of slots: from `time` to `next`, which no longer belongs to it. Its slots
// hold no more than their time less `slack`, and what the groups of the longest bundles, which
// stand apart, are worth above the rent of their ranks.
struct SlotLevel {
  double time = 0;
  double next = std::numeric_limits<double>::infinity();
  double rent = 0;  // of a rank
  double slack = 0;

  // Whether a group may be in such a slot.
  [[nodiscard]] bool admits(const Lead& lead) const { return lead.time() < next; }
};

// Finds levels by what bundles other than the longest `num_apart` are worth.
class SlotLevels {
 public:
  SlotLevels(const Problem& problem, Leaders& leaders, std::size_t num_apart);

  // What the longest bundles take on groups that suit them, in steps, longest first.
  [[nodiscard]] std::vector<double> times();

  // The level if every bundle leads one group at most; nothing if its slots may be full.
  [[nodiscard]] std::optional<SlotLevel> find_scarce(double time, double next);
  // The level if bundles were as many as there is room for; nothing if its slots may be full.
  [[nodiscard]] std::optional<SlotLevel> find_dense(double time, double next) const;

 private:
  struct Group;

  [[nodiscard]] bool gains(std::size_t i, double rent) const;
  [[nodiscard]] std::vector<Group> groups_of(std::size_t i, const SlotLevel& level);

  Leaders& leaders_;
  std::size_t num_apart_;
  double ranks_;
  double capacity_;
};

}  // namespace isochron
