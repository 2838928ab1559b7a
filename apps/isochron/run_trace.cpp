#include "apps/isochron/run_trace.h"

#include <algorithm>
#include <cmath>

#include "isochron/core/json.h"

namespace isochron {

namespace {

constexpr std::int64_t max_step = std::int64_t{1} << 53;
constexpr std::int64_t max_slot = std::numeric_limits<std::int32_t>::max();
constexpr double max_us = 4e15;  // 126 years; in nanoseconds it still is an integer
constexpr std::size_t max_names = 256;

Nanoseconds nanoseconds(const Json& event, const char* key, double low) {
  const double us = number_of(member(event, "trace", key), "trace", key);
  require(us >= low && us <= max_us, "trace", "{} is {} us, must be from {} to {}", key, us, low,
          max_us);
  return std::llround(us * 1000);
}

class TraceReader {
 public:
  TraceReader(std::int32_t rank, const std::function<bool(std::int64_t)>& is_wanted,
              std::vector<std::string>& scope_names)
      : rank_(rank), is_wanted_(is_wanted), scope_names_(scope_names) {}

  void read_line(std::string_view line) {
    if (line.front() == '[') {
      is_restarted_ = true;
      line.remove_prefix(1);
    }
    if (!line.empty() && line.back() == ']') line.remove_suffix(1);
    while (!line.empty() && (line.back() == ',' || line.back() == ' ')) line.remove_suffix(1);
    if (!line.empty()) read_event(line);
  }

  [[nodiscard]] std::map<std::int64_t, std::vector<MeasuredScope>> take() {
    return std::move(scopes_of_step_);
  }

 private:
  void read_event(std::string_view line) {
    const Json event = parse_json(line, "trace");
    require_object(event, "trace", "an event");
    const auto args = event.find("args");
    if (event.value("ph", Json()) != "X" || args == event.end() || !args->contains("step")) return;
    const std::int64_t step = integer_of((*args)["step"], "trace", "step", 0, max_step);
    const std::int64_t slot =
        args->contains("slot") ? integer_of((*args)["slot"], "trace", "slot", -1, max_slot) : -1;
    const Nanoseconds begin = nanoseconds(event, "ts", -max_us);
    const Nanoseconds duration = nanoseconds(event, "dur", 0);
    const std::int32_t name =
        name_of_scope(text_of(member(event, "trace", "name"), "trace", "name"));
    if (step < last_step_ || is_restarted_) {
      scopes_of_step_.erase(scopes_of_step_.lower_bound(step), scopes_of_step_.end());
    }
    is_restarted_ = false;
    last_step_ = step;
    if (!is_wanted_(step)) return;
    scopes_of_step_[step].push_back({.rank = rank_,
                                     .name = name,
                                     .slot = static_cast<std::int32_t>(slot),
                                     .begin_ns = begin,
                                     .end_ns = begin + duration});
  }

  std::int32_t name_of_scope(const std::string& name) {
    auto found = std::find(scope_names_.begin(), scope_names_.end(), name);
    if (found == scope_names_.end()) {
      require(scope_names_.size() < max_names, "trace", "there are more than {} names of scopes",
              max_names);
      found = scope_names_.insert(found, name);
    }
    return static_cast<std::int32_t>(found - scope_names_.begin());
  }

  std::int32_t rank_;
  const std::function<bool(std::int64_t)>& is_wanted_;
  std::vector<std::string>& scope_names_;
  std::map<std::int64_t, std::vector<MeasuredScope>> scopes_of_step_;
  std::int64_t last_step_ = 0;
  bool is_restarted_ = false;
};

}  // namespace

RankTrace read_trace(std::istream& stream, std::string_view file, std::int32_t rank,
                     const std::function<bool(std::int64_t step)>& is_wanted,
                     std::vector<std::string>& scope_names, const CountBytes& count_bytes) {
  TraceReader reader(rank, is_wanted, scope_names);
  RankTrace trace;
  trace.notes = read_lines(
      stream, file, [&](std::string_view line) { reader.read_line(line); }, count_bytes);
  trace.scopes_of_step = reader.take();
  return trace;
}

}  // namespace isochron
