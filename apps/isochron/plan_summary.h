#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/isochron/plan_figures.h"
#include "isochron/core/status.h"
#include "isochron/step/step_plan.h"

namespace isochron {

// Of some values: the median is the mean of the two in the middle if they are even in number, the
// 95th percentile the smallest value that at least 95 % do not exceed.
struct Distribution {
  std::int64_t count = 0;
  double min = 0;
  double mean = 0;
  double median = 0;
  double p95 = 0;
  double max = 0;
};

// None of no values.
[[nodiscard]] std::optional<Distribution> distribution_of(std::vector<double> values);

// What the plans of a data set have in common, batch by batch.
class PlanSummary {
 public:
  // `dealt`: the same batch without a planner; without micro-batches if it has no such plan.
  void add(const StepPlan& plan, const StepPlan& dealt);

  // The table for people, and the batches without a plan in words.
  [[nodiscard]] std::string text() const;

  // The document of the schema isochron.plan_summary.v1 (docs/plan.md), on one line.
  [[nodiscard]] std::string json(std::int64_t batch_size) const;

  [[nodiscard]] bool has_all_plans() const { return unanswered_.empty(); }

 private:
  enum class Unit { share, ratio, count };

  // A figure of each batch; shares are fractions, shown in percent.
  struct Figure {
    const char* key;
    const char* title;
    Unit unit;
    std::vector<double> values = {};
  };

  [[nodiscard]] static std::string value_text(double value, Unit unit);

  std::int64_t num_batches_ = 0;
  std::int64_t num_sequences_ = 0;
  std::array<std::int64_t, 4> num_of_status_ = {};
  double planned_ns_ = 0;  // over the batches that have both plans
  double dealt_ns_ = 0;
  std::array<Figure, 6> figures_ = {{{"imbalance", "imbalance", Unit::ratio},
                                     {"gap", "gap to bound", Unit::share},
                                     {"time_saved", "time saved", Unit::share},
                                     {"padding_share", "padding", Unit::share},
                                     {"token_fill", "token fill", Unit::share},
                                     {"slots", "slots", Unit::count}}};
  std::vector<std::string> unanswered_;  // in words
};

}  // namespace isochron
