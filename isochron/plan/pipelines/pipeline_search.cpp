// How many micro-batches, what is in them, in which order.
//
// More micro-batches fill and drain a pipeline faster, and each costs its fixed part: m of them for
// the work W take about (W + m fixed)(1 + (stages - 1) / (virtual m)) / stages. Numbers around the
// least of that are tried on grids of every static size, roughly; the best of a size are made
// properly. Where sizes are dynamic, cells of several sizes come first, and slots that hold a few
// wide groups beside many narrow ones last. What the simulator likes best is the answer.

#include "isochron/plan/pipelines/pipeline_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "isochron/core/order.h"
#include "isochron/plan/baselines.h"
#include "isochron/plan/bundles/kept_slots.h"
#include "isochron/plan/deal.h"
#include "isochron/plan/pipelines/cell_search.h"
#include "isochron/plan/pipelines/kept_cells.h"
#include "isochron/plan/pipelines/pipeline_bound.h"
#include "isochron/plan/pipelines/pipeline_bubble.h"
#include "isochron/plan/pipelines/pipeline_grid.h"
#include "isochron/plan/pipelines/reorder.h"
#include "isochron/plan/pipelines/slot_heights.h"
#include "isochron/plan/plan_slots.h"
#include "isochron/plan/slots/slot_search.h"
#include "isochron/simulate/chunk_cost.h"
#include "isochron/simulate/order_microbatches.h"
#include "isochron/simulate/pipeline_time.h"
#include "isochron/simulate/step_player.h"

namespace isochron {

namespace {

class PipelineSearch {
 public:
  PipelineSearch(const Problem& problem, const StepPlan& plan, Nanoseconds bound, std::int64_t work)
      : problem_(problem),
        shape_(plan.topology.pipeline),
        bound_(bound),
        work_(work),
        trial_(plan),
        multiple_(shape_.virtual_ > 1 ? shape_.group : 1),
        is_fixed_(context_mode(problem.options().context).kind == ContextMode::Kind::fixed),
        capacity_(problem.capacity()),
        bubble_(shape_, problem.options().pass, problem.model().forward_share, 256),
        best_size_(problem.sizes().front()) {}

  DraftSlots run() {
    consider_dealt();
    consider_all();
    if (best_excess_ > 0) {
      capacity_ = capacity_within_memory();
      consider_all();
    }
    return best_;
  }

 private:
  // Full micro-batches in all slots in flight keep the limit on activations: a stage holds as many
  // parts of them as there are visits between a forward and its backward.
  Tokens capacity_within_memory() const {
    const std::int64_t limit = problem_.options().max_activation_bytes;
    const double bytes = trial_.cost.activation_bytes_per_token;
    if (limit == 0 || bytes <= 0) return problem_.capacity();
    double visits = static_cast<double>(num_warmup_visits(shape_, 0) + 1);
    if (problem_.options().pass == Pass::forward) visits = 1;
    double share = 1.0 / shape_.num_chunks();
    for (const double given : shape_.shares) share = std::max(share, given);
    const double tokens = static_cast<double>(limit) / (bytes * visits * share);
    return static_cast<Tokens>(std::clamp(tokens, 1.0, static_cast<double>(problem_.capacity())));
  }

  void consider_all() {
    std::vector<std::pair<Nanoseconds, std::int32_t>> static_sizes;  // by what they take at least
    for (const std::int32_t size : problem_.sizes()) {
      if (is_static_size(size))
        static_sizes.emplace_back(static_pipeline_bound(problem_, size), size);
    }
    std::sort(static_sizes.begin(), static_sizes.end());
    if (!is_fixed_ && !problem_.has_speeds() && problem_.num_bundles() == problem_.num_items()) {
      consider_cells();
    }
    consider_grids(static_sizes);
    if (!is_fixed_) consider_mixed();
    if (best_.empty()) {  // no grid holds everything
      consider(equalized(search_kept_slots(problem_, 0, work_)), true);
    }
  }

  bool has_price_everywhere(std::int32_t size) const {
    for (std::int32_t first = 0; first + size <= problem_.num_ranks(); first += size) {
      if (problem_.price_of({.first = first, .size = size}) < 0) return false;
    }
    return true;
  }

  bool is_static_size(std::int32_t size) const {
    if (problem_.num_ranks() % size != 0 || !has_price_everywhere(size)) return false;
    for (ItemId item = 0; item < problem_.num_items(); ++item) {
      if (!problem_.item_fits(size, item)) return false;
    }
    return true;
  }

  // Numbers of slots worth a try on cells of a size, multiples of the group.
  std::vector<std::int32_t> counts_of(std::int32_t size) const {
    const std::int32_t num_cells = problem_.num_ranks() / size;
    const Price& price = problem_.price(problem_.cheapest_price(size));
    double work = 0;
    double tokens = 0;
    for (BundleId bundle = 0; bundle < problem_.num_bundles(); ++bundle) {
      work += static_cast<double>(problem_.cost(problem_.cheapest_price(size), bundle));
    }
    for (ItemId item = 0; item < problem_.num_items(); ++item) {
      tokens +=
          static_cast<double>(std::min(problem_.tokens(size, item), problem_.capacity() * size));
    }
    const double room = static_cast<double>(capacity_) * problem_.num_ranks();
    // More slots than some cell has items would be idle.
    const std::int32_t enough = (problem_.num_items() + num_cells - 1) / num_cells;
    const std::int32_t filled = problem_.num_items() / num_cells;
    const double fewest = std::clamp<double>(std::ceil(tokens / room), 1, enough);
    const double most = std::max<double>(fewest, filled);
    const double depth = static_cast<double>(shape_.stages - 1) / shape_.virtual_;
    const double fixed = std::max(1.0, static_cast<double>(price.fixed));
    const double best = std::clamp(std::sqrt(work / num_cells * depth / fixed), fewest, most);
    std::set<std::int32_t> counts;
    for (const double count :
         {fewest, fewest + 1, fewest + 2, best / 2, best / 1.4, best, best * 1.4, most}) {
      const auto whole = static_cast<std::int32_t>(std::clamp(count, fewest, most));
      counts.insert((whole + multiple_ - 1) / multiple_ * multiple_);
    }
    // Some cell has at least the mean.
    std::erase_if(counts, [&](std::int32_t count) {
      if (problem_.has_speeds() || !shape_.shares.empty()) return false;
      const double slots = count * static_cast<double>(problem_.microbatch());
      const double least = (work / num_cells + slots) * (1 + bubble_.share(count));
      return is_beaten(pass_time(static_cast<Nanoseconds>(least)) / shape_.stages);
    });
    return {counts.begin(), counts.end()};
  }

  void consider_cells() {
    const auto found = search_cells(problem_, capacity_, bound_);
    if (!found) return;
    Grid grid = improved_grid(problem_, found->draft,
                              {.num_slots = found->num_slots, .capacity = capacity_}, bound_,
                              num_operations());
    consider(equalized(std::move(grid.slots)), false);
  }

  struct RoughGrid {
    Nanoseconds time;
    std::int32_t count;
    std::int32_t size;
    auto operator<=>(const RoughGrid&) const = default;
  };

  // Equal slots say little of what exchanges make of them: all numbers get a few.
  std::vector<RoughGrid> rough_grids(const CellItems& cells, std::int32_t size) {
    std::vector<RoughGrid> rough;
    for (const std::int32_t count : counts_of(size)) {
      if (const auto grid = grid_of(cells, count, true)) {
        rough.push_back({.time = grid->time, .count = count, .size = size});
      }
    }
    std::sort(rough.begin(), rough.end());
    return rough;
  }

  std::vector<RankRange> equal_cells(std::int32_t size) const {
    std::vector<RankRange> cells;
    for (std::int64_t first = 0; first < problem_.num_ranks(); first += size) {
      cells.push_back({.first = first, .size = size});
    }
    return cells;
  }

  // Grids of sizes, each with what it takes at least: those that come near the best, roughly, are
  // made properly.
  void consider_grids(const std::vector<std::pair<Nanoseconds, std::int32_t>>& sizes) {
    std::map<std::int32_t, CellItems> cells_of;
    std::vector<RoughGrid> all;
    Nanoseconds best =
        best_.empty() || best_excess_ > 0 ? std::numeric_limits<Nanoseconds>::max() : best_time_;
    for (const auto& [least, size] : sizes) {
      if (is_beaten(least) || best <= least) continue;
      const auto cells = cells_of.try_emplace(size, problem_, equal_cells(size)).first;
      const std::vector<RoughGrid> rough = rough_grids(cells->second, size);
      constexpr std::size_t num_proper = 2;
      all.insert(all.end(), rough.begin(),
                 rough.begin() + static_cast<std::ptrdiff_t>(std::min(num_proper, rough.size())));
      if (!rough.empty()) best = std::min(best, rough.front().time);
    }
    std::sort(all.begin(), all.end());
    if (!all.empty()) best_size_ = all.front().size;
    // Which of them keeps a limit on activations, their time does not tell.
    const bool is_limited = problem_.options().max_activation_bytes > 0;
    for (const auto& [time, count, size] : all) {
      if (time - best > best / 32 && !is_limited) break;
      auto grid = grid_of(cells_of.at(size), count, false);
      if (grid && consider(equalized(std::move(grid->slots)), false)) best_size_ = size;
    }
  }

  std::optional<Grid> grid_of(const CellItems& cells, std::int32_t count, bool is_rough) {
    auto [profile, is_new] = profiles_.try_emplace(count);
    if (is_new) {
      constexpr double parts = 1e6;  // of all slots together
      for (const double height : slot_heights(shape_, problem_.options().pass,
                                              problem_.model().forward_share, count, parts)) {
        profile->second.push_back(std::max<std::int64_t>(1, std::llround(height)));
      }
    }
    return find_grid(
        problem_, cells, {.num_slots = count, .capacity = capacity_, .is_rough = is_rough},
        profile->second, bound_,
        is_rough ? num_operations() / (shape_.virtual_ > 1 ? 8 : 16) : num_operations());
  }

  // Cells of several sizes that run whole bundles. A long item passes all stages one after the
  // other, while the stages of all others work at once.
  void consider_kept_cells() {
    const BundleTable table(problem_);
    const double wait = static_cast<double>(shape_.stages - 1) / shape_.virtual_;
    std::vector<BundleCell> last;
    for (std::int32_t level = 0; level < table.num_levels(); ++level) {
      for (auto& cells : cut_into_cells(
               problem_, table, {.narrowest = level, .wait = wait, .limit = work_limit()})) {
        if (cells == last) continue;
        const auto [fewest, most] = slots_of_cells(problem_, cells, capacity_);
        const auto middle =
            static_cast<std::int32_t>(std::sqrt(static_cast<double>(fewest) * most));
        for (const std::int32_t count : {middle, most}) {
          consider_kept_cells(cells, (count + multiple_ - 1) / multiple_ * multiple_);
        }
        last = std::move(cells);
      }
    }
  }

  void consider_kept_cells(const std::vector<BundleCell>& cells, std::int32_t num_slots) {
    const auto heights =
        slot_heights(shape_, problem_.options().pass, problem_.model().forward_share, num_slots, 1);
    const auto draft = fill_kept_cells(problem_, cells, heights, capacity_);
    if (!draft) return;
    Grid grid = improved_grid(problem_, *draft, {.num_slots = num_slots, .capacity = capacity_},
                              bound_, num_operations() / 4);
    std::erase_if(grid.slots, [](const auto& slot) { return slot.empty(); });
    consider(equalized(std::move(grid.slots)), false);
  }

  // No cell that works as long as that is done before the best.
  Nanoseconds work_limit() const {
    if (best_.empty() || best_excess_ > 0 || problem_.options().pass != Pass::train) {
      return max_total_cost;
    }
    return best_time_ * shape_.stages;
  }

  // Slots of groups of several sizes: those that let no item take longer than some limit.
  void consider_mixed() {
    if (problem_.options().keep_groups == KeepGroups::rank) {
      if (has_nested_bundles(problem_)) consider_kept_cells();
      consider(equalized(search_kept_slots(problem_, 0, work_)), true);
      return;
    }
    struct Rough {
      Nanoseconds time;
      Nanoseconds limit;
      std::int32_t base;
    };
    std::vector<Rough> rough;
    Nanoseconds best = std::numeric_limits<Nanoseconds>::max();
    const std::set<std::int32_t> bases = {problem_.sizes().front(), best_size_, best_size_ / 2};
    for (const std::int32_t base : problem_.sizes()) {
      if (!bases.contains(base)) continue;
      // The shorter the limit the wider the groups, which costs more and more. Packing looks at
      // items on many sizes: of very many a few limits are enough.
      const auto num_tables = static_cast<std::int64_t>(problem_.sizes().size());
      const std::int64_t max_limits = std::clamp<std::int64_t>(
          (std::int64_t{1} << 26) / (num_tables * problem_.num_items()), 1, 10);
      Nanoseconds limit = bound_;
      for (std::int64_t i = 0; i < max_limits; ++i) {
        const DraftSlots slots = pack_slots(problem_, limit, base, PackCare::rough).slots;
        const Nanoseconds least = pass_time(slots_time(problem_, slots)) / shape_.stages;
        if (least > best || is_far_behind(least)) break;
        rough.push_back({.time = time_of_slots(slots), .limit = limit, .base = base});
        limit = std::min(limit, longest_group(slots)) * 4 / 5;
        best = std::min(best, rough.back().time);
      }
    }
    std::stable_sort(rough.begin(), rough.end(),
                     [](const Rough& a, const Rough& b) { return a.time < b.time; });
    constexpr std::size_t num_proper = 3;
    for (std::size_t i = 0; i < std::min(num_proper, rough.size()); ++i) {
      const auto& [time, limit, base] = rough[i];
      if (is_far_behind(time)) break;
      consider(equalized(pack_slots(problem_, limit, base, PackCare::proper).slots), true);
    }
  }

  Nanoseconds pass_time(Nanoseconds cost) const {
    return problem_.options().pass == Pass::train
               ? cost
               : split_cost(cost, problem_.model().forward_share).forward;
  }

  Nanoseconds longest_group(const DraftSlots& slots) const {
    Nanoseconds longest = 0;
    for (const auto& slot : slots) {
      for (const DraftGroup& group : slot) longest = std::max(longest, group_time(problem_, group));
    }
    return longest;
  }

  // Of slots in which all wait for the slowest group, short ones at both ends.
  Nanoseconds time_of_slots(const DraftSlots& slots) const {
    std::vector<Nanoseconds> longest;
    for (const auto& slot : slots) {
      Nanoseconds time = 0;
      for (const DraftGroup& group : slot) time = std::max(time, group_time(problem_, group));
      longest.push_back(time);
    }
    const auto multiple = static_cast<std::size_t>(multiple_);
    longest.resize((slots.size() + multiple - 1) / multiple * multiple, problem_.microbatch());
    std::vector<PassCost> costs;
    for (const std::size_t slot : small_ends(longest)) {
      costs.push_back(split_cost(longest[slot], problem_.model().forward_share));
      if (problem_.options().pass == Pass::forward) costs.back().backward = 0;
    }
    const auto count = static_cast<std::int32_t>(costs.size());
    return PipelineTime(shape_, count, problem_.options().pass).makespan(costs);
  }

  DraftSlots equalized(DraftSlots slots) const {
    equalize(problem_, multiple_, slots);
    return slots;
  }

  std::int64_t num_operations() const {
    // The default for slots that wait for each other counts more work for packing them.
    return problem_.options().sync == Sync::microbatch ? work_ * 3 : work_ * 4;
  }

  // Whether a rough time of slots is too long to become the best when they are made properly. Only
  // where groups do not wait for all others: packing those properly saves more.
  bool is_far_behind(Nanoseconds time) const {
    const PlanOptions& options = problem_.options();
    return options.sync == Sync::step && options.max_activation_bytes == 0 &&
           is_beaten(time - best_time_ / 24);
  }

  bool is_beaten(Nanoseconds least) const {
    return !best_.empty() && best_excess_ == 0 && best_time_ <= least;
  }

  // What a loader without a planner would do, where that is a plan.
  void consider_dealt() {
    const PlanOptions& options = problem_.options();
    const bool is_whole =
        trial_.batch.lengths.size() + static_cast<std::size_t>(trial_.padding_rows) ==
        static_cast<std::size_t>(problem_.num_items());
    if (is_fixed_ && !has_price_everywhere(problem_.sizes().front())) return;
    if (is_fixed_) consider(deal_in_order(problem_), false);
    if (options.keep_groups != KeepGroups::none || !is_whole) return;
    const StepPlan naive = naive_plan(trial_.batch, trial_.topology, trial_.cost, options, bound_);
    const auto sizes = problem_.sizes();
    DraftSlots slots;
    for (const Slot& slot : naive.microbatches) {
      auto& groups = slots.emplace_back();
      for (const ContextGroup& group : slot) {
        if (group.sequences.empty()) continue;
        DraftGroup draft{.ranks = group.ranks};
        for (const SequenceId id : group.sequences) draft.items.push_back(id.value());
        const auto size = static_cast<std::int32_t>(group.ranks.size);
        // The baseline packs what has to stand alone here.
        const bool fits = std::find(sizes.begin(), sizes.end(), size) != sizes.end() &&
                          std::all_of(draft.items.begin(), draft.items.end(), [&](ItemId item) {
                            return problem_.item_fits(size, item) &&
                                   (draft.items.size() == 1 || !problem_.is_alone(item));
                          });
        if (!fits) return;
        groups.push_back(std::move(draft));
      }
    }
    consider(equalized(std::move(slots)), false);
  }

  // Whether they are better than the best so far.
  bool consider(DraftSlots slots, bool may_reorder) {
    const std::int64_t limit = problem_.options().max_activation_bytes;
    if (may_reorder || limit > 0) {
      const bool is_by_cell = is_fixed_ && problem_.options().sync == Sync::step;
      slots = is_by_cell ? reordered_cells(problem_, slots, num_operations())
                         : reordered_slots(problem_, trial_, std::move(slots), num_operations());
    }
    set_slots(problem_, slots, trial_);
    StepPlayer player(trial_);
    std::vector<std::int32_t> order(slots.size());
    std::iota(order.begin(), order.end(), 0);
    const Nanoseconds time = player.play(
        order, [](const PipelineOperation&, const PlayedGroup&, Nanoseconds, Nanoseconds) {});
    std::int64_t excess = 0;
    for (std::int32_t rank = 0; limit > 0 && rank < player.num_ranks(); ++rank) {
      excess = std::max(excess, player.peak_bytes(rank, order) - limit);
    }
    if (!best_.empty() && std::pair(excess, time) >= std::pair(best_excess_, best_time_)) {
      return false;
    }
    best_excess_ = excess;
    best_time_ = time;
    best_ = std::move(slots);
    return true;
  }

  const Problem& problem_;
  const PipelineShape& shape_;
  Nanoseconds bound_;
  std::int64_t work_;
  StepPlan trial_;
  std::int32_t multiple_;
  bool is_fixed_;
  Tokens capacity_;  // of a rank, for micro-batches of several items
  PipelineBubble bubble_;
  std::int32_t best_size_;                                      // of grids
  std::map<std::int32_t, std::vector<std::int64_t>> profiles_;  // by the number of slots
  DraftSlots best_;
  Nanoseconds best_time_ = 0;
  std::int64_t best_excess_ = 0;
};

}  // namespace

DraftSlots search_pipeline(const Problem& problem, const StepPlan& plan, Nanoseconds bound,
                           std::int64_t work) {
  return PipelineSearch(problem, plan, bound, work).run();
}

}  // namespace isochron
