#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "isochron/check/check.h"
#include "isochron/step/step_plan.h"

namespace isochron {

inline std::string verdict(const StepPlan& plan) {
  return find_violation(to_json(plan)).value_or("valid");
}

// One way to spoil a valid plan, and what the checker says about it.
struct SpoiledPlan {
  std::string name;
  StepPlan (*plan)();
  std::function<void(StepPlan&)> spoil;
  std::string words;
};

inline void expect_violations(const std::vector<SpoiledPlan>& cases) {
  for (const SpoiledPlan& each : cases) {
    SCOPED_TRACE(each.name);
    StepPlan plan = each.plan();
    each.spoil(plan);
    EXPECT_EQ(verdict(plan), each.words);
  }
}

}  // namespace isochron
