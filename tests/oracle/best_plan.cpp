#include "tests/oracle/best_plan.h"

#include <algorithm>
#include <set>

#include "isochron/core/require.h"
#include "tests/oracle/group_table.h"
#include "tests/oracle/schedules.h"

namespace isochron::oracle {

namespace {

struct Search {
  const Topology& topology;
  const CostModel& cost;
  const PlanOptions& options;

  [[nodiscard]] bool has_equal_counts() const { return *options.counts == Counts::equal; }

  [[nodiscard]] std::optional<Nanoseconds> best_filled(const GroupTable& table,
                                                       Nanoseconds limit) const {
    if (topology.pipeline.stages > 1) {
      const bool is_forward = options.pass == Pass::forward;
      const Pipeline pipeline{.stages = static_cast<std::size_t>(topology.pipeline.stages),
                              .virtual_ = static_cast<std::size_t>(topology.pipeline.virtual_),
                              .group = static_cast<std::size_t>(topology.pipeline.group),
                              .transfer_ns = topology.pipeline.transfer_ns,
                              .forward_share = is_forward ? 1 : cost.forward_share,
                              .shares = topology.pipeline.shares,
                              .max_activation_bytes = options.max_activation_bytes};
      return best_pipelined(table, pipeline, options.sync, limit);
    }
    if (options.sync == Sync::microbatch) return best_lockstep(table, limit);
    return best_equal(table, limit);
  }

  [[nodiscard]] std::optional<Nanoseconds> best_of(const GroupTable& table,
                                                   Nanoseconds limit) const {
    if (!has_equal_counts()) {
      return has_nested_ranges(table) ? best_nested(table, limit) : best_free(table, limit);
    }
    std::optional<Nanoseconds> best;
    for (const GroupTable& way : tables_for_equal_counts(table, options)) {
      const auto found = best_filled(way, best.value_or(limit));
      if (found) best = found;
    }
    return best;
  }

  // Every way to give each kept group of several units its range of ranks.
  [[nodiscard]] std::optional<Nanoseconds> best_kept(const GroupTable& table,
                                                     std::set<std::size_t> kinds,
                                                     Nanoseconds limit) const {
    if (kinds.empty()) return best_of(table, limit);
    const std::size_t kind = kinds.extract(kinds.begin()).value();
    std::optional<Nanoseconds> best;
    for (std::size_t range = 0; range < table.ranges.size(); ++range) {
      const GroupTable narrowed = table.with_kin_on(kind, range);
      if (least_areas(narrowed).back() == never) continue;
      const auto found = best_kept(narrowed, kinds, best.value_or(limit));
      if (found) best = found;
    }
    return best;
  }

  [[nodiscard]] std::optional<Nanoseconds> best(const GroupTable& table) const {
    std::set<std::size_t> kinds;
    for (const std::size_t kind : table.kin) {
      if (std::count(table.kin.begin(), table.kin.end(), kind) > 1) kinds.insert(kind);
    }
    return best_kept(table, kinds, never);
  }
};

void require_known(const Topology& topology, const PlanOptions& options) {
  constexpr std::string_view where = "best_step_time";
  require(options.pad_multiple == 1 && options.balance, where,
          "padding rows and dealing in order are not known");
  require(options.max_activation_bytes == 0 || topology.pipeline.stages > 1, where,
          "limits on activations are known with stages only");
  require(options.counts && options.oversize, where, "the options must be resolved");
}

}  // namespace

std::optional<Nanoseconds> best_step_time(const Batch& batch, const Topology& topology,
                                          const CostModel& cost, const PlanOptions& options) {
  require_known(topology, options);
  const Search search{topology, cost, options};
  const auto table = group_table(batch, topology, cost, options);
  if (!table) return std::nullopt;
  if (options.short_ != Short::drop) return search.best(*table);
  for (std::size_t kept = table->num_units; kept > 0; --kept) {
    const auto best = search.best(*group_table(batch, topology, cost, options, kept));
    if (best) return best;
  }
  return std::nullopt;
}

}  // namespace isochron::oracle
