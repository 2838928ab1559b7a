#include "tests/oracle/group_table.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace isochron::oracle {

namespace {

struct Unit {
  std::vector<std::size_t> sequences;
  std::size_t kin = 0;
};

std::vector<Unit> units_of(const Batch& batch, KeepGroups keep_groups) {
  std::vector<Unit> units;
  for (std::size_t i = 0; i < batch.lengths.size(); ++i) {
    const std::size_t kin =
        keep_groups == KeepGroups::none || batch.groups.empty() ? i : batch.groups[i].index();
    const auto home = std::find_if(units.begin(), units.end(),
                                   [kin](const Unit& unit) { return unit.kin == kin; });
    if (keep_groups == KeepGroups::microbatch && home != units.end()) {
      home->sequences.push_back(i);
    } else {
      units.push_back({{i}, kin});
    }
  }
  return units;
}

bool is_size_admissible(std::int64_t size, std::int64_t ranks, ContextMode::Kind kind) {
  const bool is_power = (size & (size - 1)) == 0;
  return kind == ContextMode::Kind::any || is_power || ranks % size == 0;
}

std::vector<RankRange> ranges_of(std::int64_t ranks, const PlanOptions& options) {
  const ContextMode mode = context_mode(options.context);
  const bool is_fixed = mode.kind == ContextMode::Kind::fixed;
  const std::int64_t least = is_fixed ? mode.size : options.min_context_size;
  const std::int64_t most = is_fixed                        ? mode.size
                            : options.max_context_size == 0 ? ranks
                                                            : options.max_context_size;
  std::vector<RankRange> ranges;
  for (std::int64_t first = 0; first < ranks; ++first) {
    for (std::int64_t size = least; size <= most && first + size <= ranks; ++size) {
      const bool is_placed = mode.kind == ContextMode::Kind::any || first % size == 0;
      if (is_placed && (is_fixed || is_size_admissible(size, ranks, mode.kind))) {
        ranges.push_back({first, size});
      }
    }
  }
  return ranges;
}

// One question, and what a group of it costs.
struct Question {
  const Batch& batch;
  const Topology& topology;
  const CostModel& cost;
  const PlanOptions& options;

  [[nodiscard]] Tokens padded(Tokens length, std::int64_t size) const {
    const std::int64_t step = (size > 1 ? 2 * size : 1) * options.tensor_parallel;
    return length % step == 0 ? length : length + step - length % step;
  }

  [[nodiscard]] Tokens tokens(RankRange ranks, const std::vector<std::size_t>& sequences) const {
    Tokens sum = 0;
    for (const std::size_t i : sequences) sum += padded(batch.lengths[i], ranks.size);
    return sum;
  }

  [[nodiscard]] bool holds(RankRange ranks, const std::vector<std::size_t>& sequences) const {
    return tokens(ranks, sequences) <= topology.capacity * ranks.size;
  }

  // On each of the ranks, over all stages.
  [[nodiscard]] double activation_bytes(RankRange ranks,
                                        const std::vector<std::size_t>& sequences) const {
    return static_cast<double>(tokens(ranks, sequences) / ranks.size) *
           cost.activation_bytes_per_token;
  }

  [[nodiscard]] bool has_too_many(const std::vector<std::size_t>& sequences) const {
    return options.max_sequences > 0 &&
           sequences.size() > static_cast<std::size_t>(options.max_sequences);
  }

  // On the slowest of the ranks, in the pass that is asked for.
  [[nodiscard]] Nanoseconds paced(Nanoseconds model_cost, RankRange ranks) const {
    Nanoseconds result = model_cost;
    if (!topology.rank_speed.empty()) {
      const auto first = topology.rank_speed.begin() + ranks.first;
      const double slowest = *std::min_element(first, first + ranks.size);
      result = std::llround(static_cast<double>(model_cost) / slowest);
    }
    if (options.pass == Pass::forward) {
      result = std::llround(cost.forward_share * static_cast<double>(result));
    }
    return result;
  }

  [[nodiscard]] Nanoseconds model_cost(RankRange ranks, const ContextCost& context,
                                       const std::vector<std::size_t>& sequences) const {
    const auto link = find_link(context, ranks);
    if (!link) return never;
    Nanoseconds sum = microbatch_cost(cost);
    if (ranks.size > 1) sum += link_latency(*link);
    for (const std::size_t i : sequences) {
      const Nanoseconds extra = batch.extra_cost_ns.empty() ? 0 : batch.extra_cost_ns[i];
      sum += find_sequence_cost(cost, context, ranks, batch.lengths[i], extra).value();
    }
    return sum;
  }

  // Whatever the capacity.
  [[nodiscard]] Nanoseconds group_cost(RankRange ranks,
                                       const std::vector<std::size_t>& sequences) const {
    Nanoseconds least = never;
    if (ranks.size == 1) {
      least = model_cost(ranks, ContextCost{}, sequences);
    } else {
      for (const ContextCost& context : cost.context) {
        least = std::min(least, model_cost(ranks, context, sequences));
      }
    }
    return least == never ? never : paced(least, ranks);
  }

  // Ranks that a unit of another group could be given: one, or those of a static group. None if no
  // group may be as small.
  [[nodiscard]] std::int64_t smallest_gift() const {
    const ContextMode mode = context_mode(options.context);
    if (mode.kind == ContextMode::Kind::fixed) return mode.size;
    return options.min_context_size == 1 ? 1 : 0;
  }

  // Where a unit that fits no admissible range may stand alone.
  [[nodiscard]] bool may_stand_alone_on(RankRange ranks) const {
    if (*options.oversize != Oversize::alone) return false;
    const ContextMode mode = context_mode(options.context);
    return ranks.size == (mode.kind == ContextMode::Kind::fixed ? mode.size : topology.ranks);
  }
};

}  // namespace

GroupTable GroupTable::with_kin_on(std::size_t kind, std::size_t range) const {
  UnitSet relatives = 0;
  for (std::size_t i = 0; i < num_units; ++i) {
    if (kin[i] == kind) relatives |= UnitSet{1} << i;
  }
  GroupTable result = *this;
  for (UnitSet set = 1; set <= all(); ++set) {
    for (std::size_t r = 0; r < ranges.size() && (set & relatives) != 0; ++r) {
      if (r != range) result.costs[set * ranges.size() + r] = never;
    }
  }
  return result;
}

std::optional<GroupTable> group_table(const Batch& batch, const Topology& topology,
                                      const CostModel& cost, const PlanOptions& options,
                                      std::optional<std::size_t> num_units) {
  const Question question{batch, topology, cost, options};
  std::vector<Unit> units = units_of(batch, options.keep_groups);
  units.resize(num_units.value_or(units.size()));

  GroupTable table;
  table.num_units = units.size();
  table.num_ranks = static_cast<std::size_t>(topology.ranks);
  table.ranges = ranges_of(topology.ranks, options);
  for (const Unit& unit : units) table.kin.push_back(unit.kin);
  for (std::int64_t rank = 0; rank < topology.ranks; ++rank) {
    table.placeholder_costs.push_back(question.paced(microbatch_cost(cost), {rank, 1}));
  }

  UnitSet oversized = 0;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const std::vector<std::size_t>& sequences = units[i].sequences;
    if (question.has_too_many(sequences)) return std::nullopt;
    const auto fits = [&](RankRange ranks) {
      return question.holds(ranks, sequences) && question.group_cost(ranks, sequences) < never;
    };
    if (std::none_of(table.ranges.begin(), table.ranges.end(), fits)) oversized |= UnitSet{1} << i;
  }
  const std::size_t num_admissible = table.ranges.size();
  const RankRange all_ranks{0, topology.ranks};
  if (std::find(table.ranges.begin(), table.ranges.end(), all_ranks) == table.ranges.end()) {
    table.ranges.push_back(all_ranks);  // for those that stand alone, whatever the largest size
  }
  table.costs.assign((std::size_t{1} << units.size()) * table.ranges.size(), never);
  table.bytes.assign(table.costs.size(), 0);
  table.can_give.assign(table.costs.size(), false);
  const std::int64_t gift = question.smallest_gift();
  for (UnitSet set = 1; set <= table.all(); ++set) {
    const bool is_oversized = (set & oversized) != 0;
    if (is_oversized && std::popcount(set) > 1) continue;
    std::vector<std::size_t> sequences;
    for (std::size_t i = 0; i < units.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      sequences.insert(sequences.end(), units[i].sequences.begin(), units[i].sequences.end());
    }
    if (question.has_too_many(sequences)) continue;
    bool has_gift = false;
    for (std::size_t i = 0; i < units.size() && gift > 0 && std::popcount(set) > 1; ++i) {
      has_gift = has_gift || ((set >> i & 1) != 0 && question.holds({0, gift}, units[i].sequences));
    }
    for (std::size_t r = 0; r < table.ranges.size(); ++r) {
      const RankRange ranks = table.ranges[r];
      const bool is_allowed = is_oversized ? question.may_stand_alone_on(ranks)
                                           : r < num_admissible && question.holds(ranks, sequences);
      if (is_allowed) {
        table.costs[set * table.ranges.size() + r] = question.group_cost(ranks, sequences);
        table.bytes[set * table.ranges.size() + r] = question.activation_bytes(ranks, sequences);
        table.can_give[set * table.ranges.size() + r] = has_gift;
      }
    }
  }
  for (std::size_t i = 0; i < units.size(); ++i) {
    const auto first = table.costs.begin() +
                       static_cast<std::ptrdiff_t>((std::size_t{1} << i) * table.ranges.size());
    if (*std::min_element(first, first + static_cast<std::ptrdiff_t>(table.ranges.size())) ==
        never) {
      return std::nullopt;
    }
  }
  return table;
}

std::vector<Nanoseconds> least_areas(const GroupTable& table) {
  std::vector<Nanoseconds> of_group(table.all() + std::size_t{1}, never);
  for (UnitSet set = 1; set <= table.all(); ++set) {
    for (std::size_t r = 0; r < table.ranges.size(); ++r) {
      const Nanoseconds cost = table.cost(set, r);
      if (cost < never) of_group[set] = std::min(of_group[set], cost * table.ranges[r].size);
    }
  }
  std::vector<Nanoseconds> areas(of_group.size(), never);
  areas[0] = 0;
  for (UnitSet set = 1; set <= table.all(); ++set) {
    for_each_part(set, [&](UnitSet part) {
      if (part != 0) areas[set] = std::min(areas[set], of_group[part] + areas[set ^ part]);
    });
  }
  return areas;
}

std::vector<GroupTable> tables_for_equal_counts(const GroupTable& table,
                                                const PlanOptions& options) {
  const ContextMode mode = context_mode(options.context);
  const auto size = static_cast<std::size_t>(mode.size);  // 1 if dynamic
  const std::size_t num_blocks = table.num_ranks / size;
  const bool is_bound = options.keep_groups == KeepGroups::rank;
  if (options.max_activation_bytes > 0 && options.short_ == Short::empty) return {table};
  std::vector<GroupTable> tables;
  for (UnitSet with = 0; with < UnitSet{1} << num_blocks; ++with) {  // blocks with placeholders
    const bool is_all = with + 1 == UnitSet{1} << num_blocks;
    if (with != 0 && (options.short_ != Short::empty || (!is_bound && !is_all))) continue;
    GroupTable& result = tables.emplace_back(table);
    for (std::size_t rank = 0; rank < table.num_ranks; ++rank) {
      if ((with >> (rank / size) & 1) == 0) result.placeholder_costs[rank] = never;
    }
    for (std::size_t i = 0; i < table.costs.size(); ++i) {
      const RankRange ranks = table.ranges[i % table.ranges.size()];
      const auto block = static_cast<std::size_t>(ranks.first) / size;
      const bool is_near = !is_bound || (ranks.size == mode.size && (with >> block & 1) != 0);
      if (with != 0 && table.can_give[i] && is_near) result.costs[i] = never;
    }
  }
  return tables;
}

std::vector<Nanoseconds> slot_costs(const GroupTable& table) {
  const std::size_t num_sets = table.all() + std::size_t{1};
  // from[rank][set]: the set on the ranks from `rank` on.
  std::vector<std::vector<Nanoseconds>> from(table.num_ranks + 1,
                                             std::vector<Nanoseconds>(num_sets, never));
  from[table.num_ranks][0] = 0;
  for (std::size_t rank = table.num_ranks; rank-- > 0;) {
    for (std::size_t set = 0; set < num_sets; ++set) {
      from[rank][set] = std::max(table.placeholder_costs[rank], from[rank + 1][set]);
    }
    for (std::size_t r = 0; r < table.ranges.size(); ++r) {
      const RankRange ranks = table.ranges[r];
      if (static_cast<std::size_t>(ranks.first) != rank) continue;
      const auto& behind = from[rank + static_cast<std::size_t>(ranks.size)];
      for (UnitSet set = 1; set <= table.all(); ++set) {
        for_each_part(set, [&](UnitSet part) {
          if (part == 0) return;
          const Nanoseconds longest = std::max(table.cost(part, r), behind[set ^ part]);
          from[rank][set] = std::min(from[rank][set], longest);
        });
      }
    }
  }
  return from[0];
}

}  // namespace isochron::oracle
