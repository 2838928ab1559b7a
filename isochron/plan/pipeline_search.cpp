// How many micro-batches, what is in them, in which order.
//
// More micro-batches fill and drain a pipeline faster, and each costs its fixed part; so a few
// numbers are tried, from what the capacity asks for to several times the stages. For each the work
// is spread over the ranks and then, rank by rank, over the slots; the order comes from
// order_microbatches() where ranks do not wait for each other, else from order_slots(). What the
// simulator likes best is the answer.

#include "isochron/plan/pipeline_search.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <set>

#include "isochron/balance/assignment.h"
#include "isochron/plan/bounds.h"
#include "isochron/plan/equal_search.h"
#include "isochron/plan/plan_slots.h"
#include "isochron/plan/slot_search.h"
#include "isochron/simulate/chunk_cost.h"
#include "isochron/simulate/order_microbatches.h"
#include "isochron/simulate/simulate.h"

namespace isochron {

namespace {

class PipelineSearch {
 public:
  PipelineSearch(const Problem& problem, const StepPlan& plan)
      : problem_(problem), plan_(plan), shape_(plan.topology.pipeline) {
    is_fixed_ = context_mode(plan.options.context).kind == ContextMode::Kind::fixed;
    multiple_ = shape_.virtual_ > 1 ? shape_.group : 1;
    size_ = problem.sizes().front();
    num_cells_ = problem.num_ranks() / size_;
  }

  // No pipeline is done before its last stage has had its first input, done all of its part and
  // given the smallest backward back; nor before the dearest item has been through all stages.
  Nanoseconds bound() const {
    const Nanoseconds work = std::max(
        equal_count_bound(problem_),
        problem_.options().sync == Sync::microbatch ? slot_bound(problem_) : step_bound(problem_));
    double share = 0;
    for (std::int32_t s = 0; s < shape_.stages; ++s) {
      double part = 0;
      for (std::int32_t v = 0; v < shape_.virtual_; ++v) {
        const auto chunk = static_cast<std::size_t>(v * shape_.stages + s);
        part += shape_.shares.empty() ? 1.0 / shape_.num_chunks() : shape_.shares[chunk];
      }
      share = s == shape_.stages - 1 ? part : share;
    }
    const PassCost least = split_cost(problem_.microbatch(), plan_.cost.forward_share);
    Nanoseconds fill = 0;
    for (std::int32_t chunk = 0; chunk + 1 < shape_.stages; ++chunk) {
      fill += chunk_cost(shape_, least.forward, chunk) + chunk_cost(shape_, least.backward, chunk) +
              2 * shape_.transfer_ns;
    }
    if (problem_.has_speeds()) fill = 0;
    const auto part = static_cast<Nanoseconds>(share * static_cast<double>(work) * (1 - 1e-12));
    return std::max<Nanoseconds>(0, part - 1) + fill;
  }

  DraftSlots run(std::int64_t work) {
    const std::int32_t fewest = fewest_slots();
    std::set<std::int32_t> counts;
    const std::int32_t most = std::max(fewest, problem_.num_items() / num_cells_);
    for (const std::int32_t count :
         {fewest, fewest + 1, shape_.stages, 2 * shape_.stages, 3 * shape_.stages,
          4 * shape_.stages, 6 * shape_.stages, 8 * shape_.stages}) {
      const std::int32_t clamped = std::clamp(count, fewest, most);
      counts.insert((clamped + multiple_ - 1) / multiple_ * multiple_);
    }
    const std::int64_t order_work =
        std::max<std::int64_t>(1, work / static_cast<std::int64_t>(counts.size()));
    for (const std::int32_t count : counts) {
      if (is_fixed_) {
        consider(fixed_slots(count), order_work);
      } else {
        const double whole = static_cast<double>(equal_count_bound(problem_));
        DraftSlots slots =
            problem_.options().keep_groups == KeepGroups::rank
                ? search_kept_slots(problem_, 0, work)
                : pack_slots(problem_,
                             static_cast<Nanoseconds>(whole / count * 1.02) + problem_.microbatch())
                      .slots;
        equalize(problem_, multiple_, slots);
        consider(std::move(slots), order_work);
      }
    }
    if (best_.empty()) {  // the packing of some rank failed for every number
      DraftSlots slots = search_kept_slots(problem_, 0, work);
      equalize(problem_, multiple_, slots);
      consider(std::move(slots), order_work);
    }
    return best_;
  }

 private:
  std::int32_t fewest_slots() const {
    Tokens tokens = 0;
    for (ItemId item = 0; item < problem_.num_items(); ++item) {
      tokens += std::min(problem_.tokens(size_, item), problem_.capacity() * problem_.num_ranks());
    }
    const Tokens room = problem_.capacity() * problem_.num_ranks();
    return static_cast<std::int32_t>(std::max<Tokens>(1, (tokens + room - 1) / room));
  }

  // Bundles evenly onto cells, the items of each cell evenly into `count` micro-batches. Nothing if
  // some cell has no such packing.
  std::optional<DraftSlots> fixed_slots(std::int32_t count) const {
    const PriceId price = problem_.cheapest_price(size_);
    std::vector<Nanoseconds> costs;
    std::vector<Tokens> tokens;
    for (BundleId bundle = 0; bundle < problem_.num_bundles(); ++bundle) {
      costs.push_back(problem_.cost(price, bundle));
      Tokens sum = 0;
      for (const ItemId item : problem_.items_of(bundle)) {
        sum += std::min(problem_.tokens(size_, item), capacity());
      }
      tokens.push_back(sum);
    }
    const Assignment cells =
        assign({.costs = costs, .tokens = tokens}, num_cells_, {.capacity = capacity() * count},
               RefineGoal::largest, std::nullopt);
    if (!cells.bin_of) return std::nullopt;
    DraftSlots slots(static_cast<std::size_t>(count));
    for (std::int32_t cell = 0; cell < num_cells_; ++cell) {
      std::vector<ItemId> items;
      for (BundleId bundle = 0; bundle < problem_.num_bundles(); ++bundle) {
        if ((*cells.bin_of)[static_cast<std::size_t>(bundle)] != cell) continue;
        for (const ItemId item : problem_.items_of(bundle)) items.push_back(item);
      }
      if (items.empty()) continue;
      std::vector<Nanoseconds> item_costs;
      std::vector<Tokens> item_tokens;
      std::vector<std::int32_t> sizes;
      for (const ItemId item : items) {
        item_costs.push_back(problem_.item_cost(price, item));
        item_tokens.push_back(std::min(problem_.tokens(size_, item), capacity()));
        sizes.push_back(problem_.num_sequences(item));
      }
      Limits limits{.capacity = capacity()};
      if (problem_.options().max_sequences > 0) limits.max_size = problem_.options().max_sequences;
      if (static_cast<std::int32_t>(items.size()) >= count) limits.min_units = 1;
      const Assignment packed = assign({.costs = item_costs, .tokens = item_tokens, .sizes = sizes},
                                       count, limits, RefineGoal::largest, std::nullopt);
      if (!packed.bin_of) return std::nullopt;
      const RankRange ranks{.first = static_cast<std::int64_t>(cell) * size_, .size = size_};
      std::vector<DraftGroup> groups(static_cast<std::size_t>(count));
      for (std::size_t i = 0; i < items.size(); ++i) {
        groups[static_cast<std::size_t>((*packed.bin_of)[i])].items.push_back(items[i]);
      }
      for (std::size_t s = 0; s < groups.size(); ++s) {
        if (groups[s].items.empty()) continue;
        groups[s].ranks = ranks;
        slots[s].push_back(std::move(groups[s]));
      }
    }
    std::erase_if(slots, [](const auto& slot) { return slot.empty(); });
    equalize(problem_, multiple_, slots);
    return slots;
  }

  Tokens capacity() const { return problem_.capacity() * size_; }

  void consider(std::optional<DraftSlots> slots, std::int64_t order_work) {
    if (!slots) return;
    StepPlan trial = plan_;
    DraftSlots ordered = problem_.options().sync == Sync::step && is_fixed_
                             ? ordered_by_cell(*slots, order_work)
                             : ordered_by_slot(*slots, trial, order_work);
    set_slots(problem_, ordered, trial);
    const Timeline timeline = simulate(trial);
    const std::int64_t limit = problem_.options().max_activation_bytes;
    const std::int64_t peak = *std::max_element(timeline.peak_activation_bytes.begin(),
                                                timeline.peak_activation_bytes.end());
    const std::int64_t excess = limit == 0 ? 0 : std::max<std::int64_t>(0, peak - limit);
    if (!best_.empty() &&
        std::pair(excess, timeline.step_ns) >= std::pair(best_excess_, best_time_)) {
      return;
    }
    best_excess_ = excess;
    best_time_ = timeline.step_ns;
    best_ = std::move(ordered);
  }

  PipelineItem pipeline_item(const DraftGroup& group) const {
    Tokens tokens = 0;
    const auto size = static_cast<std::int32_t>(group.ranks.size);
    for (const ItemId item : group.items) tokens += problem_.tokens(size, item);
    const Nanoseconds time = group_time(problem_, group);
    PassCost cost = split_cost(time, plan_.cost.forward_share);
    if (plan_.options.pass == Pass::forward) cost.backward = 0;
    return {.cost = cost,
            .activation_bytes =
                static_cast<double>(tokens) / size * plan_.cost.activation_bytes_per_token};
  }

  // Every cell in its own order.
  DraftSlots ordered_by_cell(const DraftSlots& slots, std::int64_t work) const {
    DraftSlots ordered(slots.size());
    std::vector<std::vector<const DraftGroup*>> of_rank(
        static_cast<std::size_t>(problem_.num_ranks()));
    for (const auto& slot : slots) {
      for (const DraftGroup& group : slot) {
        of_rank[static_cast<std::size_t>(group.ranks.first)].push_back(&group);
      }
    }
    for (std::size_t first = 0; first < of_rank.size(); ++first) {
      // A placeholder of a static group stands for each of its ranks: all keep one order.
      if (of_rank[first].size() != slots.size() || first % static_cast<std::size_t>(size_) != 0)
        continue;
      std::vector<PipelineItem> items;
      for (const DraftGroup* group : of_rank[first]) items.push_back(pipeline_item(*group));
      const MicrobatchOrder order =
          order_microbatches(items, shape_,
                             {.pass = plan_.options.pass,
                              .max_activation_bytes = problem_.options().max_activation_bytes,
                              .max_work = std::max<std::int64_t>(1, work / num_cells_)});
      for (std::size_t s = 0; s < slots.size(); ++s) {
        const std::size_t from = order.order.empty() ? s : static_cast<std::size_t>(order.order[s]);
        for (const DraftGroup& group : slots[from]) {
          if (group.ranks.first >= static_cast<std::int64_t>(first) &&
              group.ranks.first < static_cast<std::int64_t>(first) + size_) {
            ordered[s].push_back(group);
          }
        }
      }
    }
    return ordered;
  }

  // All ranks in one order.
  DraftSlots ordered_by_slot(const DraftSlots& slots, StepPlan& trial, std::int64_t work) const {
    set_slots(problem_, slots, trial);
    const MicrobatchOrder order = order_slots(trial, std::max<std::int64_t>(1, work));
    if (order.order.empty()) return slots;
    DraftSlots ordered;
    for (const std::int32_t from : order.order)
      ordered.push_back(slots[static_cast<std::size_t>(from)]);
    return ordered;
  }

  const Problem& problem_;
  const StepPlan& plan_;
  const PipelineShape& shape_;
  bool is_fixed_ = true;
  std::int32_t multiple_ = 1;
  std::int32_t size_ = 1;
  std::int32_t num_cells_ = 1;
  DraftSlots best_;
  Nanoseconds best_time_ = 0;
  std::int64_t best_excess_ = 0;
};

}  // namespace

DraftSlots search_pipeline(const Problem& problem, const StepPlan& plan, std::int64_t work,
                           Nanoseconds& bound) {
  PipelineSearch search(problem, plan);
  bound = search.bound();
  return search.run(work);
}

}  // namespace isochron
