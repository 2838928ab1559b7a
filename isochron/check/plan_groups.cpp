#include "isochron/check/plan_groups.h"

#include <algorithm>
#include <bit>

#include "isochron/check/plan_cost.h"
#include "isochron/check/plan_sizes.h"
#include "isochron/check/result_input.h"

namespace isochron::check {

namespace {

// The first violation that `rule(slot, group)` finds.
template <class Rule>
Violation find_in_groups(const PlanView& view, Rule rule) {
  for (std::size_t slot = 0; slot < view.plan().microbatches.size(); ++slot) {
    for (const ContextGroup& group : view.plan().microbatches[slot]) {
      if (Violation found = rule(slot, group)) return found;
    }
  }
  return std::nullopt;
}

Violation find_fixed_size_violation(const PlanView& view, std::size_t slot, RankRange ranks) {
  const std::int32_t size = view.mode().size;
  if (ranks.size == size && ranks.first % size == 0) return std::nullopt;
  return fmt::format("{}: groups of context {} have {} ranks, from a multiple of {} on",
                     group_text(slot, ranks), view.options().context, size, size);
}

Violation find_dynamic_size_violation(const PlanView& view, std::size_t slot,
                                      const ContextGroup& group) {
  const PlanOptions& options = view.options();
  const RankRange ranks = group.ranks;
  if (view.mode().kind == ContextMode::Kind::aligned) {
    const bool is_size = std::has_single_bit(static_cast<std::uint64_t>(ranks.size)) ||
                         view.num_ranks() % ranks.size == 0;
    if (!is_size) {
      return fmt::format("{}: {} ranks, must be a power of two or divide {}",
                         group_text(slot, ranks), ranks.size, view.num_ranks());
    }
  }
  if (view.mode().kind == ContextMode::Kind::powers && !is_power_size(view, ranks.size)) {
    return fmt::format("{}: {} ranks, must be a power of two up to half of the {} ranks, or all",
                       group_text(slot, ranks), ranks.size, view.num_ranks());
  }
  if (view.mode().kind != ContextMode::Kind::any && ranks.first % ranks.size != 0) {
    return fmt::format("{}: must begin at a multiple of its {} ranks", group_text(slot, ranks),
                       ranks.size);
  }
  if (ranks.size < options.min_context_size) {
    return fmt::format("{}: {} ranks, options.min_context_size is {}", group_text(slot, ranks),
                       ranks.size, options.min_context_size);
  }
  const bool is_narrow = options.max_context_size == 0 || ranks.size <= options.max_context_size;
  if (is_narrow || view.is_oversized(group)) return std::nullopt;  // those take all ranks
  return fmt::format("{}: {} ranks, options.max_context_size is {}", group_text(slot, ranks),
                     ranks.size, options.max_context_size);
}

// The list itself: allowed, ascending, of sequences that run.
Violation find_oversized_list_violation(const PlanView& view) {
  const std::vector<SequenceId>& oversized = view.plan().oversized;
  if (oversized.empty()) return std::nullopt;
  if (view.options().oversize != Oversize::alone) {
    return fmt::format("oversized has {} sequences, but options.oversize is {}", oversized.size(),
                       name_of(view.options().oversize.value()));
  }
  for (std::size_t i = 0; i < oversized.size(); ++i) {
    if (i > 0 && oversized[i] <= oversized[i - 1]) return "oversized is not ascending";
    const std::vector<SequenceId>& dropped = view.plan().dropped;
    if (std::binary_search(dropped.begin(), dropped.end(), oversized[i])) {
      return fmt::format("oversized[{}] is {}, which is dropped", i, oversized[i].value());
    }
  }
  return std::nullopt;
}

// A group that holds something that is listed as oversized.
Violation find_alone_violation(const PlanView& view, std::span<const std::int64_t> sizes,
                               std::size_t slot, const ContextGroup& group) {
  const SequenceId listed = *std::find_if(group.sequences.begin(), group.sequences.end(),
                                          [&](SequenceId id) { return view.is_oversized(id); });
  const bool is_whole_group = view.options().keep_groups == KeepGroups::microbatch;
  for (const SequenceId id : group.sequences) {
    if (id == listed) continue;
    if (!is_whole_group || view.unit_of(id) != view.unit_of(listed)) {
      return fmt::format("{}: oversized sequence {} stands with sequence {}, must stand alone",
                         group_text(slot, group.ranks), listed.value(), id.value());
    }
    if (!view.is_oversized(id)) {
      return fmt::format("oversized has sequence {}, but not sequence {} of the same group",
                         listed.value(), id.value());
    }
  }
  if (view.is_dynamic() && group.ranks.size != view.num_ranks()) {
    return fmt::format("{}: oversized sequence {} must run on all {} ranks",
                       group_text(slot, group.ranks), listed.value(), view.num_ranks());
  }
  return broken_unless(!fits_some_size(view, sizes, group.sequences),
                       "oversized has sequence {}, which fits the capacity of {}", listed.value(),
                       view.plan().topology.capacity);
}

}  // namespace

Violation find_size_violation(const PlanView& view) {
  return find_in_groups(view, [&](std::size_t slot, const ContextGroup& group) -> Violation {
    if (group.sequences.empty()) {
      return broken_unless(group.ranks.size == 1, "{}: a placeholder has one rank",
                           group_text(slot, group.ranks));
    }
    return view.is_dynamic() ? find_dynamic_size_violation(view, slot, group)
                             : find_fixed_size_violation(view, slot, group.ranks);
  });
}

Violation find_exchange_violation(const PlanView& view) {
  const std::vector<ContextCost>& exchanges = view.plan().cost.context;
  return find_in_groups(view, [&](std::size_t slot, const ContextGroup& group) -> Violation {
    const bool has_choice = exchanges.size() > 1 && group.ranks.size > 1;
    if (group.exchange.has_value() != has_choice) {
      return fmt::format("{}: exchange must {}be given, {} on offer for {} ranks",
                         group_text(slot, group.ranks), has_choice ? "" : "not ",
                         group.ranks.size == 1 ? 0 : exchanges.size(), group.ranks.size);
    }
    const auto least = find_least_cost(view, group);
    if (!least) {
      return fmt::format("{}: the cost model has no exchange and link for this group",
                         group_text(slot, group.ranks));
    }
    if (!has_choice) return std::nullopt;
    const auto cost = find_least_cost(view, group, group.exchange);
    if (!cost) {
      return fmt::format("{}: exchange {} has no link for this group",
                         group_text(slot, group.ranks), name_of(*group.exchange));
    }
    return broken_unless(*cost == *least, "{}: exchange {} costs {}, the cheapest costs {}",
                         group_text(slot, group.ranks), name_of(*group.exchange), *cost, *least);
  });
}

Violation find_capacity_violation(const PlanView& view) {
  if (auto found = find_oversized_list_violation(view)) return found;
  const std::vector<std::int64_t> sizes = group_sizes(view);
  const Tokens capacity = view.plan().topology.capacity;
  return find_in_groups(view, [&](std::size_t slot, const ContextGroup& group) -> Violation {
    const bool has_listed = std::any_of(group.sequences.begin(), group.sequences.end(),
                                        [&](SequenceId id) { return view.is_oversized(id); });
    if (has_listed) return find_alone_violation(view, sizes, slot, group);
    const Tokens tokens = view.tokens_per_rank(group.sequences, group.ranks.size);
    return broken_unless(tokens <= capacity,
                         "{}: {} padded tokens on each rank, the capacity is {}",
                         group_text(slot, group.ranks), tokens, capacity);
  });
}

Violation find_max_sequences_violation(const PlanView& view) {
  const auto most = static_cast<std::size_t>(view.options().max_sequences);
  if (most == 0) return std::nullopt;
  return find_in_groups(view, [&](std::size_t slot, const ContextGroup& group) {
    return broken_unless(group.sequences.size() <= most,
                         "{}: {} sequences, options.max_sequences is {}",
                         group_text(slot, group.ranks), group.sequences.size(), most);
  });
}

Violation find_kept_group_violation(const PlanView& view) {
  const KeepGroups keep = view.options().keep_groups;
  if (keep == KeepGroups::none) return std::nullopt;
  struct Home {
    std::size_t slot = 0;
    const ContextGroup* group = nullptr;
  };
  std::vector<Home> home_of(view.plan().batch.group_names.size());
  return find_in_groups(view, [&](std::size_t slot, const ContextGroup& group) -> Violation {
    for (const SequenceId id : group.sequences) {
      if (id.value() >= view.num_real()) continue;  // a padding row has no prompt
      Home& home = home_of[static_cast<std::size_t>(view.unit_of(id))];
      if (home.group == nullptr) home = {.slot = slot, .group = &group};
      const bool is_home =
          keep == KeepGroups::rank ? home.group->ranks == group.ranks : home.group == &group;
      if (is_home) continue;
      return fmt::format("{} runs in {} and in {}, must be on the same {}",
                         view.unit_text(view.unit_of(id)), group_text(home.slot, home.group->ranks),
                         group_text(slot, group.ranks),
                         keep == KeepGroups::rank ? "ranks" : "ranks in one slot");
    }
    return std::nullopt;
  });
}

}  // namespace isochron::check
