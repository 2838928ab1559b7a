#include "isochron/engine/parallel/beat.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace isochron {

namespace {

using Json = nlohmann::json;

std::string activity_text(const Beat& beat) {
  if (beat.slot < 0) return fmt::format("step {}, {}", beat.step, beat.operation);
  return fmt::format("step {}, slot {}, {}", beat.step, beat.slot, beat.operation);
}

std::int64_t seconds_since(std::int64_t time_ms, std::int64_t now_ms) {
  return now_ms < time_ms ? 0 : (now_ms - time_ms) / 1000;  // clocks of hosts differ
}

std::int64_t num_issued(const Beat& beat, const std::string& communicator) {
  const auto found = beat.issued.find(communicator);
  return found == beat.issued.end() ? 0 : found->second;
}

}  // namespace

std::string beat_json(const Beat& beat) {
  return Json{{"count", beat.count},   {"time_ms", beat.time_ms},  {"since_ms", beat.since_ms},
              {"step", beat.step},     {"slot", beat.slot},        {"operation", beat.operation},
              {"issued", beat.issued}, {"has_left", beat.has_left}}
      .dump(-1, ' ', true, Json::error_handler_t::replace);
}

Beat beat_from_json(const std::string& text) {
  const Json json = Json::parse(text);
  return {.count = json.at("count"),
          .time_ms = json.at("time_ms"),
          .since_ms = json.at("since_ms"),
          .step = json.at("step"),
          .slot = json.at("slot"),
          .operation = json.at("operation"),
          .issued = json.at("issued").get<std::map<std::string, std::int64_t>>(),
          .has_left = json.at("has_left")};
}

std::string late_ranks(const FailedCollective& failed, std::span<const Beat> before,
                       std::span<const Beat> after, std::int64_t now_ms) {
  std::string gone;
  std::string late;
  const auto add = [](std::string& text, const std::string& sentence) {
    text += (text.empty() ? "" : "; ") + sentence;
  };
  // A rank outside of the group can be what a member waits for.
  for (std::size_t rank = 0; rank < after.size(); ++rank) {
    const Beat& beat = after[rank];
    const bool is_member = static_cast<std::int64_t>(rank) >= failed.first_rank &&
                           static_cast<std::int64_t>(rank) < failed.first_rank + failed.num_ranks;
    const bool has_come = !is_member || num_issued(beat, failed.communicator) >= failed.number;
    if (beat.has_left) {
      if (!has_come) add(gone, fmt::format("rank {} left in {}", rank, activity_text(beat)));
    } else if (beat.count == before[rank].count) {
      add(gone, fmt::format("rank {} was last seen {} s ago in {}", rank,
                            seconds_since(beat.time_ms, now_ms), activity_text(beat)));
    } else if (!has_come) {
      add(late, fmt::format("rank {} is late: for {} s in {}", rank,
                            seconds_since(beat.since_ms, now_ms), activity_text(beat)));
    }
  }
  return gone.empty() ? late : gone;
}

}  // namespace isochron
