#include "isochron/report/trace.h"

#include <fmt/format.h>

#include <utility>

#include "isochron/core/json.h"

namespace isochron {

namespace {

double microseconds(Nanoseconds time) { return static_cast<double>(time) / 1000; }

Json name_event(const char* kind, std::int32_t rank, std::int32_t stage, std::string name) {
  Json event;
  event["ph"] = "M";
  event["name"] = kind;
  event["pid"] = rank;
  event["tid"] = stage;
  event["args"]["name"] = std::move(name);
  return event;
}

Json operation_event(const StepPlan& plan, const TimelineSpan& span,
                     std::span<const Tokens> lengths) {
  const auto& [slot, chunk, direction] = span.operation;
  const ContextGroup& group =
      plan.microbatches[static_cast<std::size_t>(slot)][static_cast<std::size_t>(span.group)];
  Tokens tokens = 0;
  Json group_lengths = Json::array();
  for (const SequenceId id : group.sequences) {
    const Tokens length = lengths[id.index()];
    tokens += padded_length(length, group.ranks.size, plan.options.tensor_parallel);
    group_lengths.push_back(length);
  }
  const char* kind = direction == Direction::forward ? "forward" : "backward";
  Json event;
  event["ph"] = "X";
  event["name"] = group.sequences.empty()
                      ? fmt::format("slot {} {} placeholder", slot, kind)
                      : fmt::format("slot {} {} x{}", slot, kind, group.ranks.size);
  event["cat"] = kind;
  event["pid"] = span.rank;
  event["tid"] = span.stage;
  event["ts"] = microseconds(span.begin_ns);
  event["dur"] = microseconds(span.end_ns - span.begin_ns);
  event["args"]["slot"] = slot;
  event["args"]["chunk"] = chunk;
  event["args"]["group_size"] = group.ranks.size;
  event["args"]["first_rank"] = group.ranks.first;
  event["args"]["sequences"] = group.sequences;
  event["args"]["lengths"] = std::move(group_lengths);
  event["args"]["tokens_per_rank"] = tokens / group.ranks.size;
  return event;
}

}  // namespace

std::string trace_json(const StepPlan& plan, const Timeline& timeline) {
  Json events = Json::array();
  for (std::int32_t rank = 0; rank < plan.topology.ranks; ++rank) {
    events.push_back(name_event("process_name", rank, 0, fmt::format("rank {}", rank)));
    for (std::int32_t stage = 0; stage < plan.topology.pipeline.stages; ++stage) {
      events.push_back(name_event("thread_name", rank, stage, fmt::format("stage {}", stage)));
    }
  }
  const std::vector<Tokens> lengths = all_lengths(plan);
  for (const TimelineSpan& span : timeline.spans) {
    events.push_back(operation_event(plan, span, lengths));
  }
  Json document;
  document["displayTimeUnit"] = "ms";
  document["traceEvents"] = std::move(events);
  return document.dump() + "\n";
}

}  // namespace isochron
