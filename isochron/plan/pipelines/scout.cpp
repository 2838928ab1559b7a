// More micro-batches fill and drain a pipeline faster, and each costs its fixed part: m of them for
// the work W take about (W + m fixed)(1 + (stages - 1) / (virtual m)) / stages. Grids have numbers
// of slots around the least of that. Mixed slots let no item take longer than some limit: the
// shorter it is the wider the groups, which costs more and more.

#include "isochron/plan/pipelines/scout.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "isochron/core/order.h"
#include "isochron/plan/least_areas.h"
#include "isochron/plan/pipelines/cell_items.h"
#include "isochron/plan/pipelines/pipeline_bound.h"
#include "isochron/plan/pipelines/pipeline_grid.h"
#include "isochron/plan/pipelines/sample.h"
#include "isochron/plan/plan_slots.h"
#include "isochron/plan/slots/slot_packer.h"
#include "isochron/simulate/chunk_cost.h"
#include "isochron/simulate/order_microbatches.h"
#include "isochron/simulate/pipeline_time.h"

namespace isochron {

namespace {

// Of each slot, that of its slowest group.
std::vector<Nanoseconds> slot_times(const Problem& problem, const DraftSlots& slots) {
  std::vector<Nanoseconds> times;
  for (const auto& slot : slots) {
    Nanoseconds time = 0;
    for (const DraftGroup& group : slot) time = std::max(time, group_time(problem, group));
    times.push_back(time);
  }
  return times;
}

// The item that takes most of all ranks, and what all take on their smallest groups.
class LongestItem {
 public:
  explicit LongestItem(const Problem& problem) : problem_(problem) {
    double most = -1;
    for (ItemId item = 0; item < problem.num_items(); ++item) {
      const std::int32_t size = problem.sizes()[problem.smallest_place(item)];
      const double area =
          static_cast<double>(problem.item_cost(problem.cheapest_price(size), item)) * size;
      area_ += area;
      if (area <= most) continue;
      most = area;
      item_ = item;
    }
  }

  [[nodiscard]] double area_of_all() const { return area_; }

  // Of the item on the smallest group, of at least `base` ranks, that takes no longer than `limit`;
  // else the least.
  [[nodiscard]] Nanoseconds time_within(Nanoseconds limit, std::int32_t base) const {
    Nanoseconds least = max_total_cost;
    for (const std::int32_t size : problem_.sizes()) {
      if (size < base || !problem_.item_fits(size, item_)) continue;
      const PriceId price = problem_.cheapest_price(size);
      least = std::min(least, problem_.item_cost(price, item_) + problem_.price(price).fixed);
      if (least <= limit) break;
    }
    return least == max_total_cost ? 0 : least;
  }

 private:
  const Problem& problem_;
  ItemId item_ = 0;
  double area_ = 0;
};

constexpr double much = 0.02;  // of a step

// None if what little of the question is in it makes the whole take longer than the sample does, or
// than its work by itself would.
std::unique_ptr<Problem> alike_sample_of(const Problem& problem, const RankRoom& room,
                                         Nanoseconds bound) {
  if (!is_even(problem, room, bound)) return nullptr;
  std::unique_ptr<Problem> sample = sample_of(problem);
  if (sample == nullptr) return nullptr;
  const double ratio =
      static_cast<double>(pipeline_bound(*sample, room)) / static_cast<double>(bound);
  return std::abs(ratio - 1) > much ? nullptr : std::move(sample);
}

}  // namespace

bool is_even(const Problem& problem, const RankRoom& room, Nanoseconds bound) {
  const auto mean = static_cast<Nanoseconds>(narrow_area(problem) / problem.total_speed());
  const Nanoseconds even = pipeline_bound_of(problem, room, mean);
  return static_cast<double>(bound) <= static_cast<double>(even) * (1 + 2 * much);
}

Scout::Scout(const Problem& problem, const RankRoom& room, SlotHeights& heights, Tokens capacity,
             Nanoseconds bound, std::int64_t work, bool is_hasty)
    : problem_(problem),
      is_hasty_(is_hasty),
      sample_(is_hasty ? alike_sample_of(problem, room, bound) : nullptr),
      ground_(sample_ ? *sample_ : problem),
      room_(room),
      heights_(heights),
      capacity_(capacity),
      bound_(bound),
      work_(work * ground_.num_items() / problem.num_items()) {}

// Equal slots say little of what exchanges make of them: all get a few.
std::int64_t Scout::rough_work() const {
  return work_ / (problem_.topology().pipeline.virtual_ > 1 ? 8 : is_hasty_ ? 32 : 16);
}

std::optional<RoughCells> Scout::find_cells(double nanoseconds) {
  auto cells = search_cells(ground_, room_, heights_,
                            {.capacity = capacity_, .bound = bound_, .nanoseconds = nanoseconds});
  if (!cells) return std::nullopt;
  const GridShape shape{.num_slots = cells->found.num_slots, .capacity = capacity_};
  return RoughCells{
      .time = improved_grid(ground_, std::move(cells->draft), shape, bound_, rough_work()).time,
      .guess = cells->found};
}

bool Scout::can_try(std::int32_t size) const {
  return ground_.num_ranks() % size == 0 && ground_.cheapest_price(size) >= 0;
}

const Problem& Scout::ground_for(std::int32_t size) const {
  return can_try(size) ? ground_ : problem_;
}

Nanoseconds Scout::least_time(std::int32_t size) const {
  return static_pipeline_bound(ground_for(size), room_, size);
}

Nanoseconds Scout::likely_time(std::int32_t size) const {
  const Nanoseconds least = least_time(size);
  const Problem& ground = ground_for(size);
  if (!is_hasty_ || ground.options().pass == Pass::train) return least;
  const PipelineShape& shape = ground.topology().pipeline;
  const PriceId price = ground.cheapest_price(size);
  std::vector<Nanoseconds> costs;
  for (ItemId item = 0; item < ground.num_items(); ++item) {
    costs.push_back(ground.item_cost(price, item));
  }
  const std::int32_t num_cells = ground.num_ranks() / size;
  const double work = std::accumulate(costs.begin(), costs.end(), 0.0) / num_cells;
  const double depth = static_cast<double>(shape.stages - 1) / shape.virtual_;
  const double fixed = std::max(1.0, static_cast<double>(ground.price(price).fixed));
  const double even = std::sqrt(work * fixed / depth);
  const auto num_long = std::min<std::ptrdiff_t>(num_cells, std::ssize(costs));
  std::nth_element(costs.begin(), costs.begin() + num_long - 1, costs.end(), std::greater<>());
  double wait = 0;
  for (std::ptrdiff_t i = 0; i < num_long; ++i) {
    const auto cost = static_cast<double>(costs[static_cast<std::size_t>(i)]);
    wait += depth * std::max(0.0, cost - even) / num_cells;
  }
  return least + pass_time(ground, static_cast<Nanoseconds>(wait)) / shape.stages;
}

std::vector<Scout::SlotCount> Scout::slot_counts(std::int32_t size) const {
  const Problem& ground = ground_for(size);
  const PipelineShape& shape = problem_.topology().pipeline;
  const std::int32_t num_cells = ground.num_ranks() / size;
  const PriceId price = ground.cheapest_price(size);
  double sum = 0;
  double tokens = 0;
  // What some cell has at least: a bundle of several items is one cell's alone.
  double work = 0;
  std::int32_t kept = 0;
  for (BundleId bundle = 0; bundle < ground.num_bundles(); ++bundle) {
    const auto cost = static_cast<double>(ground.cost(price, bundle));
    const auto num_items = static_cast<std::int32_t>(ground.items_of(bundle).size());
    sum += cost;
    if (num_items == 1) continue;
    work = std::max(work, cost);
    kept = std::max(kept, num_items);
  }
  work = std::max(work, sum / num_cells);
  for (ItemId item = 0; item < ground.num_items(); ++item) {
    tokens += static_cast<double>(std::min(ground.tokens(size, item), ground.capacity() * size));
  }
  const double room = static_cast<double>(capacity_) * ground.num_ranks();
  // More slots than some cell has items would be idle.
  const std::int32_t enough = std::max(kept, (ground.num_items() + num_cells - 1) / num_cells);
  const std::int32_t filled = std::max(kept, ground.num_items() / num_cells);
  const double fewest = std::clamp<double>(std::ceil(tokens / room), 1, enough);
  const double most = std::max<double>(fewest, filled);
  const double depth = static_cast<double>(shape.stages - 1) / shape.virtual_;
  const double fixed =
      std::max(1.0, static_cast<double>(ground.price(price).fixed) + wait_for_transfers(ground));
  const double best = std::clamp(std::sqrt(work * depth / fixed), fewest, most);
  const std::int32_t multiple = shape.group;
  std::set<std::int32_t> counts;
  std::vector<double> tried = {fewest, best / 1.4, best};
  // A forward pass waits for the longest slot, the more of them there are the less is beside it.
  if (!is_hasty_ || ground.options().pass == Pass::train) tried.push_back(best * 1.4);
  if (!is_hasty_) tried.insert(tried.end(), {fewest + 1, fewest + 2, best / 2, most});
  for (const double count : tried) {
    const auto whole = static_cast<std::int32_t>(std::clamp(count, fewest, most));
    counts.insert((whole + multiple - 1) / multiple * multiple);
  }
  // Few items, each in a slot of its own: no slot is twice as long, and some idle.
  constexpr std::int32_t few = 64;
  if (enough > filled && enough <= few) {
    counts.insert((enough + multiple - 1) / multiple * multiple);
  }
  std::vector<SlotCount> likely_first;
  for (const std::int32_t count : counts) {
    Nanoseconds least = 0;
    if (!ground.has_speeds() && shape.shares.empty()) {
      const double slots = count * static_cast<double>(ground.microbatch());
      const double time = (work + slots) * (1 + room_.bubble().share(count));
      least = pass_time(ground, static_cast<Nanoseconds>(time)) / shape.stages;
    }
    likely_first.push_back({.least_time = least, .num_slots = count});
  }
  std::sort(likely_first.begin(), likely_first.end());
  return likely_first;
}

std::vector<GridRecipe> Scout::find_grids(std::int32_t size, Nanoseconds limit, std::size_t most) {
  const Problem& ground = ground_for(size);
  const CellItems cells(ground, equal_cells(ground, size));
  std::vector<GridRecipe> recipes;
  for (const auto& [least, count] : slot_counts(size)) {
    if (least >= (recipes.size() < most ? limit : recipes.back().time)) break;
    const GridShape shape{.num_slots = count, .capacity = capacity_, .is_rough = true};
    if (const auto grid =
            find_grid(ground, cells, shape, heights_.of(count), bound_, rough_work())) {
      recipes.push_back({.time = grid->time, .num_slots = count, .size = size});
      std::sort(recipes.begin(), recipes.end());
      if (recipes.size() > most) recipes.pop_back();
    }
  }
  return recipes;
}

// Of slots in which all wait for the slowest group, short ones at both ends.
Nanoseconds Scout::time_of_slots(const DraftSlots& slots) const {
  const PipelineShape& shape = problem_.topology().pipeline;
  std::vector<Nanoseconds> longest = slot_times(ground_, slots);
  const auto multiple = static_cast<std::size_t>(shape.group);
  longest.resize((slots.size() + multiple - 1) / multiple * multiple, problem_.microbatch());
  std::vector<PassCost> costs;
  for (const std::size_t slot : small_ends(longest)) {
    costs.push_back(split_cost(longest[slot], problem_.model().forward_share));
    if (problem_.options().pass == Pass::forward) costs.back().backward = 0;
  }
  const auto count = static_cast<std::int32_t>(costs.size());
  return PipelineTime(shape, count, problem_.options().pass).makespan(costs);
}

std::vector<MixedRecipe> Scout::find_mixed(const std::set<std::int32_t>& bases,
                                           Nanoseconds limit_of_time) {
  const std::int32_t stages = problem_.topology().pipeline.stages;
  std::vector<MixedRecipe> recipes;
  Nanoseconds best = limit_of_time;
  const LongestItem longest(ground_);
  const SlotPacker packer(ground_);
  for (const std::int32_t base : ground_.sizes()) {
    if (!bases.contains(base)) continue;
    // Packing looks at items on many sizes: of very many a few limits are enough.
    const auto num_tables = static_cast<std::int64_t>(ground_.sizes().size());
    const bool is_paced = problem_.options().sync == Sync::microbatch;
    const std::int64_t max_limits =
        std::clamp<std::int64_t>((std::int64_t{1} << 26) / (num_tables * ground_.num_items()), 1,
                                 !is_hasty_ ? 10
                                 : is_paced ? 5
                                            : 3);
    Nanoseconds limit = bound_;
    for (std::int64_t i = 0; i < max_limits; ++i) {
      // A slot as long as the longest item makes all ranks wait.
      const Nanoseconds near = is_hasty_ ? best : limit_of_time;
      const Nanoseconds least = longest.time_within(limit, base);
      const SlotRange any_number{.least = 1, .most = ground_.num_items()};
      const double room =
          room_.area(time_in_room(problem_, room_, near), static_cast<double>(least), any_number);
      if (near < max_total_cost && room * ground_.num_ranks() < longest.area_of_all()) {
        limit = std::min(limit, least) * 4 / 5;
        continue;
      }
      const Nanoseconds most = best < max_total_cost
                                   ? static_cast<Nanoseconds>(time_in_room(problem_, room_, best))
                                   : best;
      const DraftSlots slots = packer.pack(limit, base, PackCare::rough, most).slots;
      if (slots.empty() || pass_time(problem_, slots_time(ground_, slots)) / stages > best) break;
      const Nanoseconds time = time_of_slots(slots);
      recipes.push_back({.time = time, .limit = limit, .base = base});
      const std::vector<Nanoseconds> times = slot_times(ground_, slots);
      limit = std::min(limit, *std::max_element(times.begin(), times.end())) * 4 / 5;
      best = std::min(best, time);
    }
  }
  std::stable_sort(recipes.begin(), recipes.end(),
                   [](const MixedRecipe& a, const MixedRecipe& b) { return a.time < b.time; });
  return recipes;
}

}  // namespace isochron
