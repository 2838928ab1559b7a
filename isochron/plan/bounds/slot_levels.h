#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "isochron/plan/bounds/leaders.h"

namespace isochron {

// A level of the times of slots: from `time` to `next`, which no longer belongs to it. Its slots
// hold no more than their time less `slack`.
struct SlotLevel {
  double time = 0;
  double next = std::numeric_limits<double>::infinity();
  double rent = 0;  // of a rank
  double slack = 0;

  // Whether a group may be in such a slot.
  [[nodiscard]] bool admits(const Lead& lead) const { return lead.time() < next; }
};

class SlotLevels {
 public:
  SlotLevels(const Problem& problem, Leaders& leaders);

  // What so many of the longest bundles take on groups that suit them, in steps, longest first.
  [[nodiscard]] std::vector<double> times(std::size_t num_long);

  // The level, where every bundle leads one group at most; nothing if its slots may be full.
  [[nodiscard]] std::optional<SlotLevel> find_scarce(double time, double next);
  // The level if bundles were as many as there is room for; nothing if its slots may be full. Some
  // of the longest stand apart: what their groups are worth above the rent of their ranks is not in
  // it.
  [[nodiscard]] std::optional<SlotLevel> find_dense(double time, double next,
                                                    std::size_t num_apart) const;

 private:
  struct Group;

  [[nodiscard]] bool gains(std::size_t i, double rent) const;
  [[nodiscard]] std::vector<Group> groups_of(std::size_t i, const SlotLevel& level);

  Leaders& leaders_;
  double ranks_;
  double capacity_;
};

}  // namespace isochron
