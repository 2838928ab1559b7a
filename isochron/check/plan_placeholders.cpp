// Whether a slot could be filled is judged by single moves only: one unit out of a micro-batch that
// holds several, onto the ranks of a placeholder. A move that works proves the placeholder wrong;
// that none works proves nothing, and is accepted.

#include "isochron/check/plan_placeholders.h"

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

// Prompt groups that are kept on their ranks, and a batch that is dealt in order, stay where they
// are.
bool is_bound_to_ranks(const PlanView& view) {
  return view.options().keep_groups == KeepGroups::rank || !view.options().balance;
}

// Ranks of the group that could stand in the place of placeholders.
std::int64_t free_size(const PlanView& view) { return view.is_dynamic() ? 1 : view.mode().size; }

// What a placeholder could be the start of: its own rank, or the static group that it is in. None
// if it is not the first of that, or no group may run there.
std::optional<RankRange> find_free_ranks(const PlanView& view, std::int64_t rank) {
  const RankRange ranks = {.first = rank, .size = free_size(view)};
  const bool may_run = ranks.size >= view.options().min_context_size && rank % ranks.size == 0 &&
                       is_runnable(view.plan().cost, ranks);
  if (!may_run) return std::nullopt;
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

// The parts of a micro-batch that can move on their own.
std::vector<Ids> parts_of(const PlanView& view, const ContextGroup& group) {
  // A prompt group that is kept on its ranks may still be spread over slots.
  if (view.options().keep_groups != KeepGroups::rank) return units_of(view, group);
  std::vector<Ids> parts;
  for (const SequenceId id : group.sequences) parts.push_back({id});
  return parts;
}

Movables find_movables(const PlanView& view) {
  Movables movables;
  const std::int64_t size = free_size(view);
  const bool is_bound = is_bound_to_ranks(view);
  const auto& slots = view.plan().microbatches;
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    for (const ContextGroup& group : slots[slot]) {
      if (group.sequences.size() < 2 || (is_bound && group.ranks.size != size)) continue;
      const std::vector<Ids> parts = parts_of(view, group);
      const auto part = std::find_if(parts.begin(), parts.end(),
                                     [&](const Ids& ids) { return view.fits(ids, size); });
      if (parts.size() < 2 || part == parts.end()) continue;
      const Movable movable{.slot = slot, .ranks = group.ranks, .sequence = part->front()};
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
    for (const ContextGroup& group : slots[slot]) {
      if (!is_placeholder(group)) continue;
      const auto ranks = find_free_ranks(view, group.ranks.first);
      const Movable* movable = ranks ? find_for(movables, *ranks) : nullptr;
      if (movable == nullptr) continue;
      return fmt::format("{}: a placeholder, but {} could give sequence {} away",
                         group_text(slot, group.ranks), group_text(movable->slot, movable->ranks),
                         movable->sequence.value());
    }
  }
  return std::nullopt;
}

}  // namespace isochron::check
