// A figure comes from the best source that the run left. Compute time: the trace, else the busiest
// rank of the metrics. Whole steps: tokens over tokens per second, else the trace. Busy time: the
// metrics, which have every step and rank, else the trace. Predictions: the plan, else the metrics.
//
// A cost model may be off by a factor, which costs nothing in balance: the error of a prediction is
// what remains after the median factor of the run.

#include "isochron/report/run_figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>

#include "isochron/check/check.h"
#include "isochron/plan/baselines.h"

namespace isochron {

namespace {

constexpr Nanoseconds latest = std::numeric_limits<Nanoseconds>::max();
constexpr double ns_per_s = 1e9;
constexpr double ns_per_ms = 1e6;

using FiguresOfStep = std::map<std::int64_t, StepFigures>;

// Busy times of some ranks.
struct BusyRanks {
  double most = 0;
  double total = 0;
  std::int64_t count = 0;

  void add(double time) {
    most = std::max(most, time);
    total += time;
    ++count;
  }
  [[nodiscard]] double imbalance() const {
    return count > 0 && total > 0 ? most * static_cast<double>(count) / total : unknown_figure;
  }
};

double quotient(double a, double b) { return b > 0 ? a / b : unknown_figure; }

double median(std::vector<double> values) {
  if (values.empty()) return unknown_figure;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The metrics PREFIX0, PREFIX1, .. by step.
std::map<std::int64_t, BusyRanks> busy_ranks(const RunRecord& run, std::string_view prefix) {
  std::map<std::int64_t, BusyRanks> ranks_of_step;
  for (const MetricCurve& curve : run.metrics) {
    if (!curve.name.starts_with(prefix)) continue;
    for (std::size_t i = 0; i < curve.steps.size(); ++i) {
      const double value = curve.values[i];
      if (std::isfinite(value) && value >= 0) {
        ranks_of_step[curve.steps[i]].add(value * ns_per_ms);
      }
    }
  }
  return ranks_of_step;
}

void add_plan(const StepPlan& plan, StepFigures& figures) {
  if (plan.microbatches.empty()) return;
  figures.predicted_ns = static_cast<double>(plan.predicted_step_ns);
  figures.planned_imbalance = plan.imbalance;
  const auto baseline = [&](auto make, double& step_ns, double& imbalance) {
    try {
      const StepPlan made =
          make(plan.batch, plan.topology, plan.cost, plan.options, plan.lower_bound_ns);
      if (made.microbatches.empty() || find_violation(to_json(made))) return;
      step_ns = static_cast<double>(made.predicted_step_ns);
      imbalance = made.imbalance;
    } catch (const std::invalid_argument&) {  // it costs more than can be counted
    }
  };
  baseline(naive_plan, figures.naive_ns, figures.naive_imbalance);
  baseline(verl_plan, figures.verl_ns, figures.verl_imbalance);
}

// What one rank was measured to do.
struct RankSpan {
  Nanoseconds first = latest;
  Nanoseconds last = 0;
  Nanoseconds compute_first = latest;
  Nanoseconds compute_last = 0;
  Nanoseconds busy = 0;
};

std::map<std::int32_t, RankSpan> rank_spans(const RunRecord& run, const RunStep& step) {
  const StepClock clock = step_clock(step);
  std::map<std::int32_t, RankSpan> spans;
  for (const MeasuredScope& scope : step.scopes) {
    const Nanoseconds origin = clock.origin_of[static_cast<std::size_t>(scope.rank)];
    const Nanoseconds begin = scope.begin_ns - origin;
    const Nanoseconds end = scope.end_ns - origin;
    RankSpan& span = spans[scope.rank];
    span.first = std::min(span.first, begin);
    span.last = std::max(span.last, end);
    if (!is_compute(run.scope_names[static_cast<std::size_t>(scope.name)])) continue;
    span.compute_first = std::min(span.compute_first, begin);
    span.compute_last = std::max(span.compute_last, end);
    span.busy += end - begin;
  }
  return spans;
}

void add_trace(const RunRecord& run, const RunStep& step, StepFigures& figures) {
  const auto spans = rank_spans(run, step);
  RankSpan all;
  BusyRanks busy;
  double waiting = 0;
  for (const auto& [rank, span] : spans) {
    all.first = std::min(all.first, span.first);
    all.last = std::max(all.last, span.last);
    all.compute_first = std::min(all.compute_first, span.compute_first);
    all.compute_last = std::max(all.compute_last, span.compute_last);
    busy.add(static_cast<double>(span.busy));
  }
  if (spans.empty()) return;
  figures.step_ns = static_cast<double>(all.last - all.first);
  if (busy.total <= 0) return;
  const auto compute = static_cast<double>(all.compute_last - all.compute_first);
  for (const auto& [rank, span] : spans) {
    const Nanoseconds end = std::max(span.compute_last, all.compute_first);  // idle all the time
    waiting += static_cast<double>(all.compute_last - end);
  }
  figures.compute_ns = compute;
  figures.measured_imbalance = busy.imbalance();
  figures.straggler_share = quotient(waiting, compute * static_cast<double>(spans.size()));
}

void add_metrics(const RunRecord& run, FiguresOfStep& figures_of) {
  for (const auto& [step, ranks] : busy_ranks(run, "perf/busy_ms/rank_")) {
    StepFigures& figures = figures_of[step];
    figures.measured_imbalance = ranks.imbalance();
    if (std::isnan(figures.compute_ns) && ranks.most > 0) figures.compute_ns = ranks.most;
    if (std::isnan(figures.straggler_share)) {
      figures.straggler_share = 1 - 1 / figures.measured_imbalance;
    }
  }
  for (const auto& [step, ranks] : busy_ranks(run, "perf/predicted_ms/rank_")) {
    StepFigures& figures = figures_of[step];
    if (std::isnan(figures.predicted_ns) && ranks.most > 0) figures.predicted_ns = ranks.most;
    if (std::isnan(figures.planned_imbalance)) figures.planned_imbalance = ranks.imbalance();
  }
}

// Calls use(step, tokens, tokens per second) where both are known.
template <class Use>
void for_each_speed(const RunRecord& run, Use use) {
  const MetricCurve* tokens = find_curve(run, "train/global_tokens");
  const MetricCurve* speed = find_curve(run, "perf/tokens_per_s");
  if (tokens == nullptr || speed == nullptr) return;
  std::size_t j = 0;
  for (std::size_t i = 0; i < tokens->steps.size(); ++i) {
    while (j < speed->steps.size() && speed->steps[j] < tokens->steps[i]) ++j;
    if (j == speed->steps.size()) return;
    if (speed->steps[j] != tokens->steps[i]) continue;
    const double count = tokens->values[i];
    const double rate = speed->values[j];
    if (std::isfinite(count) && std::isfinite(rate) && count > 0 && rate > 0) {
      use(tokens->steps[i], count, rate);
    }
  }
}

double last_number(const MetricCurve* curve) {
  return curve == nullptr || curve->values.empty() ? unknown_figure : curve->values.back();
}

double mean(std::span<const StepFigures> steps, double StepFigures::*figure) {
  double total = 0;
  std::int64_t count = 0;
  for (const StepFigures& step : steps) {
    if (std::isnan(step.*figure)) continue;
    total += step.*figure;
    ++count;
  }
  return quotient(total, static_cast<double>(count));
}

// Sum of `above` over sum of `below`, of the steps that know both.
double gain(std::span<const StepFigures> steps, double StepFigures::*above,
            double StepFigures::*below) {
  double upper = 0;
  double lower = 0;
  for (const StepFigures& step : steps) {
    if (std::isnan(step.*above) || std::isnan(step.*below)) continue;
    upper += step.*above;
    lower += step.*below;
  }
  return quotient(upper, lower);
}

void add_prediction(std::span<const StepFigures> steps, RunFigures& figures) {
  std::vector<double> ratios;
  for (const StepFigures& step : steps) {
    const double ratio = quotient(step.compute_ns, step.predicted_ns);
    if (std::isfinite(ratio)) ratios.push_back(ratio);
  }
  figures.scale = median(ratios);
  if (ratios.empty() || figures.scale <= 0) return;
  const double error = std::accumulate(
      ratios.begin(), ratios.end(), 0.0,
      [&](double total, double ratio) { return total + std::abs(ratio / figures.scale - 1); });
  figures.prediction_error = error / static_cast<double>(ratios.size());
}

void add_speed(const RunRecord& run, RunFigures& figures) {
  double tokens = 0;
  double seconds = 0;
  for_each_speed(run, [&](std::int64_t, double count, double rate) {
    tokens += count;
    seconds += count / rate;
  });
  figures.mean_tokens_per_s = quotient(tokens, seconds);
  const MetricCurve* speed = find_curve(run, "perf/tokens_per_s");
  if (speed == nullptr) return;
  std::vector<double> known;
  std::copy_if(speed->values.begin(), speed->values.end(), std::back_inserter(known),
               [](double value) { return std::isfinite(value); });
  figures.median_tokens_per_s = median(known);
  if (std::isnan(figures.mean_tokens_per_s) && !known.empty()) {
    figures.mean_tokens_per_s =
        std::accumulate(known.begin(), known.end(), 0.0) / static_cast<double>(known.size());
  }
}

std::int32_t num_ranks(const RunRecord& run) {
  std::int32_t ranks = 0;
  for (const RunStep& step : run.steps) {
    if (step.plan) {
      ranks = std::max(ranks, step.plan->topology.ranks * step.plan->topology.pipeline.stages);
    }
    for (const MeasuredScope& scope : step.scopes) ranks = std::max(ranks, scope.rank + 1);
  }
  const auto busy = busy_ranks(run, "perf/busy_ms/rank_");
  for (const auto& [step, each] : busy) {
    ranks = std::max(ranks, static_cast<std::int32_t>(each.count));
  }
  return ranks;
}

}  // namespace

bool is_compute(std::string_view scope_name) {
  return scope_name == "forward" || scope_name == "backward";
}

const MetricCurve* find_curve(const RunRecord& run, std::string_view name) {
  const auto found = std::lower_bound(
      run.metrics.begin(), run.metrics.end(), name,
      [](const MetricCurve& curve, std::string_view wanted) { return curve.name < wanted; });
  return found != run.metrics.end() && found->name == name ? &*found : nullptr;
}

StepClock step_clock(const RunStep& step) {
  StepClock clock;
  std::vector<Nanoseconds> end_of;
  for (const MeasuredScope& scope : step.scopes) {
    const auto rank = static_cast<std::size_t>(scope.rank);
    if (rank >= end_of.size()) {
      clock.origin_of.resize(rank + 1, latest);
      end_of.resize(rank + 1, latest);
    }
    clock.origin_of[rank] = std::min(clock.origin_of[rank], scope.begin_ns);
    end_of[rank] = end_of[rank] == latest ? scope.end_ns : std::max(end_of[rank], scope.end_ns);
  }
  Nanoseconds first_begin = latest;
  Nanoseconds last_begin = std::numeric_limits<Nanoseconds>::min();
  Nanoseconds first_end = latest;
  for (std::size_t rank = 0; rank < end_of.size(); ++rank) {
    if (end_of[rank] == latest) continue;
    first_begin = std::min(first_begin, clock.origin_of[rank]);
    last_begin = std::max(last_begin, clock.origin_of[rank]);
    first_end = std::min(first_end, end_of[rank]);
  }
  clock.is_common = last_begin <= first_end;
  if (clock.is_common) std::fill(clock.origin_of.begin(), clock.origin_of.end(), first_begin);
  return clock;
}

std::vector<StepFigures> step_figures(const RunRecord& run) {
  FiguresOfStep figures_of;
  const std::vector<std::int64_t>* before =
      nullptr;  // most curves have the steps of the one before
  for (const MetricCurve& curve : run.metrics) {
    if (before != nullptr && curve.steps == *before) continue;
    for (const std::int64_t step : curve.steps) figures_of[step];
    before = &curve.steps;
  }
  for (const RunStep& step : run.steps) {
    StepFigures& figures = figures_of[step.step];
    if (step.plan) add_plan(*step.plan, figures);
    add_trace(run, step, figures);
  }
  add_metrics(run, figures_of);
  for_each_speed(run, [&](std::int64_t step, double tokens, double rate) {
    figures_of[step].step_ns = ns_per_s * tokens / rate;
  });
  std::vector<StepFigures> list;
  for (auto& [step, figures] : figures_of) {
    figures.step = step;
    list.push_back(figures);
  }
  return list;
}

RunFigures run_figures(const RunRecord& run, std::span<const StepFigures> steps) {
  RunFigures figures;
  figures.num_steps = static_cast<std::int64_t>(steps.size());
  if (!steps.empty()) {
    figures.first_step = steps.front().step;
    figures.last_step = steps.back().step;
  }
  for (const RunStep& step : run.steps) {
    figures.num_plans += step.plan ? 1 : 0;
    figures.num_traced += step.scopes.empty() ? 0 : 1;
  }
  figures.ranks = num_ranks(run);
  add_speed(run, figures);
  const MetricCurve* loss = find_curve(run, "train/loss");
  if (loss != nullptr && !loss->values.empty()) figures.first_loss = loss->values.front();
  figures.final_loss = last_number(loss);
  figures.final_val_loss = last_number(find_curve(run, "val/loss"));
  figures.mean_step_ns = mean(steps, &StepFigures::step_ns);
  figures.planned_imbalance = mean(steps, &StepFigures::planned_imbalance);
  figures.measured_imbalance = mean(steps, &StepFigures::measured_imbalance);
  figures.naive_imbalance = mean(steps, &StepFigures::naive_imbalance);
  figures.verl_imbalance = mean(steps, &StepFigures::verl_imbalance);
  figures.straggler_share = mean(steps, &StepFigures::straggler_share);
  figures.naive_gain = gain(steps, &StepFigures::naive_ns, &StepFigures::predicted_ns);
  figures.verl_gain = gain(steps, &StepFigures::verl_ns, &StepFigures::predicted_ns);
  add_prediction(steps, figures);
  return figures;
}

}  // namespace isochron
