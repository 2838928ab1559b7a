// Curves are thinned to what a wide screen can show. Scopes of a step are one list of numbers per
// rank, [name, slot, begin, duration, name, ..], since there are thousands of them: in the order in
// which they are drawn, the longer of two that begin together first.

#include "isochron/report/run_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "isochron/report/report_json.h"
#include "isochron/report/run_figures.h"
#include "isochron/report/shown_steps.h"
#include "isochron/report/thin_curve.h"

namespace isochron {

namespace {

constexpr std::size_t num_stretches = 700;    // as many as a wide chart has pixels
constexpr std::size_t max_other_curves = 60;  // of metrics that the page has no place for
constexpr std::size_t max_notes = 24;         // beyond these they are counted
constexpr std::size_t max_config_bytes = 1 << 16;

// Metrics per rank are shown as times and imbalance.
constexpr std::array<std::string_view, 2> rank_metrics = {"perf/busy_ms/rank_",
                                                          "perf/predicted_ms/rank_"};

constexpr std::array<std::string_view, 14> known_metrics = {"global_seqlen/balanced_max",
                                                            "global_seqlen/balanced_min",
                                                            "global_seqlen/max",
                                                            "global_seqlen/mean",
                                                            "global_seqlen/min",
                                                            "global_seqlen/minmax_diff",
                                                            "perf/tokens_per_s",
                                                            "train/global_tokens",
                                                            "train/grad_norm",
                                                            "train/loss",
                                                            "train/lr",
                                                            "train/mfu",
                                                            "val/loss",
                                                            "perf/max_memory_allocated_gb"};

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json curve_json(const MetricCurve& curve) {
  const MetricCurve thinned = thin_curve(curve, num_stretches);
  Json values = Json::array();
  for (const double value : thinned.values) values.push_back(number(value));
  Json json;
  json["name"] = curve.name;
  json["steps"] = thinned.steps;
  json["values"] = std::move(values);
  return json;
}

// The steps that know a figure, as a curve.
Json figure_curve(std::span<const StepFigures> figures, const char* name,
                  double StepFigures::*figure) {
  MetricCurve curve = {.name = name, .steps = {}, .values = {}};
  for (const StepFigures& step : figures) {
    if (std::isnan(step.*figure)) continue;
    curve.steps.push_back(step.step);
    curve.values.push_back(step.*figure);
  }
  return curve_json(curve);
}

Json step_curves(std::span<const StepFigures> figures) {
  return Json::array({
      figure_curve(figures, "step_ns", &StepFigures::step_ns),
      figure_curve(figures, "compute_ns", &StepFigures::compute_ns),
      figure_curve(figures, "predicted_ns", &StepFigures::predicted_ns),
      figure_curve(figures, "planned_imbalance", &StepFigures::planned_imbalance),
      figure_curve(figures, "measured_imbalance", &StepFigures::measured_imbalance),
      figure_curve(figures, "naive_imbalance", &StepFigures::naive_imbalance),
      figure_curve(figures, "verl_imbalance", &StepFigures::verl_imbalance),
  });
}

Json figures_json(const StepFigures& figures) {
  Json json;
  json["step_ns"] = number(figures.step_ns);
  json["compute_ns"] = number(figures.compute_ns);
  json["predicted_ns"] = number(figures.predicted_ns);
  json["naive_ns"] = number(figures.naive_ns);
  json["verl_ns"] = number(figures.verl_ns);
  json["planned_imbalance"] = number(figures.planned_imbalance);
  json["measured_imbalance"] = number(figures.measured_imbalance);
  json["naive_imbalance"] = number(figures.naive_imbalance);
  json["verl_imbalance"] = number(figures.verl_imbalance);
  json["straggler_share"] = number(figures.straggler_share);
  return json;
}

Json figures_json(const RunFigures& figures) {
  Json json;
  json["num_steps"] = figures.num_steps;
  json["first_step"] = figures.first_step;
  json["last_step"] = figures.last_step;
  json["num_plans"] = figures.num_plans;
  json["num_traced"] = figures.num_traced;
  json["ranks"] = figures.ranks;
  json["mean_tokens_per_s"] = number(figures.mean_tokens_per_s);
  json["median_tokens_per_s"] = number(figures.median_tokens_per_s);
  json["mean_step_ns"] = number(figures.mean_step_ns);
  json["first_loss"] = number(figures.first_loss);
  json["final_loss"] = number(figures.final_loss);
  json["final_val_loss"] = number(figures.final_val_loss);
  json["planned_imbalance"] = number(figures.planned_imbalance);
  json["measured_imbalance"] = number(figures.measured_imbalance);
  json["naive_imbalance"] = number(figures.naive_imbalance);
  json["verl_imbalance"] = number(figures.verl_imbalance);
  json["naive_gain"] = number(figures.naive_gain);
  json["verl_gain"] = number(figures.verl_gain);
  json["straggler_share"] = number(figures.straggler_share);
  json["scale"] = number(figures.scale);
  json["prediction_error"] = number(figures.prediction_error);
  return json;
}

Json scopes_json(const RunStep& step, const StepClock& clock) {
  std::vector<MeasuredScope> scopes = step.scopes;
  std::stable_sort(scopes.begin(), scopes.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin_ns, b.end_ns) < std::pair(b.begin_ns, a.end_ns);
  });
  Json ranks = Json::array();
  for (std::size_t rank = 0; rank < clock.origin_of.size(); ++rank) ranks.push_back(Json::array());
  for (const MeasuredScope& scope : scopes) {
    const auto rank = static_cast<std::size_t>(scope.rank);
    Json& list = ranks[rank];
    list.push_back(scope.name);
    list.push_back(scope.slot);
    list.push_back(scope.begin_ns - clock.origin_of[rank]);
    list.push_back(scope.end_ns - scope.begin_ns);
  }
  return ranks;
}

Json shown_json(const RunRecord& run, std::span<const StepFigures> figures,
                std::span<const ShownStep> shown) {
  Json list = Json::array();
  for (const ShownStep& each : shown) {
    const auto step = std::lower_bound(run.steps.begin(), run.steps.end(), each.step,
                                       [](const RunStep& a, std::int64_t b) { return a.step < b; });
    if (step == run.steps.end() || step->step != each.step) {
      list.push_back(nullptr);
      continue;
    }
    const auto known =
        std::lower_bound(figures.begin(), figures.end(), each.step,
                         [](const StepFigures& a, std::int64_t b) { return a.step < b; });
    const StepClock clock = step_clock(*step);
    Json json = figures_json(*known);
    json["planned"] = step->plan ? step_json({.plan = *step->plan, .violation = ""}) : Json();
    json["has_common_clock"] = clock.is_common;
    json["scopes"] = scopes_json(*step, clock);
    list.push_back(std::move(json));
  }
  return list;
}

bool is_rank_metric(std::string_view name) {
  return std::any_of(rank_metrics.begin(), rank_metrics.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

Json metrics_json(const RunRecord& run, std::vector<std::string>& notes) {
  Json list = Json::array();
  std::size_t num_others = 0;
  for (const MetricCurve& curve : run.metrics) {
    if (curve.steps.empty() || is_rank_metric(curve.name)) continue;
    const bool is_known =
        std::find(known_metrics.begin(), known_metrics.end(), curve.name) != known_metrics.end();
    if (!is_known && ++num_others > max_other_curves) continue;
    list.push_back(curve_json(curve));
    const auto broken = std::find_if(curve.values.begin(), curve.values.end(),
                                     [](double value) { return !std::isfinite(value); });
    if (broken == curve.values.end()) continue;
    const auto count = std::count_if(curve.values.begin(), curve.values.end(),
                                     [](double value) { return !std::isfinite(value); });
    notes.push_back(fmt::format(
        "{} is not a number in {} of {} steps, first in step {}.", curve.name, count,
        curve.values.size(), curve.steps[static_cast<std::size_t>(broken - curve.values.begin())]));
  }
  if (num_others > max_other_curves) {
    notes.push_back(
        fmt::format("{} more metrics have no curve on this page.", num_others - max_other_curves));
  }
  return list;
}

Json notes_json(std::vector<std::string> notes) {
  if (notes.size() > max_notes) {
    const std::size_t more = notes.size() - max_notes;
    notes.resize(max_notes);
    notes.push_back(fmt::format("and {} more of this kind.", more));
  }
  return notes;
}

Json run_object(const RunRecord& run, std::span<const StepFigures> figures,
                std::span<const ShownStep> shown) {
  std::vector<std::string> notes = run.notes;
  Json json;
  json["name"] = run.name;
  json["config"] = run.config.substr(0, max_config_bytes);
  json["is_config_cut"] = run.config.size() > max_config_bytes;
  json["figures"] = figures_json(run_figures(run, figures));
  json["metrics"] = metrics_json(run, notes);
  json["curves"] = step_curves(figures);
  json["scope_names"] = run.scope_names;
  json["shown"] = shown_json(run, figures, shown);
  json["notes"] = notes_json(std::move(notes));
  return json;
}

}  // namespace

std::string run_json(std::span<const RunRecord> runs) {
  std::vector<std::vector<StepFigures>> figures;
  for (const RunRecord& run : runs) figures.push_back(step_figures(run));
  const std::vector<ShownStep> shown = shown_steps(runs, figures);
  Json steps = Json::array();
  for (const ShownStep& step : shown) {
    Json json;
    json["step"] = step.step;
    json["why"] = step.why;
    steps.push_back(std::move(json));
  }
  Json list = Json::array();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    list.push_back(run_object(runs[i], figures[i], shown));
  }
  Json document;
  document["steps"] = std::move(steps);
  document["runs"] = std::move(list);
  // Text in the files of a run need not be UTF-8.
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace isochron
