// Fewer units at a time, as long as that may help: what can be filled shows without a search, which
// follows once. What was left out then joins micro-batches that have room for it.

#include "isochron/plan/drop.h"

#include <algorithm>
#include <vector>

#include "isochron/plan/plan_memory.h"
#include "isochron/plan/plan_slots.h"
#include "isochron/plan/plan_work.h"

namespace isochron {

namespace {

bool has_oversized(const StepPlan& plan, const ContextGroup& group) {
  return std::any_of(group.sequences.begin(), group.sequences.end(), [&](SequenceId id) {
    return std::binary_search(plan.oversized.begin(), plan.oversized.end(), id);
  });
}

std::vector<SequenceId> sequences_of(const StepPlan& plan, std::size_t unit) {
  std::vector<SequenceId> ids;
  for (std::size_t i = 0; i < plan.batch.lengths.size(); ++i) {
    if (unit_of(plan, i) == unit) ids.emplace_back(static_cast<std::int32_t>(i));
  }
  return ids;
}

// Adds units from `first` on to the first micro-batch that has room for each, until there is none
// for the next one, which it returns.
std::size_t join(std::size_t first, StepPlan& plan) {
  const std::vector<Tokens> lengths = all_lengths(plan);
  const Tokens capacity = within_memory(plan).capacity;
  const auto most = static_cast<std::size_t>(plan.options.max_sequences);
  const auto tokens_of = [&](const std::vector<SequenceId>& ids, std::int64_t size) {
    Tokens tokens = 0;
    for (const SequenceId id : ids) {
      tokens += padded_length(lengths[id.index()], size, plan.options.tensor_parallel);
    }
    return tokens;
  };
  const auto has_joined = [&](const std::vector<SequenceId>& ids) {
    for (Slot& slot : plan.microbatches) {
      for (ContextGroup& group : slot) {
        const std::int64_t size = group.ranks.size;
        const Tokens tokens = tokens_of(group.sequences, size) + tokens_of(ids, size);
        const bool are_few = most == 0 || group.sequences.size() + ids.size() <= most;
        if (!are_few || tokens / size > capacity || has_oversized(plan, group)) continue;
        group.sequences.insert(group.sequences.end(), ids.begin(), ids.end());
        std::sort(group.sequences.begin(), group.sequences.end());
        group.exchange = cheapest_exchange(plan, group);
        return true;
      }
    }
    return false;
  };
  std::size_t next = first;
  while (next < num_units(plan) && has_joined(sequences_of(plan, next))) ++next;
  if (next > first) {
    set_prediction(plan);
    plan.lower_bound_ns = 0;  // that of fewer sequences says nothing
  }
  return next;
}

}  // namespace

Outcome plan_fewer_units(StepPlan& plan, const Outcome& first) {
  const bool are_in_multiples = must_divide(plan.options);
  const auto may_fewer = [&](const Outcome& found) {
    return found.kind == Outcome::Kind::unfilled ||
           (found.kind == Outcome::Kind::too_few && are_in_multiples);
  };
  constexpr std::int64_t some_seconds = 100'000'000;  // in rows that are looked at
  std::int64_t left = are_in_multiples ? some_seconds : max_total_cost;
  std::size_t kept = num_units(plan);
  Outcome found = first;
  bool is_proved = first.is_proved;
  while (may_fewer(found) && found.most_units > 0) {
    left -= std::ssize(plan.batch.lengths) + plan.padding_rows;
    if (left < 0) {
      is_proved = false;
      break;
    }
    kept = found.most_units;
    found = plan_units(plan, kept, Look::deal);
    is_proved = is_proved && found.is_proved;
  }
  if (found.kind != Outcome::Kind::found) {
    return {.kind = found.kind,
            .is_proved = is_proved,
            .reason = is_proved ? first.reason : unfilled_text(plan, false)};
  }
  if (plan_units(plan, kept, Look::search).kind != Outcome::Kind::found) {
    found = plan_units(plan, kept, Look::deal);
  }
  if (!are_in_multiples) kept = join(kept, plan);
  for (std::size_t i = 0; i < plan.batch.lengths.size(); ++i) {
    if (unit_of(plan, i) >= kept) plan.dropped.emplace_back(static_cast<std::int32_t>(i));
  }
  return found;
}

}  // namespace isochron
