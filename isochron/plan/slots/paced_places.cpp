// Aligned blocks of ranks change places with all that they hold, the large ones first: the block
// that holds the longest micro-batch becomes the fastest one. Blocks that a group crosses stay.

#include "isochron/plan/slots/paced_places.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>
#include <vector>

namespace isochron {

namespace {

using Slot = std::vector<DraftGroup>;

class PacedPlaces {
 public:
  explicit PacedPlaces(const Problem& problem) : problem_(problem) {}

  void improve(Slot& slot) const {
    std::vector<double> times;  // on ranks of speed 1
    for (const DraftGroup& group : slot) {
      times.push_back(static_cast<double>(group_time(problem_, group)) /
                      problem_.slowness(group.ranks));
    }
    Slot moved = slot;
    const auto num_ranks = static_cast<std::uint32_t>(problem_.num_ranks());
    for (std::int64_t size = std::bit_floor(num_ranks); size > 0; size /= 2) {
      exchange(size, times, moved);
    }
    const bool is_allowed = std::all_of(moved.begin(), moved.end(), [&](const DraftGroup& group) {
      const auto size = static_cast<std::int32_t>(group.ranks.size);
      return group.ranks.first % problem_.first_step(size) == 0 &&
             problem_.price_of(group.ranks) >= 0;
    });
    if (is_allowed && time_of(moved) < time_of(slot)) slot = std::move(moved);
  }

 private:
  struct Block {
    std::int64_t first = 0;  // rank
    double slowness = 1;
    double longest = 0;  // of its groups
    bool is_crossed = false;
  };

  Nanoseconds time_of(const Slot& slot) const {
    Nanoseconds time = 0;
    for (const DraftGroup& group : slot) time = std::max(time, group_time(problem_, group));
    return time;
  }

  // Of all blocks of so many ranks. `times` are those of the groups.
  void exchange(std::int64_t size, const std::vector<double>& times, Slot& slot) const {
    std::vector<Block> blocks;
    for (std::int64_t first = 0; first + size <= problem_.num_ranks(); first += size) {
      const auto size_here = static_cast<std::int32_t>(size);
      blocks.push_back(
          {.first = first, .slowness = problem_.slowness({.first = first, .size = size_here})});
    }
    const auto place_of = [&](std::int64_t rank) { return static_cast<std::size_t>(rank / size); };
    for (std::size_t k = 0; k < slot.size(); ++k) {
      const RankRange& ranks = slot[k].ranks;
      const std::size_t begin = place_of(ranks.first);
      const std::size_t last = place_of(ranks.first + ranks.size - 1);
      for (std::size_t i = begin; i <= std::min(last, blocks.size() - 1); ++i) {
        blocks[i].is_crossed = blocks[i].is_crossed || begin < last;
        blocks[i].longest = std::max(blocks[i].longest, times[k]);
      }
    }
    std::erase_if(blocks, [](const Block& block) { return block.is_crossed; });
    std::vector<std::size_t> longest_first(blocks.size());
    std::iota(longest_first.begin(), longest_first.end(), std::size_t{0});
    std::vector<std::size_t> fastest_first = longest_first;
    std::stable_sort(fastest_first.begin(), fastest_first.end(), [&](std::size_t a, std::size_t b) {
      return blocks[a].slowness < blocks[b].slowness;
    });
    std::stable_sort(longest_first.begin(), longest_first.end(), [&](std::size_t a, std::size_t b) {
      return blocks[a].longest > blocks[b].longest;
    });
    const auto num_blocks = static_cast<std::size_t>(problem_.num_ranks() / size);
    std::vector<std::int64_t> moved_by(num_blocks + 1, 0);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const std::int64_t from = blocks[longest_first[i]].first;
      moved_by[place_of(from)] = blocks[fastest_first[i]].first - from;
    }
    for (DraftGroup& group : slot) group.ranks.first += moved_by[place_of(group.ranks.first)];
  }

  const Problem& problem_;
};

}  // namespace

DraftSlots with_paced_places(const Problem& problem, DraftSlots slots) {
  if (!problem.has_speeds()) return slots;
  const PacedPlaces places(problem);
  for (Slot& slot : slots) places.improve(slot);
  return slots;
}

}  // namespace isochron
