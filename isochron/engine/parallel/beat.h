#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace isochron {

// What a rank publishes about itself, every period.
struct Beat {
  std::int64_t count = 0;     // of its beats: stands still if the process is dead or stopped
  std::int64_t time_ms = 0;   // when it was published, by its system clock
  std::int64_t since_ms = 0;  // when it began what it does
  std::int64_t step = 0;
  std::int64_t slot = -1;  // -1: outside of the slots
  std::string operation = "start";
  std::map<std::string, std::int64_t> issued = {};  // collectives so far, by communicator
  bool has_left = false;                            // it said goodbye

  bool operator==(const Beat&) const = default;
};

[[nodiscard]] std::string beat_json(const Beat& beat);
[[nodiscard]] Beat beat_from_json(const std::string& text);

// A collective that failed, as one member sees it.
struct FailedCollective {
  std::string communicator;
  std::int32_t first_rank = 0;
  std::int32_t num_ranks = 1;
  std::int64_t number = 1;  // it was this one of its communicator, counted from 1
};

// Who keeps the members of `failed` waiting, in words; empty if nobody is known to. `before` and
// `after` are the beats of all ranks of the world, far enough apart that every living rank beats in
// between. Ranks that stopped beating come before those that live but have not come.
[[nodiscard]] std::string late_ranks(const FailedCollective& failed, std::span<const Beat> before,
                                     std::span<const Beat> after, std::int64_t now_ms);

}  // namespace isochron
