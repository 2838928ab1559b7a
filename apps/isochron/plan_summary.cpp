#include "apps/isochron/plan_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "apps/isochron/table.h"
#include "isochron/core/json.h"

namespace isochron {

namespace {

constexpr std::size_t max_reasons = 8;  // shown; the plans themselves have all

Json json_of(const std::optional<Distribution>& distribution) {
  if (!distribution) return nullptr;
  const auto& [count, min, mean, median, p95, max] = *distribution;
  return {{"count", count},   {"min", min}, {"mean", mean},
          {"median", median}, {"p95", p95}, {"max", max}};
}

// A reason counts the sequences of its batch from 0; here they are counted as in the data set.
std::string counted_from(std::int64_t first, std::string_view reason) {
  constexpr std::string_view before = "sequence ";
  std::string text;
  for (std::size_t found = reason.find(before); found != std::string_view::npos;
       found = reason.find(before)) {
    text += reason.substr(0, found + before.size());
    reason.remove_prefix(found + before.size());
    const std::size_t end = std::min(reason.find_first_not_of("0123456789"), reason.size());
    if (const auto number = find_integer(reason.substr(0, end))) {
      text += fmt::format("{}", first + *number);
      reason.remove_prefix(end);
    }
  }
  return text + std::string(reason);
}

}  // namespace

std::optional<Distribution> distribution_of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const std::size_t count = values.size();
  const std::size_t num_covered = (95 * count + 99) / 100;
  return Distribution{
      .count = static_cast<std::int64_t>(count),
      .min = values.front(),
      .mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(count),
      .median = (values[(count - 1) / 2] + values[count / 2]) / 2,
      .p95 = values[num_covered - 1],
      .max = values.back()};
}

std::string PlanSummary::value_text(double value, Unit unit) {
  switch (unit) {
    case Unit::share:
      return fmt::format("{:.2f} %", 100 * value);
    case Unit::ratio:
      return fmt::format("{:.4f}", value);
    case Unit::count:
      break;
  }
  return fmt::format("{:.1f}", value);
}

void PlanSummary::add(const StepPlan& plan, const StepPlan& dealt) {
  const auto num_rows = static_cast<std::int64_t>(plan.batch.lengths.size());
  ++num_of_status_[static_cast<std::size_t>(plan.status)];
  num_sequences_ += num_rows;
  ++num_batches_;
  if (plan.microbatches.empty()) {
    unanswered_.push_back(fmt::format("batch {}, sequences {} to {}: {}: {}", num_batches_ - 1,
                                      plan.first_sequence, plan.first_sequence + num_rows - 1,
                                      name_of(plan.status),
                                      counted_from(plan.first_sequence, plan.reason)));
    return;
  }
  const PlanFigures figures = figures_of(plan);
  const auto step_ns = static_cast<double>(plan.predicted_step_ns);
  const auto bound_ns = static_cast<double>(plan.lower_bound_ns);
  auto& [imbalance, gap, saved, padding, fill, slots] = figures_;
  imbalance.values.push_back(plan.imbalance);
  if (plan.lower_bound_ns > 0) gap.values.push_back((step_ns - bound_ns) / bound_ns);
  if (!dealt.microbatches.empty() && dealt.predicted_step_ns > 0) {
    const auto without_ns = static_cast<double>(dealt.predicted_step_ns);
    saved.values.push_back((without_ns - step_ns) / without_ns);
    planned_ns_ += step_ns;
    dealt_ns_ += without_ns;
  }
  padding.values.push_back(figures.padding_share());
  fill.values.push_back(figures.token_fill());
  slots.values.push_back(static_cast<double>(figures.num_slots));
}

std::string PlanSummary::text() const {
  std::string text = fmt::format("{} batches:", grouped_digits(num_batches_));
  std::string_view separator = " ";
  for (const auto& [status, name] : EnumNames<Status>::values) {
    const std::int64_t count = num_of_status_[static_cast<std::size_t>(status)];
    if (count == 0) continue;
    text += fmt::format("{}{} {}", separator, grouped_digits(count), name);
    separator = ", ";
  }
  text += "\n\n";
  std::vector<std::vector<std::string>> rows = {{"", "min", "mean", "median", "95 %", "max"}};
  for (const Figure& figure : figures_) {
    const auto distribution = distribution_of(figure.values);
    if (!distribution) continue;
    const auto& [count, min, mean, median, p95, max] = *distribution;
    std::vector<std::string>& row = rows.emplace_back();
    row.emplace_back(figure.title);
    for (const double value : {min, mean, median, p95, max}) {
      row.push_back(value_text(value, figure.unit));
    }
  }
  if (rows.size() > 1) text += text_table(rows);
  if (dealt_ns_ > 0) {
    text += fmt::format(
        "\nall steps together take {:.2f} % less time than the batches dealt in "
        "order\n",
        100 * (1 - planned_ns_ / dealt_ns_));
  }
  if (!unanswered_.empty()) text += "\n";
  for (std::size_t i = 0; i < std::min(unanswered_.size(), max_reasons); ++i) {
    text += unanswered_[i] + "\n";
  }
  if (unanswered_.size() > max_reasons) {
    text += fmt::format("and {} more without a plan\n", unanswered_.size() - max_reasons);
  }
  return text;
}

std::string PlanSummary::json(std::int64_t batch_size) const {
  Json json = {{"schema", "isochron.plan_summary.v1"},
               {"batch", batch_size},
               {"batches", num_batches_},
               {"sequences", num_sequences_}};
  Json& status = json["status"];
  for (const auto& [value, name] : EnumNames<Status>::values) {
    status[std::string(name)] = num_of_status_[static_cast<std::size_t>(value)];
  }
  for (const Figure& figure : figures_) json[figure.key] = json_of(distribution_of(figure.values));
  return json.dump() + "\n";
}

}  // namespace isochron
