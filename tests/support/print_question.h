#pragma once

#include <ostream>

#include "isochron/core/json.h"
#include "tests/support/step_question.h"

namespace isochron {

// All that was asked, for the message of a failed test.
inline std::ostream& operator<<(std::ostream& out, const StepQuestion& question) {
  const auto list = [&out](const char* name, const auto& values, auto number) {
    if (values.empty()) return;
    out << name << " [";
    for (const auto& value : values) out << (&value == values.data() ? "" : ",") << number(value);
    out << "] ";
  };
  const auto itself = [](auto value) { return value; };
  list("lengths", question.batch.lengths, itself);
  list("groups", question.batch.groups, [](PromptGroupId group) { return group.value(); });
  list("extra_cost_ns", question.batch.extra_cost_ns, itself);
  const PipelineShape& pipeline = question.topology.pipeline;
  out << "ranks " << question.topology.ranks << " capacity " << question.topology.capacity
      << " stages " << pipeline.stages << " ";
  if (pipeline.stages > 1) {
    out << "virtual " << pipeline.virtual_ << " group " << pipeline.group << " transfer_ns "
        << pipeline.transfer_ns << " ";
  }
  list("shares", pipeline.shares, itself);
  list("rank_speed", question.topology.rank_speed, itself);
  return out << options_to_json(question.options).dump() << " " << to_json(question.cost);
}

}  // namespace isochron
