#include "isochron/check/plan_sizes.h"

#include <bit>

#include "isochron/check/plan_cost.h"

namespace isochron::check {

bool is_power_size(const PlanView& view, std::int64_t size) {
  const bool is_power = std::has_single_bit(static_cast<std::uint64_t>(size));
  return size == view.num_ranks() || (is_power && size <= view.num_ranks() / 2);
}

std::vector<std::int64_t> group_sizes(const PlanView& view) {
  const PlanOptions& options = view.options();
  const std::int64_t num_ranks = view.num_ranks();
  const std::int64_t largest = options.max_context_size == 0 ? num_ranks : options.max_context_size;
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = options.min_context_size; size <= largest; ++size) {
    const bool is_aligned =
        std::has_single_bit(static_cast<std::uint64_t>(size)) || num_ranks % size == 0;
    if (view.mode().kind == ContextMode::Kind::fixed && size != view.mode().size) continue;
    if (view.mode().kind == ContextMode::Kind::aligned && !is_aligned) continue;
    if (view.mode().kind == ContextMode::Kind::powers && !is_power_size(view, size)) continue;
    if (is_runnable(view.plan().cost, {.first = 0, .size = size})) sizes.push_back(size);
  }
  return sizes;
}

bool fits_some_size(const PlanView& view, std::span<const std::int64_t> sizes,
                    std::span<const SequenceId> sequences) {
  return !sizes.empty() &&
         (view.fits(sequences, sizes.front()) || view.fits(sequences, sizes.back()));
}

}  // namespace isochron::check
