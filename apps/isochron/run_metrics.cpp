#include "apps/isochron/run_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "isochron/core/json.h"

namespace isochron {

namespace {

constexpr std::int64_t max_step = std::int64_t{1} << 53;  // what the page can count
constexpr std::size_t max_names = 4096;

class CurveReader {
 public:
  void read_line(std::string_view line) {
    const Json entry = parse_json(line, "metrics");
    require_object(entry, "metrics", "a line");
    const std::int64_t step =
        integer_of(member(entry, "metrics", "step"), "metrics", "step", 0, max_step);
    const Json& data = member(entry, "metrics", "data");
    require_object(data, "metrics", "data");
    for (const auto& [name, value] : data.items()) {
      if (!value.is_null()) (void)number_of(value, "metrics", name);
    }
    if (step < last_step_) go_back(step);
    last_step_ = step;
    for (const auto& [name, value] : data.items()) add(name, step, value);
  }

  [[nodiscard]] RunMetrics take(std::string_view file, std::vector<std::string> notes) {
    if (num_resumed_ > 0) {
      notes.push_back(fmt::format(
          "{}: the run was resumed {} from an earlier step, last from step {}; what it "
          "had written from there on is replaced.",
          file, num_resumed_ == 1 ? "once" : fmt::format("{} times", num_resumed_), resumed_step_));
    }
    if (has_too_many_) {
      notes.push_back(fmt::format("{}: there are more than {} names; the others are left out.",
                                  file, max_names));
    }
    RunMetrics metrics;
    for (auto& [name, curve] : curve_of_) {
      if (!curve.steps.empty()) metrics.curves.push_back(std::move(curve));
    }
    metrics.notes = std::move(notes);
    return metrics;
  }

 private:
  void go_back(std::int64_t step) {
    ++num_resumed_;
    resumed_step_ = step;
    for (auto& [name, curve] : curve_of_) {
      const auto end = std::lower_bound(curve.steps.begin(), curve.steps.end(), step);
      curve.steps.erase(end, curve.steps.end());
      curve.values.resize(curve.steps.size());
    }
  }

  void add(const std::string& name, std::int64_t step, const Json& value) {
    auto found = curve_of_.find(name);
    if (found == curve_of_.end()) {
      has_too_many_ |= curve_of_.size() == max_names;
      if (curve_of_.size() == max_names) return;
      found = curve_of_.emplace(name, MetricCurve{.name = name, .steps = {}, .values = {}}).first;
    }
    MetricCurve& curve = found->second;
    if (curve.steps.empty() || curve.steps.back() != step) {
      curve.steps.push_back(step);
      curve.values.push_back(0);
    }
    curve.values.back() =
        value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
  }

  std::map<std::string, MetricCurve> curve_of_;
  std::int64_t last_step_ = 0;
  std::int64_t num_resumed_ = 0;
  std::int64_t resumed_step_ = 0;
  bool has_too_many_ = false;
};

}  // namespace

RunMetrics read_metrics(std::istream& stream, std::string_view file,
                        const CountBytes& count_bytes) {
  CurveReader reader;
  std::vector<std::string> notes = read_lines(
      stream, file, [&](std::string_view line) { reader.read_line(line); }, count_bytes);
  return reader.take(file, std::move(notes));
}

}  // namespace isochron
