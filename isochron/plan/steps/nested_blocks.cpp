// Groups that nest run widest first, whenever they are placed: no rank waits, a rank is done after
// the sum of its groups. So a group goes to the block that is done first, and joins a micro-batch
// there if it can; the next size is tried if it would end late.

#include "isochron/plan/steps/nested_blocks.h"

#include <algorithm>
#include <limits>

namespace isochron {

bool has_nested_groups(const Problem& problem) {
  if (!problem.is_aligned() || problem.has_speeds()) return false;
  const auto sizes = problem.sizes();
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    if (sizes[i] % sizes[i - 1] != 0) return false;
  }
  for (const std::int32_t size : sizes) {
    for (std::int32_t first = 0; first + size <= problem.num_ranks(); first += size) {
      const PriceId price = problem.price_of({.first = first, .size = size});
      if (price != problem.cheapest_price(size)) return false;
    }
  }
  return true;
}

void NestedBlocks::reset() {
  const auto sizes = problem_.sizes();
  blocks_.resize(sizes.size());
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    blocks_[i].assign(static_cast<std::size_t>(problem_.num_ranks() / sizes[i]), {});
  }
}

void NestedBlocks::place(BundleId bundle, std::int32_t size, Nanoseconds target, Reach reach,
                         std::int64_t& work) {
  const auto sizes = problem_.sizes();
  const auto begin =
      static_cast<std::size_t>(std::lower_bound(sizes.begin(), sizes.end(), size) - sizes.begin());
  struct Best {
    std::size_t place = 0;
    std::size_t block = 0;
    bool joins = false;
    Nanoseconds end = std::numeric_limits<Nanoseconds>::max();
  } best;
  for (std::size_t place = begin;
       place < (reach == Reach::far ? sizes.size() : std::min(sizes.size(), begin + 2)); ++place) {
    const bool is_far = place > begin + 1;  // worth its traffic only if that keeps the target
    if (!problem_.fits(sizes[place], bundle)) continue;
    const PriceId price = problem_.cheapest_price(sizes[place]);
    const Nanoseconds cost = problem_.cost(price, bundle);
    const Nanoseconds fixed = problem_.price(price).fixed;
    const std::vector<Block>& blocks = blocks_[place];
    work -= static_cast<std::int64_t>(blocks.size() / 8 + 1);
    for (std::size_t k = 0; k < blocks.size(); ++k) {
      const Nanoseconds soonest = blocks[k].top + cost;
      if (soonest >= best.end) continue;
      const std::int32_t open = blocks[k].open;
      const bool joins =
          open >= 0 && can_join(problem_, wide_.groups[static_cast<std::size_t>(open)], bundle);
      const Nanoseconds end = joins ? soonest : soonest + fixed;
      if (is_far && end > target) continue;
      if (end < best.end) best = {.place = place, .block = k, .joins = joins, .end = end};
    }
    if (best.end <= target) break;
  }
  put(bundle, best.place, best.block, best.joins);
}

void NestedBlocks::put(BundleId bundle, std::size_t place, std::size_t block, bool joins) {
  const std::int32_t size = problem_.sizes()[place];
  const PriceId price = problem_.cheapest_price(size);
  Nanoseconds time = problem_.cost(price, bundle);
  const RankRange ranks{.first = static_cast<std::int64_t>(block) * size, .size = size};
  std::int32_t& open = blocks_[place][block].open;
  if (joins) {
    add_item(problem_, problem_.items_of(bundle)[0], wide_.groups[static_cast<std::size_t>(open)]);
  } else {
    time += open_groups(problem_, bundle, ranks, wide_.groups) * problem_.price(price).fixed;
    open = static_cast<std::int32_t>(wide_.groups.size()) - 1;
  }
  const auto first = static_cast<std::size_t>(ranks.first);
  const auto last = first + static_cast<std::size_t>(size);
  for (std::size_t r = first; r < last; ++r) {
    wide_.height[r] += time;
    wide_.top = std::max(wide_.top, wide_.height[r]);
  }
  for (std::size_t p = 0; p < blocks_.size(); ++p) {
    const auto width = static_cast<std::size_t>(problem_.sizes()[p]);
    if (p <= place) {
      for (std::size_t k = first / width; k < last / width; ++k) blocks_[p][k].top += time;
    } else if (first / width < blocks_[p].size()) {
      Block& above = blocks_[p][first / width];
      above.top = std::max(above.top, blocks_[place][block].top);
    }
  }
}

std::vector<std::int32_t> NestedBlocks::last_groups() const {
  std::vector<std::int32_t> last(wide_.height.size(), -1);
  for (std::size_t g = 0; g < wide_.groups.size(); ++g) {
    const RankRange ranks = wide_.groups[g].ranks;
    for (std::int64_t r = ranks.first; r < ranks.first + ranks.size; ++r) {
      std::int32_t& group = last[static_cast<std::size_t>(r)];
      const bool is_later =
          group < 0 || ranks.size <= wide_.groups[static_cast<std::size_t>(group)].ranks.size;
      if (is_later) group = static_cast<std::int32_t>(g);
    }
  }
  return last;
}

}  // namespace isochron
