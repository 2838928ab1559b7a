#pragma once

#include <vector>

#include "isochron/plan/problem.h"

namespace isochron {

// A micro-batch on a group of ranks.
struct DraftGroup {
  RankRange ranks;
  std::vector<ItemId> items = {};
};

// A plan as the searches make it: every rank runs its groups in this order.
struct Draft {
  std::vector<DraftGroup> groups;
  Nanoseconds time = 0;
  Nanoseconds bound = 0;  // no step is shorter, if the search came to know that
};

}  // namespace isochron
