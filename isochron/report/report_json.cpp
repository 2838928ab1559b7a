// Bars are those of the simulator, one per operation of a group: members of a group run at the same
// time, so the first one speaks for all. A plan that breaks a rule is played as far as it can be:
// if its costs are beyond the model it has no bars, and the page shows the rule alone.

#include "isochron/report/report_json.h"

#include <stdexcept>
#include <utility>

#include "isochron/core/json.h"
#include "isochron/simulate/simulate.h"

namespace isochron {

namespace {

Tokens padded_tokens(const StepPlan& plan, const ContextGroup& group,
                     std::span<const Tokens> lengths) {
  Tokens tokens = 0;
  for (const SequenceId id : group.sequences) {
    tokens += padded_length(lengths[id.index()], group.ranks.size, plan.options.tensor_parallel);
  }
  return tokens;
}

Json group_json(const StepPlan& plan, std::size_t slot, const ContextGroup& group,
                std::span<const Tokens> lengths) {
  Json json;
  json["slot"] = slot;
  json["first"] = group.ranks.first;
  json["size"] = group.ranks.size;
  json["cost_ns"] = group_cost(plan, group);
  json["tokens"] = padded_tokens(plan, group, lengths);
  json["sequences"] = group.sequences;
  if (group.exchange) json["exchange"] = name_of(*group.exchange);
  return json;
}

// [group, stage, chunk, direction, begin, end] for each operation.
Json bars_json(const StepPlan& plan, const Timeline& timeline) {
  std::vector<std::size_t> first_of_slot;
  std::size_t num_groups = 0;
  for (const Slot& slot : plan.microbatches) {
    first_of_slot.push_back(num_groups);
    num_groups += slot.size();
  }
  Json bars = Json::array();
  for (const TimelineSpan& span : timeline.spans) {
    const auto slot = static_cast<std::size_t>(span.operation.slot);
    const auto position = static_cast<std::size_t>(span.group);
    if (plan.microbatches[slot][position].ranks.first != span.rank) continue;
    bars.push_back(Json::array({first_of_slot[slot] + position, span.stage, span.operation.chunk,
                                span.operation.direction == Direction::forward ? 0 : 1,
                                span.begin_ns, span.end_ns}));
  }
  return bars;
}

void add_timeline(const StepPlan& plan, Json& json) {
  const Timeline timeline = simulate(plan);
  const std::vector<Tokens> lengths = all_lengths(plan);
  Json groups = Json::array();
  for (std::size_t slot = 0; slot < plan.microbatches.size(); ++slot) {
    for (const ContextGroup& group : plan.microbatches[slot]) {
      groups.push_back(group_json(plan, slot, group, lengths));
    }
  }
  json["step_ns"] = timeline.step_ns;
  json["busy_ns"] = timeline.busy_ns;
  json["peak_bytes"] = timeline.peak_activation_bytes;
  json["groups"] = std::move(groups);
  json["bars"] = bars_json(plan, timeline);
}

// Options that are not what they are by default and that the page has no other place for.
Json asked_options_json(const StepPlan& plan) {
  const PlanOptions usual = resolved(
      {.context = plan.options.context, .sync = plan.options.sync, .pass = plan.options.pass},
      plan.topology);
  Json json = Json::object();
  PlanOptions::describe([&](const auto& field) {
    const bool is_elsewhere = field.key == "max_activation_bytes" || field.key == "effort";
    if (is_elsewhere || plan.options.*field.member == usual.*field.member) return;
    json[std::string(field.key)] = field_to_json(plan.options.*field.member);
  });
  return json;
}

}  // namespace

Json step_json(const ReportedStep& step) {
  const StepPlan& plan = step.plan;
  Json json;
  json["violation"] = step.violation;
  json["status"] = name_of(plan.status);
  json["reason"] = plan.reason;
  json["ranks"] = plan.topology.ranks;
  json["stages"] = plan.topology.pipeline.stages;
  json["virtual"] = plan.topology.pipeline.virtual_;
  json["chunk_group"] = plan.topology.pipeline.group;
  json["transfer_ns"] = plan.topology.pipeline.transfer_ns;
  json["shares"] = plan.topology.pipeline.shares;
  json["rank_speed"] = plan.topology.rank_speed;
  json["capacity"] = plan.topology.capacity;
  json["context"] = plan.options.context;
  json["sync"] = name_of(plan.options.sync);
  json["pass"] = name_of(plan.options.pass);
  json["options"] = asked_options_json(plan);
  json["memory_limit"] = plan.options.max_activation_bytes;
  json["cost"] = plan.cost.name;
  json["cost_model"] = parse_json(to_json(plan.cost), "report");
  json["lengths"] = plan.batch.lengths;
  json["extra_cost_ns"] = plan.batch.extra_cost_ns;
  json["prompt_groups"] = plan.batch.groups;
  json["prompt_names"] = plan.batch.group_names;
  json["first_sequence"] = plan.first_sequence;
  json["padding_rows"] = plan.padding_rows;
  json["bound_ns"] = plan.lower_bound_ns;
  json["oversized"] = plan.oversized;
  json["dropped"] = plan.dropped;
  json["step_ns"] = 0;
  json["busy_ns"] = Json::array();
  json["peak_bytes"] = Json::array();
  json["groups"] = Json::array();
  json["bars"] = Json::array();
  try {
    add_timeline(plan, json);
  } catch (const std::invalid_argument&) {
    if (step.violation.empty()) throw;
  }
  return json;
}

std::string report_json(std::span<const ReportEntry> entries) {
  Json list = Json::array();
  for (const ReportEntry& entry : entries) {
    Json steps = Json::array();
    for (const ReportedStep& step : entry.steps) steps.push_back(step_json(step));
    Json json;
    json["name"] = entry.name;
    json["steps"] = std::move(steps);
    list.push_back(std::move(json));
  }
  Json document;
  document["entries"] = std::move(list);
  // A file name need not be UTF-8.
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace isochron
