#include "isochron/report/shown_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace isochron {

namespace {

using Reasons = std::map<std::int64_t, std::vector<std::string>>;

// Bytes of JSON, roughly.
std::size_t weight_of(const RunStep& step) {
  std::size_t bytes = 1000 + 30 * step.scopes.size();
  if (!step.plan) return bytes;
  bytes += 12 * step.plan->batch.lengths.size();
  const auto chunks = static_cast<std::size_t>(step.plan->topology.pipeline.stages) *
                      static_cast<std::size_t>(step.plan->topology.pipeline.virtual_);
  for (const Slot& slot : step.plan->microbatches) bytes += slot.size() * (100 + 80 * chunks);
  return bytes;
}

// Bytes of each step that can be shown.
std::map<std::int64_t, std::size_t> weights_of(std::span<const RunRecord> runs) {
  std::map<std::int64_t, std::size_t> weights;
  for (const RunRecord& run : runs) {
    for (const RunStep& step : run.steps) {
      if (step.plan || !step.scopes.empty()) weights[step.step] += weight_of(step);
    }
  }
  return weights;
}

// The step with the largest figure that can be shown.
void add_extreme(std::span<const StepFigures> figures, double StepFigures::*figure,
                 const std::map<std::int64_t, std::size_t>& weights, const std::string& why,
                 Reasons& reasons) {
  const StepFigures* most = nullptr;
  for (const StepFigures& step : figures) {
    if (std::isnan(step.*figure) || !weights.contains(step.step)) continue;
    if (most == nullptr || step.*figure > most->*figure) most = &step;
  }
  if (most != nullptr) reasons[most->step].push_back(why);
}

// The special steps if there is room for them, and an even spread over all.
std::set<std::int64_t> chosen_steps(const std::vector<std::int64_t>& all, const Reasons& special,
                                    std::size_t count) {
  if (count == all.size()) return {all.begin(), all.end()};
  std::set<std::int64_t> chosen;
  std::size_t num_spread = count;
  if (count > special.size()) {
    for (const auto& [step, why] : special) chosen.insert(step);
    num_spread -= special.size();
  }
  for (std::size_t i = 0; i < num_spread; ++i) {
    chosen.insert(all[(2 * i + 1) * all.size() / (2 * num_spread)]);
  }
  return chosen;
}

}  // namespace

std::vector<ShownStep> shown_steps(std::span<const RunRecord> runs,
                                   std::span<const std::vector<StepFigures>> figures,
                                   const ShownLimits& limits) {
  const auto weights = weights_of(runs);
  if (weights.empty()) return {};
  std::vector<std::int64_t> all;
  for (const auto& [step, bytes] : weights) all.push_back(step);
  Reasons special;
  special[all.front()].push_back("first");
  special[all.back()].push_back("last");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string of = runs.size() > 1 ? fmt::format(" of {}", runs[i].name) : "";
    add_extreme(figures[i], &StepFigures::step_ns, weights, "slowest" + of, special);
    add_extreme(figures[i], &StepFigures::measured_imbalance, weights, "least balanced" + of,
                special);
  }
  // Fewer and fewer, until they fit; in the end one alone.
  for (std::size_t count = std::min(limits.max_steps, all.size());; count /= 2) {
    const std::set<std::int64_t> chosen = chosen_steps(all, special, count);
    std::size_t bytes = 0;
    for (const std::int64_t step : chosen) bytes += weights.at(step);
    if (bytes > limits.max_bytes && count > 1) continue;
    std::vector<ShownStep> shown;
    for (const std::int64_t step : chosen) {
      const auto found = special.find(step);
      shown.push_back(
          {.step = step,
           .why = found == special.end() ? "" : fmt::format("{}", fmt::join(found->second, ", "))});
    }
    return shown;
  }
}

}  // namespace isochron
