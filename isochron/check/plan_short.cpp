// Whether a slot could be filled is judged by single moves only: one unit out of a micro-batch that
// holds several, onto the ranks of a placeholder. A move that works proves the placeholder wrong;
// that none works proves nothing, and is accepted.

#include "isochron/check/plan_short.h"

#include <algorithm>
#include <map>

#include "isochron/check/plan_cost.h"

namespace isochron::check {

namespace {

using Ids = std::vector<SequenceId>;

// The sequences of a group by unit, in the order of their first one.
std::vector<Ids> units_of(const PlanView& view, const ContextGroup& group) {
  std::map<std::int64_t, Ids> units;
  for (const SequenceId id : group.sequences) units[view.unit_of(id)].push_back(id);
  std::vector<Ids> lists;
  for (auto& [unit, ids] : units) lists.push_back(std::move(ids));
  return lists;
}

bool fits(const PlanView& view, const Ids& ids, std::int64_t ranks) {
  Tokens sum = 0;
  for (const SequenceId id : ids) sum += view.tokens_per_rank(view.length_of(id), ranks);
  return sum <= view.plan().topology.capacity;
}

// Where several of a kind are kept on a rank, or a batch is dealt in order, nothing changes ranks.
bool is_bound_to_ranks(const PlanView& view) {
  return view.options().keep_groups == KeepGroups::rank || !view.options().balance;
}

// What a placeholder could be the start of: its own rank, or the static group that it is in. None
// if other members of that have work, or no group may run there.
std::optional<RankRange> find_free_ranks(const PlanView& view, const Slot& slot, std::size_t at) {
  const std::int64_t rank = slot[at].ranks.first;
  const std::int64_t size = view.is_dynamic() ? 1 : view.mode().size;
  if (size < view.options().min_context_size || rank % size != 0) return std::nullopt;
  const RankRange ranks = {.first = rank, .size = size};
  for (std::int64_t i = 0; i < size; ++i) {
    const ContextGroup& group = slot[at + static_cast<std::size_t>(i)];
    if (!group.sequences.empty()) return std::nullopt;
  }
  if (!is_runnable(view.plan().cost, ranks)) return std::nullopt;
  return ranks;
}

// A unit that could leave its micro-batch for `size` free ranks.
struct Movable {
  std::size_t slot = 0;
  RankRange ranks;
  SequenceId sequence;  // its first
};

// What could move: to any free ranks, or only to the ranks where it is.
struct Movables {
  std::optional<Movable> anywhere;
  std::map<std::int64_t, Movable> by_rank;  // by the first rank
};

Movables find_movables(const PlanView& view) {
  Movables movables;
  const std::int64_t size = view.is_dynamic() ? 1 : view.mode().size;
  const bool is_bound = is_bound_to_ranks(view);
  const auto& slots = view.plan().microbatches;
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    for (const ContextGroup& group : slots[slot]) {
      if (is_bound && group.ranks.size != size) continue;
      // Bound to its ranks even a single sequence of a prompt group may change the slot.
      const bool is_single = is_bound && view.options().keep_groups != KeepGroups::microbatch;
      std::vector<Ids> units;
      if (is_single) {
        for (const SequenceId id : group.sequences) units.push_back({id});
      } else {
        units = units_of(view, group);
      }
      if (units.size() < 2) continue;
      const auto unit = std::find_if(units.begin(), units.end(),
                                     [&](const Ids& ids) { return fits(view, ids, size); });
      if (unit == units.end()) continue;
      const Movable movable{.slot = slot, .ranks = group.ranks, .sequence = unit->front()};
      if (is_bound) {
        movables.by_rank.try_emplace(group.ranks.first, movable);
      } else if (!movables.anywhere) {
        movables.anywhere = movable;
      }
    }
  }
  return movables;
}

const Movable* find_for(const Movables& movables, RankRange ranks) {
  if (movables.anywhere) return &*movables.anywhere;
  const auto found = movables.by_rank.find(ranks.first);
  return found == movables.by_rank.end() ? nullptr : &found->second;
}

bool is_placeholder(const ContextGroup& group) { return group.sequences.empty(); }

Violation find_allowed_violation(const PlanView& view) {
  const auto& slots = view.plan().microbatches;
  std::int64_t num_idle_slots = 0;
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    const auto found = std::find_if(slots[slot].begin(), slots[slot].end(), is_placeholder);
    if (found == slots[slot].end()) continue;
    if (view.options().counts != Counts::equal) {
      return fmt::format("{}: a placeholder, but options.counts is free",
                         group_text(slot, found->ranks));
    }
    if (view.options().short_ != Short::empty) {
      return fmt::format("{}: a placeholder, but options.short is {}",
                         group_text(slot, found->ranks), name_of(view.options().short_));
    }
    if (std::all_of(slots[slot].begin(), slots[slot].end(), is_placeholder)) ++num_idle_slots;
  }
  const std::int32_t group = view.plan().topology.pipeline.group;
  return broken_unless(num_idle_slots < group,
                       "{} slots hold placeholders alone, must be fewer than pipeline.group {}",
                       num_idle_slots, group);
}

}  // namespace

Violation find_dropped_violation(const PlanView& view) {
  const StepPlan& plan = view.plan();
  if (plan.dropped.empty()) return std::nullopt;
  if (view.options().short_ != Short::drop) {
    return fmt::format("dropped has {} sequences, but options.short is {}", plan.dropped.size(),
                       name_of(view.options().short_));
  }
  if (view.options().counts != Counts::equal) {
    return fmt::format("dropped has {} sequences, but options.counts is free", plan.dropped.size());
  }
  // Padding rows follow the input and are a suffix of their own.
  std::int64_t first = view.num_sequences();          // unit of the input
  std::int64_t first_padding = view.num_sequences();  // id
  std::int64_t num_real = 0;
  for (const SequenceId id : plan.dropped) {
    if (id.value() >= view.num_real()) {
      first_padding = std::min<std::int64_t>(first_padding, id.value());
    } else {
      first = std::min(first, view.unit_of(id));
      ++num_real;
    }
  }
  if (num_real == view.num_real()) return "dropped names every sequence";
  for (std::size_t slot = 0; slot < plan.microbatches.size(); ++slot) {
    for (const ContextGroup& group : plan.microbatches[slot]) {
      for (const SequenceId id : group.sequences) {
        const bool is_real = id.value() < view.num_real();
        if (is_real ? view.unit_of(id) < first : id.value() < first_padding) continue;
        return fmt::format("dropped is not a suffix: sequence {} behind it runs in {}", id.value(),
                           group_text(slot, group.ranks));
      }
    }
  }

  // A longer plan that is plain to see: the first unit of the suffix, where there is room for it.
  const bool is_plain = num_real > 0 && plan.padding_rows == 0 && view.options().balance &&
                        view.options().max_activation_bytes == 0;
  if (!is_plain) return std::nullopt;
  ContextGroup joined;
  for (const SequenceId id : plan.dropped) {
    if (view.unit_of(id) == first) joined.sequences.push_back(id);
  }
  const auto most = static_cast<std::size_t>(view.options().max_sequences);
  for (std::size_t slot = 0; slot < plan.microbatches.size(); ++slot) {
    for (const ContextGroup& group : plan.microbatches[slot]) {
      joined.ranks = group.ranks;
      const bool has_room =
          !view.is_oversized(group) &&
          (most == 0 || group.sequences.size() + joined.sequences.size() <= most) &&
          view.tokens_per_rank(group) + view.tokens_per_rank(joined) <= plan.topology.capacity;
      if (!has_room) continue;
      return fmt::format("{} is dropped, but {} has room for it", view.unit_text(first),
                         group_text(slot, group.ranks));
    }
  }
  return std::nullopt;
}

Violation find_placeholder_violation(const PlanView& view) {
  if (auto found = find_allowed_violation(view)) return found;
  if (view.options().max_activation_bytes > 0) return std::nullopt;  // a move might need memory
  const auto& slots = view.plan().microbatches;
  const bool has_any = std::any_of(slots.begin(), slots.end(), [](const Slot& slot) {
    return std::any_of(slot.begin(), slot.end(), is_placeholder);
  });
  if (!has_any) return std::nullopt;
  const Movables movables = find_movables(view);
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    for (std::size_t i = 0; i < slots[slot].size(); ++i) {
      if (!is_placeholder(slots[slot][i])) continue;
      const auto ranks = find_free_ranks(view, slots[slot], i);
      const Movable* movable = ranks ? find_for(movables, *ranks) : nullptr;
      if (movable == nullptr) continue;
      return fmt::format("{}: a placeholder, but {} could give sequence {} away",
                         group_text(slot, slots[slot][i].ranks),
                         group_text(movable->slot, movable->ranks), movable->sequence.value());
    }
  }
  return std::nullopt;
}

}  // namespace isochron::check
