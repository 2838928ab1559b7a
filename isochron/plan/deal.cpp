#include "isochron/plan/deal.h"

#include <algorithm>
#include <map>

namespace isochron {

namespace {

std::int32_t smallest_size(const Problem& problem, BundleId bundle) {
  const auto sizes = problem.sizes();
  return *std::find_if(sizes.begin(), sizes.end(),
                       [&](std::int32_t size) { return problem.fits(size, bundle); });
}

// Where groups of a size may stand, side by side.
std::vector<RankRange> places_of(const Problem& problem, std::int32_t size) {
  std::vector<RankRange> places;
  for (std::int32_t first = 0; first + size <= problem.num_ranks(); first += size) {
    const RankRange ranks{.first = first, .size = size};
    if (problem.price_of(ranks) >= 0) places.push_back(ranks);
  }
  return places;
}

}  // namespace

DraftSlots deal_in_order(const Problem& problem) {
  const std::int32_t max_sequences = problem.options().max_sequences;
  struct Open {
    std::size_t group = 0;  // the last micro-batch, in the draft
    Tokens tokens = 0;
    std::int32_t sequences = 0;
    bool is_open = false;
  };
  struct Cells {
    std::vector<RankRange> places;
    std::vector<Open> open;
  };
  std::map<std::int32_t, Cells> cells_of_size;
  Draft draft;
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    const std::int32_t size = smallest_size(problem, bundle);
    Cells& cells = cells_of_size[size];
    if (cells.places.empty()) {
      cells.places = places_of(problem, size);
      cells.open.resize(cells.places.size());
    }
    const std::size_t cell = static_cast<std::size_t>(bundle) % cells.places.size();
    Open& last = cells.open[cell];
    for (const ItemId item : problem.items_of(bundle)) {
      const Tokens tokens = problem.tokens(size, item);
      const std::int32_t sequences = problem.num_sequences(item);
      const bool is_full = last.tokens + tokens > problem.capacity() * size ||
                           (max_sequences > 0 && last.sequences + sequences > max_sequences);
      if (!last.is_open || is_full) {
        last = {.group = draft.groups.size(), .is_open = true};
        draft.groups.push_back({.ranks = cells.places[cell]});
      }
      draft.groups[last.group].items.push_back(item);
      last.tokens += tokens;
      last.sequences += sequences;
    }
  }
  DraftSlots slots = slots_of(problem, draft);
  if (problem.options().counts == Counts::equal) {
    equalize(problem, problem.topology().pipeline.group, slots);
  }
  return slots;
}

}  // namespace isochron
