#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/pipelines/cell_search.h"
#include "isochron/plan/pipelines/rank_room.h"
#include "isochron/plan/pipelines/slot_heights.h"
#include "isochron/plan/problem.h"

namespace isochron {

// Cells of several sizes, and what they take about.
struct RoughCells {
  Nanoseconds time = 0;
  CellGuess guess;
};

// A grid of cells of one size, and what it takes about.
struct GridRecipe {
  Nanoseconds time = 0;
  std::int32_t num_slots = 1;
  std::int32_t size = 1;

  auto operator<=>(const GridRecipe&) const = default;
};

// Slots of groups of several sizes, none smaller than `base`, in which no item takes longer than
// `limit` if that can be.
struct MixedRecipe {
  Nanoseconds time = 0;
  Nanoseconds limit = 0;
  std::int32_t base = 1;

  auto operator<=>(const MixedRecipe&) const = default;
};

// Whether no few items, such as a very long one, make the step longer than its work by itself
// would.
[[nodiscard]] bool is_even(const Problem& problem, const RankRoom& room, Nanoseconds bound);

// Tells roughly, and for a fraction of the work, what is worth being made properly: on a sample of
// a large question. Times are comparable with each other, not with those of the whole.
class Scout {
 public:
  // `room` and `heights` are those of the question; micro-batches of several items hold no more
  // than `capacity` tokens a rank; no step is shorter than `bound`. A grid may take about `work`
  // operations. A hasty one looks at the likeliest alone.
  Scout(const Problem& problem, const RankRoom& room, SlotHeights& heights, Tokens capacity,
        Nanoseconds bound, std::int64_t work, bool is_hasty);

  // Otherwise it looks at the question itself.
  [[nodiscard]] bool has_sample() const { return sample_ != nullptr; }

  // Whether what it looks at divides into groups of this size.
  [[nodiscard]] bool can_try(std::int32_t size) const;

  // None if none are found. Ranks are equally fast and every item is a bundle. Ends after about so
  // many nanoseconds with what there is.
  [[nodiscard]] std::optional<RoughCells> find_cells(double nanoseconds);

  // No grid of a size, which every item fits, is faster.
  [[nodiscard]] Nanoseconds least_time(std::int32_t size) const;

  // What grids of a size take about if long items are spread over the cells, in a hasty forward
  // pass, which waits for the longest slot of a cell; else what they take at least.
  [[nodiscard]] Nanoseconds likely_time(std::int32_t size) const;

  // Grids of a size, which every item fits, of different numbers of slots: at most so many, the
  // fastest first. Those that take at least `limit` are left out if that is seen before they are
  // made.
  [[nodiscard]] std::vector<GridRecipe> find_grids(std::int32_t size, Nanoseconds limit,
                                                   std::size_t most);

  // Slots with these smallest sizes, the fastest first; those that take more than `limit` at least
  // are left out.
  [[nodiscard]] std::vector<MixedRecipe> find_mixed(const std::set<std::int32_t>& bases,
                                                    Nanoseconds limit);

 private:
  // The question itself if a sample does not divide into groups of that size.
  [[nodiscard]] const Problem& ground_for(std::int32_t size) const;
  [[nodiscard]] std::int64_t rough_work() const;
  // A number of slots, and what a grid with so many takes at least.
  struct SlotCount {
    Nanoseconds least_time = 0;
    std::int32_t num_slots = 1;

    auto operator<=>(const SlotCount&) const = default;
  };
  [[nodiscard]] std::vector<SlotCount> slot_counts(std::int32_t size) const;
  [[nodiscard]] Nanoseconds time_of_slots(const DraftSlots& slots) const;

  const Problem& problem_;
  bool is_hasty_;
  std::unique_ptr<Problem> sample_;
  const Problem& ground_;  // the sample, or the question
  const RankRoom& room_;
  SlotHeights& heights_;
  Tokens capacity_;
  Nanoseconds bound_;
  std::int64_t work_;
};

}  // namespace isochron
