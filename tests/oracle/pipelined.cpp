// Step time of 1F1B over several stages: every plan, in every order of its slots, is played.
//
// All ranks follow one order of slots, so a stage runs the same visits on all ranks: forwards until
// the pipeline is full, then a forward and a backward in turn, then what is left of the backwards.
// The visits of the first few slots keep their order whatever follows, so those slots alone never
// take longer than the step: the search cuts where they are no faster than the best known.

#include <algorithm>
#include <cmath>

#include "tests/oracle/partitions.h"
#include "tests/oracle/schedules.h"

namespace isochron::oracle {

namespace {

struct Group {
  RankRange ranks;
  Nanoseconds cost = 0;
};
using Slot = std::vector<Group>;

struct Visit {
  std::size_t slot = 0;
  bool is_forward = true;
};

std::vector<Visit> visits_of(std::size_t stage, const Pipeline& pipeline, std::size_t num_slots) {
  const bool has_backward = pipeline.forward_share < 1;
  const std::size_t ahead = pipeline.stages - 1 - stage;
  std::vector<Visit> visits;
  for (std::size_t i = 0; i < num_slots + ahead; ++i) {
    if (i < num_slots) visits.push_back({i, true});
    if (has_backward && i >= ahead) visits.push_back({i - ahead, false});
  }
  return visits;
}

Nanoseconds share_of_stage(Nanoseconds cost, const Pipeline& pipeline, std::size_t stage) {
  if (!pipeline.shares.empty()) {
    return static_cast<Nanoseconds>(std::ceil(static_cast<double>(cost) * pipeline.shares[stage]));
  }
  const auto parts = static_cast<Nanoseconds>(pipeline.stages);
  return (cost + parts - 1) / parts;
}

// When the last visit ends.
Nanoseconds play(const std::vector<Slot>& slots, const Pipeline& pipeline, std::size_t num_ranks) {
  const std::size_t stages = pipeline.stages;
  std::vector<std::vector<Visit>> visits;
  for (std::size_t stage = 0; stage < stages; ++stage) {
    visits.push_back(visits_of(stage, pipeline, slots.size()));
  }
  std::vector<std::vector<Nanoseconds>> free(stages, std::vector<Nanoseconds>(num_ranks, 0));
  // [stage][slot][group]: when the visit has ended; none: it has not been played.
  using Ends = std::vector<std::vector<std::vector<Nanoseconds>>>;
  Ends forward_ends(stages, std::vector<std::vector<Nanoseconds>>(slots.size()));
  Ends backward_ends = forward_ends;
  std::vector<std::size_t> played(stages, 0);
  Nanoseconds end_of_all = 0;

  for (bool has_moved = true; has_moved;) {
    has_moved = false;
    for (std::size_t stage = 0; stage < stages; ++stage) {
      if (played[stage] == visits[stage].size()) continue;
      const Visit visit = visits[stage][played[stage]];
      const bool is_first = visit.is_forward && stage == 0;
      const bool turns = !visit.is_forward && stage + 1 == stages;
      std::vector<Nanoseconds> inputs(slots[visit.slot].size(), 0);
      if (!is_first) {
        inputs = visit.is_forward ? forward_ends[stage - 1][visit.slot]
                 : turns          ? forward_ends[stage][visit.slot]
                                  : backward_ends[stage + 1][visit.slot];
        if (inputs.empty()) continue;
      }
      std::vector<Nanoseconds> ends;
      for (std::size_t g = 0; g < inputs.size(); ++g) {
        const Group& group = slots[visit.slot][g];
        const Nanoseconds forward =
            std::llround(pipeline.forward_share * static_cast<double>(group.cost));
        const Nanoseconds cost =
            share_of_stage(visit.is_forward ? forward : group.cost - forward, pipeline, stage);
        Nanoseconds start = inputs[g] + (is_first || turns ? 0 : pipeline.transfer_ns);
        const auto first = free[stage].begin() + group.ranks.first;
        start = std::max(start, *std::max_element(first, first + group.ranks.size));
        std::fill(first, first + group.ranks.size, start + cost);
        ends.push_back(start + cost);
        end_of_all = std::max(end_of_all, start + cost);
      }
      (visit.is_forward ? forward_ends : backward_ends)[stage][visit.slot] = std::move(ends);
      ++played[stage];
      has_moved = true;
    }
  }
  return end_of_all;
}

// Sync microbatch: a slot is as long as its slowest group on every rank. Longer slots never make a
// step shorter, so each set of units takes its shortest slot.
Nanoseconds best_in_lockstep(const GroupTable& table, const Pipeline& pipeline, Nanoseconds limit) {
  const std::vector<Nanoseconds> slot_cost = slot_costs(table);
  Nanoseconds best = limit;
  for_each_partition(table.num_units, table.num_units,
                     [&](const std::vector<std::size_t>& slot_of, std::size_t num_slots) {
                       std::vector<UnitSet> sets(num_slots, 0);
                       for (std::size_t i = 0; i < slot_of.size(); ++i)
                         sets[slot_of[i]] |= UnitSet{1} << i;
                       std::sort(sets.begin(), sets.end());
                       do {
                         std::vector<Slot> slots;
                         for (const UnitSet set : sets) {
                           if (slot_cost[set] == never) return;
                           slots.push_back({{{0, 1}, slot_cost[set]}});
                         }
                         best = std::min(best, play(slots, pipeline, 1));
                       } while (std::next_permutation(sets.begin(), sets.end()));
                     });
  return best;
}

class PlanSearch {
 public:
  PlanSearch(const GroupTable& table, const Pipeline& pipeline, Nanoseconds limit)
      : table_(table), pipeline_(pipeline), areas_(least_areas(table)), best_(limit) {}

  Nanoseconds run() {
    open_slot(table_.all());
    return best_;
  }

 private:
  [[nodiscard]] bool is_hopeless(UnitSet rest) const {
    if (areas_[rest] == never) return true;
    const auto num_ranks = static_cast<Nanoseconds>(table_.num_ranks);
    const auto stages = static_cast<Nanoseconds>(pipeline_.stages);
    // No stage of any rank works longer than the step takes.
    return (area_ + areas_[rest]) / num_ranks / stages >= best_;
  }

  void open_slot(UnitSet rest) {
    const Nanoseconds so_far = play(slots_, pipeline_, table_.num_ranks);
    if (so_far >= best_) return;
    if (rest == 0) {
      best_ = so_far;
      return;
    }
    slots_.emplace_back();
    fill_from(0, rest, rest);
    slots_.pop_back();
  }

  void fill_from(std::size_t rank, UnitSet rest, UnitSet rest_at_open) {
    if (is_hopeless(rest)) return;
    if (rank == table_.num_ranks) {
      if (rest != rest_at_open) open_slot(rest);
      return;
    }
    if (table_.placeholder_costs[rank] < never) {
      place({{static_cast<std::int64_t>(rank), 1}, table_.placeholder_costs[rank]}, rest,
            rest_at_open);
    }
    for (std::size_t r = 0; r < table_.ranges.size(); ++r) {
      if (static_cast<std::size_t>(table_.ranges[r].first) != rank) continue;
      for_each_part(rest, [&](UnitSet group) {
        if (group == 0 || table_.cost(group, r) == never) return;
        place({table_.ranges[r], table_.cost(group, r)}, rest ^ group, rest_at_open);
      });
    }
  }

  void place(const Group& group, UnitSet rest, UnitSet rest_at_open) {
    slots_.back().push_back(group);
    area_ += group.cost * group.ranks.size;
    fill_from(static_cast<std::size_t>(group.ranks.first + group.ranks.size), rest, rest_at_open);
    area_ -= group.cost * group.ranks.size;
    slots_.back().pop_back();
  }

  const GroupTable& table_;
  const Pipeline& pipeline_;
  std::vector<Nanoseconds> areas_;
  Nanoseconds best_;
  std::vector<Slot> slots_;
  Nanoseconds area_ = 0;
};

}  // namespace

std::optional<Nanoseconds> best_pipelined(const GroupTable& table, const Pipeline& pipeline,
                                          Sync sync, Nanoseconds limit) {
  // A plan that waits after every slot is no faster than the same plan without: a start.
  Nanoseconds best = best_in_lockstep(table, pipeline, limit);
  if (sync == Sync::step) best = PlanSearch(table, pipeline, best).run();
  return best < limit ? std::optional(best) : std::nullopt;
}

}  // namespace isochron::oracle
