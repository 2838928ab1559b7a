// Where every rank has to run something in every slot, ranks that idle either take a sequence that
// stands elsewhere, which makes their slot as long as it is there, or share what stands beside
// them. That costs traffic, of time that nobody has a use for.

#include "isochron/plan/slots/widen_groups.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "isochron/plan/slots/slot_places.h"

namespace isochron {

namespace {

class WidenedSlot {
 public:
  WidenedSlot(const Problem& problem, const SlotPlaces& places, std::vector<DraftGroup>& groups)
      : problem_(problem), places_(places), groups_(groups) {
    for (const DraftGroup& group : groups) {
      num_idle_ -= static_cast<std::int32_t>(group.ranks.size);
      longest_ = std::max(longest_, group_time(problem, group));
    }
  }

  // Whether some group is wider.
  bool run() {
    if (num_idle_ == 0) return false;
    std::vector<std::int32_t> sizes;
    std::priority_queue<std::pair<Nanoseconds, std::size_t>> slowest;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      sizes.push_back(static_cast<std::int32_t>(groups_[g].ranks.size));
      slowest.emplace(group_time(problem_, groups_[g]), g);
    }
    bool is_wider = false;
    while (num_idle_ > 0 && !slowest.empty()) {
      const std::size_t g = slowest.top().second;
      slowest.pop();
      const auto wider = find_wider(groups_[g], sizes[g]);
      if (!wider) continue;
      num_idle_ -= wider->size - sizes[g];
      sizes[g] = wider->size;
      slowest.emplace(wider->time, g);
      is_wider = true;
    }
    return is_wider && place(sizes);
  }

 private:
  struct Wider {
    std::int32_t size = 1;
    Nanoseconds time = 0;
  };

  // On the next larger size that holds it, if there are ranks for that and it ends in time.
  std::optional<Wider> find_wider(const DraftGroup& group, std::int32_t size) const {
    if (group.items.empty() || problem_.is_alone(group.items.front())) return std::nullopt;
    const auto sizes = problem_.sizes();
    for (auto next = std::upper_bound(sizes.begin(), sizes.end(), size); next != sizes.end();
         ++next) {
      if (*next - size > num_idle_) return std::nullopt;
      if (!holds(*next, group.items)) continue;
      const Nanoseconds time = time_on(*next, group.items);
      return time <= longest_ ? std::optional(Wider{*next, time}) : std::nullopt;
    }
    return std::nullopt;
  }

  bool holds(std::int32_t size, const std::vector<ItemId>& items) const {
    Tokens tokens = 0;
    for (const ItemId item : items) {
      if (!problem_.item_fits(size, item)) return false;
      tokens += problem_.tokens(size, item);
    }
    return tokens <= problem_.capacity() * size;
  }

  // At the cheapest place.
  Nanoseconds time_on(std::int32_t size, const std::vector<ItemId>& items) const {
    const PriceId price = problem_.cheapest_price(size);
    Nanoseconds time = problem_.price(price).fixed;
    for (const ItemId item : items) time += problem_.item_cost(price, item);
    return time;
  }

  // Only if that makes the slot no longer.
  bool place(const std::vector<std::int32_t>& sizes) {
    const std::vector<std::int32_t> firsts = places_.find(sizes);
    if (firsts.empty()) return false;
    std::vector<DraftGroup> placed = groups_;
    for (std::size_t g = 0; g < placed.size(); ++g) {
      placed[g].ranks = {.first = firsts[g], .size = sizes[g]};
      if (group_time(problem_, placed[g]) > longest_) return false;
    }
    groups_ = std::move(placed);
    return true;
  }

  const Problem& problem_;
  const SlotPlaces& places_;
  std::vector<DraftGroup>& groups_;
  std::int32_t num_idle_ = problem_.num_ranks();
  Nanoseconds longest_ = 0;
};

}  // namespace

bool widen_groups(const Problem& problem, DraftSlots& slots) {
  if (problem.has_speeds() || problem.sizes().size() == 1) return false;
  const SlotPlaces places(problem);
  bool is_wider = false;
  for (auto& slot : slots) is_wider = WidenedSlot(problem, places, slot).run() || is_wider;
  return is_wider;
}

}  // namespace isochron
