// Step time of 1F1B over several stages: every plan, in every order of its slots, is played.
//
// All ranks follow one order of slots, so a stage runs the same visits on all ranks: forwards until
// the pipeline is full, then a forward and a backward in turn, then what is left of the backwards.
// With virtual stages `group` slots pass one chunk of the stage before its next chunk begins, and
// slots of placeholders alone, fewer than `group`, complete a multiple of it. The visits of the
// first groups of slots keep their order whatever follows, and slots that take no time never make
// others later: the first few slots, with empty ones up to a multiple, never take longer than the
// step, and the search cuts where they are no faster than the best known.

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/oracle/partitions.h"
#include "tests/oracle/schedules.h"

namespace isochron::oracle {

namespace {

struct Group {
  RankRange ranks;
  Nanoseconds cost = 0;
  double bytes = 0;  // of activations on each rank, over all chunks
};
using Slot = std::vector<Group>;

struct Visit {
  std::size_t slot = 0;
  std::size_t chunk = 0;  // on stage chunk % stages
  bool is_forward = true;
};

std::vector<Visit> visits_of(std::size_t stage, const Pipeline& pipeline, std::size_t num_slots) {
  const bool has_backward = pipeline.forward_share < 1;
  std::vector<std::pair<std::size_t, std::size_t>> turns;  // slot, which chunk of the stage
  for (std::size_t first = 0; first < num_slots; first += pipeline.group) {
    for (std::size_t turn = 0; turn < pipeline.virtual_; ++turn) {
      for (std::size_t i = 0; i < pipeline.group; ++i) turns.emplace_back(first + i, turn);
    }
  }
  const std::size_t below = pipeline.stages - 1 - stage;
  const std::size_t ahead =
      pipeline.virtual_ == 1 ? below : 2 * below + (pipeline.virtual_ - 1) * pipeline.group;
  std::vector<Visit> visits;
  for (std::size_t i = 0; i < turns.size() + ahead; ++i) {
    if (i < turns.size()) {
      const auto [slot, turn] = turns[i];
      visits.push_back({slot, turn * pipeline.stages + stage, true});
    }
    if (has_backward && i >= ahead) {
      const auto [slot, turn] = turns[i - ahead];
      visits.push_back({slot, (pipeline.virtual_ - 1 - turn) * pipeline.stages + stage, false});
    }
  }
  return visits;
}

Nanoseconds share_of_chunk(Nanoseconds cost, const Pipeline& pipeline, std::size_t chunk) {
  if (!pipeline.shares.empty()) {
    return static_cast<Nanoseconds>(std::ceil(static_cast<double>(cost) * pipeline.shares[chunk]));
  }
  const auto parts = static_cast<Nanoseconds>(pipeline.stages * pipeline.virtual_);
  return (cost + parts - 1) / parts;
}

// How many slots are missing to a multiple of the group.
std::size_t num_missing(std::size_t num_slots, const Pipeline& pipeline) {
  return (pipeline.group - num_slots % pipeline.group) % pipeline.group;
}

// The visits of all stages, each after those of its stage and of its slot that it waits for.
std::vector<Visit> visits_of_all(const Pipeline& pipeline, std::size_t num_slots) {
  const std::size_t chunks = pipeline.stages * pipeline.virtual_;
  std::vector<std::vector<Visit>> visits;
  for (std::size_t stage = 0; stage < pipeline.stages; ++stage) {
    visits.push_back(visits_of(stage, pipeline, num_slots));
  }
  std::vector<std::size_t> next_of_stage(pipeline.stages, 0);
  std::vector<std::size_t> next_of_slot(num_slots, 0);  // place on its way down and up
  std::vector<Visit> result;
  for (bool has_moved = true; has_moved;) {
    has_moved = false;
    for (std::size_t stage = 0; stage < pipeline.stages; ++stage) {
      if (next_of_stage[stage] == visits[stage].size()) continue;
      const Visit& visit = visits[stage][next_of_stage[stage]];
      const std::size_t place = visit.is_forward ? visit.chunk : 2 * chunks - 1 - visit.chunk;
      if (next_of_slot[visit.slot] != place) continue;
      ++next_of_slot[visit.slot];
      ++next_of_stage[stage];
      result.push_back(visit);
      has_moved = true;
    }
  }
  return result;
}

std::int64_t bytes_of_chunk(double bytes, const Pipeline& pipeline, std::size_t chunk) {
  const double equal = 1.0 / static_cast<double>(pipeline.stages * pipeline.virtual_);
  return std::llround(bytes * (pipeline.shares.empty() ? equal : pipeline.shares[chunk]));
}

class Player {
 public:
  Player(const Pipeline& pipeline, Sync sync, std::size_t num_ranks)
      : pipeline_(pipeline), sync_(sync), num_ranks_(num_ranks) {}

  // When the last visit ends, if slots without groups complete a multiple of the group.
  Nanoseconds play(const std::vector<Slot>& slots) {
    const std::size_t num_slots = slots.size() + num_missing(slots.size(), pipeline_);
    while (visits_.size() <= num_slots / pipeline_.group) {
      visits_.push_back(visits_of_all(pipeline_, visits_.size() * pipeline_.group));
    }
    free_at_.assign(pipeline_.stages * num_ranks_, 0);
    input_at_.assign(slots.size() * num_ranks_, 0);  // at the first rank of a group
    Nanoseconds end_of_all = 0;
    for (const Visit& visit : visits_[num_slots / pipeline_.group]) {
      if (visit.slot >= slots.size()) continue;
      const bool turns =
          visit.is_forward && visit.chunk + 1 == pipeline_.stages * pipeline_.virtual_;
      const std::size_t stage = visit.chunk % pipeline_.stages;
      Nanoseconds slowest = 0;
      for (const Group& group : slots[visit.slot]) slowest = std::max(slowest, group.cost);
      for (const Group& group : slots[visit.slot]) {
        const auto rank = static_cast<std::size_t>(group.ranks.first);
        Nanoseconds* const first = &free_at_[stage * num_ranks_ + rank];
        Nanoseconds* const last = first + group.ranks.size;
        Nanoseconds& input_at = input_at_[visit.slot * num_ranks_ + rank];
        const Nanoseconds end = std::max(input_at, *std::max_element(first, last)) +
                                cost_of(sync_ == Sync::step ? group.cost : slowest, visit);
        std::fill(first, last, end);
        input_at = end + (turns ? 0 : pipeline_.transfer_ns);
        end_of_all = std::max(end_of_all, end);
      }
    }
    return end_of_all;
  }

  // Whether each rank holds no more than it may on each stage, from a forward to its backward.
  [[nodiscard]] bool keeps_limit(const std::vector<Slot>& slots) const {
    if (pipeline_.max_activation_bytes == 0) return true;
    const std::size_t num_slots = slots.size() + num_missing(slots.size(), pipeline_);
    for (std::size_t stage = 0; stage < pipeline_.stages; ++stage) {
      std::vector<std::int64_t> held(num_ranks_, 0);
      for (const Visit& visit : visits_of(stage, pipeline_, num_slots)) {
        if (visit.slot >= slots.size()) continue;
        for (const Group& group : slots[visit.slot]) {
          const std::int64_t bytes = bytes_of_chunk(group.bytes, pipeline_, visit.chunk);
          for (std::int64_t i = 0; i < group.ranks.size; ++i) {
            std::int64_t& sum = held[static_cast<std::size_t>(group.ranks.first + i)];
            sum += visit.is_forward ? bytes : -bytes;
            if (sum > pipeline_.max_activation_bytes) return false;
            if (pipeline_.forward_share == 1) sum = 0;  // nothing waits for a backward
          }
        }
      }
    }
    return true;
  }

 private:
  [[nodiscard]] Nanoseconds cost_of(Nanoseconds cost, const Visit& visit) const {
    const Nanoseconds forward = std::llround(pipeline_.forward_share * static_cast<double>(cost));
    return share_of_chunk(visit.is_forward ? forward : cost - forward, pipeline_, visit.chunk);
  }

  const Pipeline& pipeline_;
  Sync sync_;
  std::size_t num_ranks_;
  std::vector<std::vector<Visit>> visits_;  // of so many groups of slots
  std::vector<Nanoseconds> free_at_, input_at_;
};

// Sync microbatch: a slot is as long as its slowest group on every rank. Longer slots never make a
// step shorter, so each set of units takes its shortest slot.
Nanoseconds best_in_lockstep(const GroupTable& table, const Pipeline& pipeline, Nanoseconds limit) {
  const std::vector<Nanoseconds> slot_cost = slot_costs(table);
  Nanoseconds best = limit;
  Player player(pipeline, Sync::microbatch, 1);
  for_each_partition(table.num_units, table.num_units,
                     [&](const std::vector<std::size_t>& slot_of, std::size_t num_slots) {
                       std::vector<UnitSet> sets(num_slots, 0);
                       for (std::size_t i = 0; i < slot_of.size(); ++i)
                         sets[slot_of[i]] |= UnitSet{1} << i;
                       sets.resize(num_slots + num_missing(num_slots, pipeline), 0);
                       std::sort(sets.begin(), sets.end());
                       do {
                         std::vector<Slot> slots;
                         for (const UnitSet set : sets) {
                           if (slot_cost[set] == never) return;
                           slots.push_back({{{0, 1}, slot_cost[set]}});
                         }
                         best = std::min(best, player.play(slots));
                       } while (std::next_permutation(sets.begin(), sets.end()));
                     });
  return best;
}

class PlanSearch {
 public:
  PlanSearch(const GroupTable& table, const Pipeline& pipeline, Sync sync, Nanoseconds limit)
      : table_(table),
        pipeline_(pipeline),
        player_(pipeline, sync, table.num_ranks),
        areas_(least_areas(table)),
        best_(limit) {}

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
    const Nanoseconds so_far = player_.play(slots_);
    if (so_far >= best_ || !player_.keeps_limit(slots_)) return;
    if (rest == 0 && num_missing(slots_.size(), pipeline_) == 0) {
      best_ = so_far;
      return;
    }
    if (num_idle_ + 1 < pipeline_.group) {
      ++num_idle_;
      add_idle_slot(rest);
      --num_idle_;
    }
    if (rest == 0) return;
    slots_.emplace_back();
    fill_from(0, rest, rest);
    slots_.pop_back();
  }

  void add_idle_slot(UnitSet rest) {
    Slot idle;
    for (std::size_t rank = 0; rank < table_.num_ranks; ++rank) {
      if (table_.placeholder_costs[rank] == never) return;
      idle.push_back({{static_cast<std::int64_t>(rank), 1}, table_.placeholder_costs[rank]});
    }
    slots_.push_back(std::move(idle));
    open_slot(rest);
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
        place({table_.ranges[r], table_.cost(group, r), table_.activation_bytes(group, r)},
              rest ^ group, rest_at_open);
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
  Player player_;
  std::vector<Nanoseconds> areas_;
  Nanoseconds best_;
  std::vector<Slot> slots_;
  Nanoseconds area_ = 0;
  std::size_t num_idle_ = 0;  // slots of placeholders alone
};

}  // namespace

std::optional<Nanoseconds> best_pipelined(const GroupTable& table, const Pipeline& pipeline,
                                          Sync sync, Nanoseconds limit) {
  // Where all wait after every slot, of a set of units the shortest slot is the best, unless
  // memory tells. Such a plan is no faster than the same plan without waiting: a start.
  const bool is_limited = pipeline.max_activation_bytes > 0;
  Nanoseconds best = is_limited ? limit : best_in_lockstep(table, pipeline, limit);
  if (sync == Sync::step || is_limited) best = PlanSearch(table, pipeline, sync, best).run();
  return best < limit ? std::optional(best) : std::nullopt;
}

}  // namespace isochron::oracle
