#pragma once

#include "isochron/core/enum_names.h"

namespace isochron {

enum class Status {
  optimal,     // the answer meets its lower bound
  feasible,    // an answer, not proved the best
  infeasible,  // proved: there is no answer
  unknown,     // the work budget ended without an answer, and no bound excludes one
};

template <>
struct EnumNames<Status> {
  static constexpr std::array<std::pair<Status, std::string_view>, 4> values = {
      {{Status::optimal, "optimal"},
       {Status::feasible, "feasible"},
       {Status::infeasible, "infeasible"},
       {Status::unknown, "unknown"}}};
};

}  // namespace isochron
