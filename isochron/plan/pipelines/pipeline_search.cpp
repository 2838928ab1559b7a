// How many micro-batches, what is in them, in which order.
//
// Where sizes are dynamic, cells of several sizes come first; then grids of every static size that
// may be faster, and slots that hold a few wide groups beside many narrow ones. Which of them are
// worth being made properly is found out roughly (scout.cpp). What the simulator likes best is the
// answer.

#include "isochron/plan/pipelines/pipeline_search.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <span>

#include "isochron/plan/bundles/kept_slots.h"
#include "isochron/plan/deal.h"
#include "isochron/plan/default_effort.h"
#include "isochron/plan/least_areas.h"
#include "isochron/plan/pipelines/best_slots.h"
#include "isochron/plan/pipelines/cell_items.h"
#include "isochron/plan/pipelines/cell_search.h"
#include "isochron/plan/pipelines/kept_cells.h"
#include "isochron/plan/pipelines/naive_slots.h"
#include "isochron/plan/pipelines/pipeline_bound.h"
#include "isochron/plan/pipelines/pipeline_grid.h"
#include "isochron/plan/pipelines/scout.h"
#include "isochron/plan/pipelines/shaped_slots.h"
#include "isochron/plan/pipelines/slot_heights.h"
#include "isochron/plan/pipelines/step_worth.h"
#include "isochron/plan/pipelines/thin_slots.h"
#include "isochron/plan/related_problems.h"
#include "isochron/plan/slots/paced_places.h"
#include "isochron/plan/slots/slot_packer.h"
#include "isochron/plan/slots/widen_groups.h"
#include "isochron/schedule/pipeline_schedule.h"

namespace isochron {

namespace {

// Whether every item fits the smallest group and takes less than a third of the step there, and a
// rank has many: such are dealt to cells of one size.
bool are_short(const Problem& problem, Nanoseconds bound) {
  constexpr std::int32_t many = 10;
  if (problem.num_items() / many < problem.num_ranks()) return false;
  const std::int32_t size = problem.sizes().front();
  const PriceId price = problem.cheapest_price(size);
  const std::int32_t stages = problem.topology().pipeline.stages;
  for (ItemId item = 0; item < problem.num_items(); ++item) {
    if (!problem.item_fits(size, item)) return false;
    if (pass_time(problem, problem.item_cost(price, item)) / stages > bound / 3) return false;
  }
  return true;
}

std::int32_t narrowest_in(const DraftSlots& slots) {
  std::int64_t size = std::numeric_limits<std::int32_t>::max();
  for (const auto& slot : slots) {
    for (const DraftGroup& group : slot) size = std::min(size, group.ranks.size);
  }
  return static_cast<std::int32_t>(size);
}

class PipelineSearch {
 public:
  // What takes `limit` or longer is no use; `grids` are known already, the fastest first.
  PipelineSearch(const Problem& problem, const StepPlan& plan, const RankRoom& room,
                 Nanoseconds bound, std::int64_t work, DraftSlots start,
                 Nanoseconds limit = max_total_cost, std::vector<GridRecipe> grids = {})
      : problem_(problem),
        shape_(plan.topology.pipeline),
        room_(room),
        bound_(bound),
        limit_(limit),
        grids_(std::move(grids)),
        work_(work),
        plan_(plan),
        multiple_(shape_.group),
        is_fixed_(context_mode(problem.options().context).kind == ContextMode::Kind::fixed),
        worth_(problem, bound, work),
        is_kept_(problem.num_bundles() != problem.num_items()),
        asks_sizes_(!is_fixed_ && problem.is_aligned()),
        are_all_short_(is_trained() && are_short(problem, bound)),
        capacity_(problem.capacity()),
        heights_(shape_, problem.options().pass, problem.model().forward_share),
        has_start_(!start.empty()),
        best_size_(problem.sizes().front()),
        best_(problem, plan, num_operations()) {
    if (!has_start_) return;
    best_size_ = narrowest_in(start);
    best_.consider(equalized(std::move(start)));
  }

  DraftSlots run() {
    // What aligned groups get is all that so short a step is worth.
    constexpr double to_begin = 0.06;
    if (has_start_ && best_.excess() <= 0 && worth_.looks() < to_begin) return best_.take();
    consider_all();
    const bool is_tight = best_.excess() > 0;
    if (is_tight) {
      capacity_ = capacity_within_memory();
      grids_.clear();
      consider_all();
    }
    consider_dealt();
    constexpr std::int32_t few = 16;
    if (best_.excess() > 0 || (is_tight && problem_.num_items() <= few)) {
      constexpr std::int64_t least = 4'000'000;  // some milliseconds, for a plan that is none yet
      auto thin = find_thin_slots(problem_, std::max(least, num_operations()));
      if (thin) best_.consider(*std::move(thin));
    }
    return best_.take();
  }

 private:
  // Full micro-batches in all slots in flight keep the limit on activations: a stage holds as many
  // parts of them as there are visits between a forward and its backward.
  Tokens capacity_within_memory() const {
    const std::int64_t limit = problem_.options().max_activation_bytes;
    const double bytes = plan_.cost.activation_bytes_per_token;
    if (limit == 0 || bytes <= 0) return problem_.capacity();
    double visits = static_cast<double>(num_warmup_visits(shape_, 0) + 1);
    if (problem_.options().pass == Pass::forward) visits = 1;
    double share = 1.0 / shape_.num_chunks();
    for (const double given : shape_.shares) share = std::max(share, given);
    const double tokens = static_cast<double>(limit) / (bytes * visits * share);
    return static_cast<Tokens>(std::clamp(tokens, 1.0, static_cast<double>(problem_.capacity())));
  }

  void consider_all() {
    if (are_slots_enough()) return;
    Scout scout(problem_, room_, heights_, capacity_, bound_, num_operations(), worth_.is_hasty());
    has_sample_ = scout.has_sample();
    best_rough_ = best_.time();
    const bool are_cells_skipped = worth_.is_hasty() && are_all_short_ && !problem_.has_speeds();
    const bool may_have_cells = !is_fixed_ && !is_kept_ && !are_cells_skipped;
    std::optional<RoughCells> cells;
    const auto scout_cells = [&] {
      cells = scout.find_cells(worth_.time_for_cells());
      if (cells) best_rough_ = std::min(best_rough_, cells->time);
    };
    // Groups of one size are aligned. A forward pass with items too long for small groups has
    // better cells.
    const bool are_long =
        worth_.is_hasty() && !is_trained() && !holds_all(problem_, problem_.sizes().front());
    // Where some ranks are slow, grids are soon found and often near.
    const bool are_grids_first = worth_.is_hasty() && problem_.has_speeds();
    bool has_cells = may_have_cells && !has_sample_ && !are_grids_first;
    if (has_cells) {
      consider_cells({});
      if (problem_.has_speeds() && !is_paced()) consider_cells_of_equal_ranks();
      best_rough_ = best_.time();
    } else if (may_have_cells && are_long) {
      scout_cells();
    }
    const bool are_better = (are_long && best_rough_ < max_total_cost) ||
                            (is_paced() && worth_.is_hardly() && !best_.is_empty());
    if (grids_.empty() && !has_start_ && !are_better) grids_ = find_grids(scout);
    if (may_have_cells && has_sample_ && !cells && !worth_.is_near_bound(best_rough_))
      scout_cells();
    if (cells && is_near(cells->time)) {
      consider_cells(cells->guess);
      has_cells = true;
    }
    consider_grids();
    // What a sample promises may not hold for the whole, which has longer items.
    const bool is_far = worth_.is_far(best_.time());
    if (do_many_wait(problem_) && problem_.has_speeds() && !is_kept_ && !is_fixed_) {
      if (is_far || !worth_.is_hasty()) consider_equal_ranks();
    } else if (is_far && may_have_cells && !has_cells) {
      consider_cells({});
    }
    if (!is_fixed_) {
      consider_mixed(scout);
      consider_flat();
    }
    if (asks_sizes_) consider_static_sizes();
    if (best_.is_empty() && !is_given_up_) {  // no grid holds everything
      best_.consider_reordered(equalized(search_kept_slots(problem_, 0, work_)));
    }
  }

  // Whether slots that suit the pipeline are so good that nothing else need be tried.
  bool are_slots_enough() {
    const bool are_likely = worth_.is_hasty() && do_many_wait(problem_) && !is_fixed_ &&
                            may_be_shaped() && problem_.options().keep_groups != KeepGroups::rank &&
                            is_even(problem_, room_, bound_);
    return are_likely && consider_shaped(std::min(best_.time(), worth_.good_time()), true);
  }

  // The slots of equally fast ranks, on ranks that suit them, where that may save a few times what
  // asking takes: where all wait for each other, which rank runs what makes no difference to other
  // slots.
  void consider_equal_ranks() {
    const double cost = 1e6 + 2.5e3 * problem_.num_items();
    const double lost = static_cast<double>(best_.time()) - 1.1 * static_cast<double>(bound_);
    const double few_times = has_start_ ? 16 : 4;  // aligned groups have asked already
    if (lost < few_times * cost) return;
    const auto equal = without_speeds(problem_);
    const RankRoom room = rank_room_of(*equal);
    StepPlan same = plan_;
    same.topology.rank_speed.clear();
    PipelineSearch search(*equal, same, room, pipeline_bound(*equal, room), work_, {});
    DraftSlots slots = search.run();
    if (!slots.empty()) best_.consider(with_paced_places(problem_, std::move(slots)));
  }

  // A rough time that may become the best when the plan is made properly, the more likely the
  // nearer it is. Where all ranks wait for each other it says less.
  bool is_near(Nanoseconds time) const { return time <= near_time(); }
  Nanoseconds near_time() const {
    double part = is_paced() ? 8 : 32;
    if (worth_.is_hasty() && (is_paced() ? !has_sample_ : shape_.virtual_ == 1)) part *= 4;
    if (!is_paced()) part = std::max(part, (is_straight() ? 12 : 8) / worth_.looks());
    return best_rough_ + static_cast<Nanoseconds>(static_cast<double>(best_rough_) / part);
  }
  // Which plan keeps a limit on activations, their times do not tell.
  bool is_limited() const { return problem_.options().max_activation_bytes > 0; }
  bool is_paced() const { return problem_.options().sync == Sync::microbatch; }
  bool is_straight() const { return !is_paced() && shape_.virtual_ == 1; }
  bool is_trained() const { return problem_.options().pass == Pass::train; }

  void consider_cells(const std::optional<CellGuess>& guess) {
    // How long the slots of a forward pass are, matters more.
    const double little = is_trained() ? 0.12 : 0.08;
    const bool is_coarse = worth_.looks() < little && (is_paced() || !guess);
    CellQuestion question{.capacity = capacity_,
                          .bound = bound_,
                          .nanoseconds = worth_.time_for_cells(),
                          .guess = guess,
                          .care = is_coarse ? CellCare::coarse : CellCare::fine};
    const std::int64_t work = is_coarse && !is_trained() ? num_operations() / 2 : num_operations();
    const bool is_late = is_later_than_cells(question, work);
    if (!is_late || !problem_.is_aligned()) return;
    question.rest = RestRanks::cells;
    static_cast<void>(is_later_than_cells(question, work));
  }

  // Considers the best cells for the question, or without its guess if there are none. Whether the
  // best plan ends much later than they do: ranks that idle beside them have to take items from
  // others, for which they may have no time.
  bool is_later_than_cells(CellQuestion& question, std::int64_t work) {
    auto cells = search_cells(problem_, room_, heights_, question);
    if (!cells && question.guess) {
      question.guess.reset();
      question.care = CellCare::fine;
      cells = search_cells(problem_, room_, heights_, question);
    }
    if (!cells) return false;
    const GridShape shape{.num_slots = cells->found.num_slots, .capacity = capacity_};
    Grid grid = improved_grid(problem_, std::move(cells->draft), shape, bound_, work);
    const Nanoseconds planned = grid.time;
    best_.consider(std::move(grid));
    return best_.time() > planned + planned / 10;
  }

  // Cells of equally fast ranks, from which exchanges take what slow ones have no time for: these
  // are in wide cells too, which cells that know of them avoid.
  void consider_cells_of_equal_ranks() {
    const auto equal = without_speeds(problem_);
    auto cells = search_cells(*equal, room_, heights_,
                              {.capacity = capacity_, .bound = pipeline_bound(*equal, room_)});
    if (!cells) return;
    const GridShape shape{.num_slots = cells->found.num_slots, .capacity = capacity_};
    best_.consider(
        improved_grid(problem_, std::move(cells->draft), shape, bound_, num_operations()));
  }

  // Grids of static sizes, of each the fastest, roughly.
  std::vector<GridRecipe> find_grids(Scout& scout) {
    std::vector<std::pair<Nanoseconds, std::int32_t>> sizes;  // by what they take about
    for (const std::int32_t size : problem_.sizes()) {
      // What is wider than a sample of a question without long items is never the best.
      if (!sizes.empty() && !scout.can_try(size)) continue;
      if (is_static_size(problem_, size)) sizes.emplace_back(scout.likely_time(size), size);
    }
    std::sort(sizes.begin(), sizes.end());
    std::vector<GridRecipe> all;
    for (const auto& [likely, size] : sizes) {
      if (best_.time() <= likely || best_rough_ <= likely) break;
      const Nanoseconds limit = is_limited() ? best_.time() : std::min(best_.time(), near_time());
      const std::vector<GridRecipe> recipes =
          scout.find_grids(size, limit, worth_.is_hasty() && !is_paced() ? 1 : 2);
      all.insert(all.end(), recipes.begin(), recipes.end());
      if (!recipes.empty()) best_rough_ = std::min(best_rough_, recipes.front().time);
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  // Every static size that may save more than asking it takes, the likeliest first.
  void consider_static_sizes() {
    std::vector<std::pair<Nanoseconds, std::int32_t>> sizes;  // by what they take at least
    const LeastAreas areas(problem_);
    const Nanoseconds most_work = work_in_room();
    for (const std::int32_t size : problem_.sizes()) {
      if (!holds_all(problem_, size) || !is_static_size(problem_, size)) continue;
      if (areas.exceed(size, most_work)) continue;
      sizes.emplace_back(static_pipeline_bound(problem_, room_, size), size);
    }
    std::sort(sizes.begin(), sizes.end());
    for (const auto& [least, size] : sizes) {
      if (worth_.is_worth_asking(least, best_.time())) ask_static_size(size);
    }
  }

  // No rank works longer in a step that ends before the best.
  Nanoseconds work_in_room() const {
    const double time = room_time();
    return time < static_cast<double>(max_total_cost) ? static_cast<Nanoseconds>(time)
                                                      : max_total_cost;
  }

  // The plan that the size has alone, once, if that may be faster: of the grids that are known of
  // it where others are hardly worth a look.
  void ask_static_size(std::int32_t size) {
    if (std::find(asked_.begin(), asked_.end(), size) != asked_.end()) return;
    asked_.push_back(size);
    const auto fixed = with_static_size(problem_, size);
    if (fixed == nullptr) return;
    const RankRoom room = rank_room_of(*fixed);
    const Nanoseconds bound = pipeline_bound(*fixed, room);
    if (!worth_.is_worth_asking(bound, best_.time())) return;
    StepPlan alone = plan_;
    alone.options = fixed->options();
    const std::int64_t work = fixed->options().effort ? work_ : default_effort(*fixed);
    const Nanoseconds limit = is_limited() || !worth_.is_timed() ? max_total_cost : best_.time();
    std::vector<GridRecipe> grids;
    if (worth_.is_hardly()) {
      std::copy_if(grids_.begin(), grids_.end(), std::back_inserter(grids),
                   [&](const GridRecipe& grid) { return grid.size == size; });
    }
    PipelineSearch search(*fixed, alone, room, bound, work, {}, limit, std::move(grids));
    DraftSlots slots = search.run();
    if (!slots.empty() && best_.consider(std::move(slots))) best_size_ = size;
  }

  void consider_grids() {
    if (!grids_.empty()) best_size_ = grids_.front().size;
    const std::size_t most = !worth_.is_hasty() || !is_paced() ? grids_.size()
                             : has_sample_                     ? 2
                                                               : 1;
    // What cells of several sizes take roughly is less than what they take in the end.
    if (worth_.is_hasty() && !grids_.empty())
      best_rough_ = std::min(best_.time(), grids_.front().time);
    for (std::size_t i = 0; i < grids_.size(); ++i) {
      const auto& [time, num_slots, size] = grids_[i];
      is_given_up_ = is_given_up_ || worth_.is_hopeless(time, limit_);
      if ((i >= most || !is_near(time) || is_given_up_) && !is_limited()) break;
      if (asks_sizes_ && !is_limited()) {
        ask_static_size(size);
        continue;
      }
      const CellItems cells(problem_, equal_cells(problem_, size));
      // Items that wait for a long one are spread best where that is counted.
      const GridShape shape{.num_slots = num_slots,
                            .capacity = capacity_,
                            .is_rough = worth_.is_hardly() && is_straight() && !is_kept_};
      auto grid =
          find_grid(problem_, cells, shape, heights_.of(num_slots), bound_, num_operations());
      if (grid && best_.consider(*std::move(grid))) best_size_ = size;
    }
  }

  // Cells of several sizes that run whole bundles. A long item passes all stages one after the
  // other, while the stages of all others work at once.
  void consider_kept_cells(std::span<const std::int32_t> sizes) {
    const BundleTable table(problem_, sizes);
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
          const std::int32_t num_slots = (count + multiple_ - 1) / multiple_ * multiple_;
          if (!exceed(problem_, cells, room_, room_time(), num_slots)) {
            consider_kept_cells(cells, num_slots);
          }
        }
        last = std::move(cells);
      }
    }
  }

  void consider_kept_cells(const std::vector<BundleCell>& cells, std::int32_t num_slots) {
    auto draft = fill_kept_cells(problem_, cells, heights_.of(num_slots), capacity_);
    if (!draft) return;
    Grid grid =
        improved_grid(problem_, *std::move(draft), {.num_slots = num_slots, .capacity = capacity_},
                      bound_, num_operations() / 4);
    std::erase_if(grid.slots, [](const auto& slot) { return slot.empty(); });
    best_.consider(equalized(std::move(grid.slots)));
  }

  // No cell that works as long as that is done before the best.
  Nanoseconds work_limit() const {
    const bool is_known = is_trained() && best_.time() < max_total_cost / shape_.stages;
    return is_known ? best_.time() * shape_.stages : max_total_cost;
  }

  // Until the best ends, as ranks count what they have room for.
  double room_time() const {
    const bool is_known = best_.time() < max_total_cost && shape_.shares.empty();
    return is_known ? time_in_room(problem_, room_, best_.time()) + room_.lost()
                    : std::numeric_limits<double>::infinity();
  }

  // Slots of groups of several sizes: those that let no item take longer than some limit.
  void consider_mixed(Scout& scout) {
    if (problem_.options().keep_groups == KeepGroups::rank) {
      if (worth_.is_hasty() && worth_.is_good(best_.time())) return;
      for (const auto& sizes : cell_sizes(problem_)) consider_kept_cells(sizes);
      if (may_have_few_slots(problem_, capacity_, room_, room_time())) {
        best_.consider_reordered(equalized(search_kept_slots(problem_, 0, work_)));
      }
      return;
    }
    const bool is_hurried = worth_.is_hardly() && !best_.is_empty();
    if (is_hurried && is_straight()) return;
    if (may_be_shaped() && consider_shaped(best_.time(), false)) return;
    if (is_hurried) return;
    // A rough time that is too long to become the best when the slots are made properly.
    const bool is_enough = has_sample_ || (is_trained() && !is_paced()) || are_all_short_;
    if (worth_.is_hasty() && is_enough && worth_.is_good(best_rough_)) return;
    Nanoseconds far = best_rough_ + best_rough_ / 32;
    if (is_limited() || best_rough_ == max_total_cost) {
      far = max_total_cost;
    }
    const std::vector<MixedRecipe> recipes =
        scout.find_mixed({problem_.sizes().front(), best_size_, best_size_ / 2}, far);
    const std::size_t num_proper = scout.has_sample() ? 1 : 3;
    if (recipes.empty() || recipes.front().time >= far) return;
    const SlotPacker packer(problem_);
    for (std::size_t i = 0; i < std::min(num_proper, recipes.size()); ++i) {
      const auto& [time, limit, base] = recipes[i];
      if (time >= far) break;
      consider_found(packer.pack(limit, base, PackCare::proper).slots);
    }
  }

  // Ranks that do not wait for each other have less to gain.
  bool may_be_shaped() const {
    if (problem_.has_speeds() || capacity_ < problem_.capacity()) return false;
    const bool is_close = best_.time() - bound_ <= bound_ / 12;
    return is_paced() || !worth_.is_hasty() || (!has_sample_ && !is_close);
  }

  // Slots as long as suits the pipeline, if they take less than `most`, and, where the step is
  // worth it, such that waste least. Whether other slots of several sizes are not needed.
  bool consider_shaped(Nanoseconds most, bool is_even) {
    ShapedSlots shaped(problem_, room_, heights_);
    const Nanoseconds before = best_.time();
    consider_found(shaped.search(bound_, most, is_even));
    const bool is_much_better = before - best_.time() > before / 100;
    constexpr double to_pack = 2.5;
    if (worth_.looks() < to_pack) return is_much_better && worth_.is_hasty();
    DraftSlots tight = search_slots(problem_, 0, work_).slots;
    consider_found(shaped.with_ends(tight));
    consider_found(std::move(tight));
    return true;
  }
  // Slots that take the least time without stages, found in haste: the best where few of them hold
  // everything side by side.
  void consider_flat() {
    if (!worth_.is_hasty() || capacity_ < problem_.capacity()) return;
    if (problem_.options().keep_groups == KeepGroups::rank) return;
    constexpr std::int32_t few = 6;  // items for each rank
    const std::int32_t num_items = problem_.num_items();
    const std::int32_t num_ranks = problem_.num_ranks();
    if (num_items > few * num_ranks) return;
    // One for each of equal ranks is what grids begin with.
    const bool is_one_each = num_items >= num_ranks && num_items - num_ranks <= num_ranks / 8;
    if (is_one_each && !problem_.has_speeds()) return;
    const double cost = 1e5 + 3e3 * num_items;
    const double lost = static_cast<double>(best_.time()) - 1.05 * static_cast<double>(bound_);
    Purse& purse = *problem_.purse();
    if (lost < 4 * cost || purse.left() <= 0 || !purse.pays(cost, lost)) return;
    constexpr std::int64_t least_work = 1;
    consider_found(search_slots(problem_, 0, least_work).slots);
  }

  // Ranks that idle beside groups of several sizes share what they run, where that is better than
  // to take something from elsewhere.
  bool consider_found(DraftSlots slots) {
    if (slots.empty()) return false;
    DraftSlots wide = slots;
    const bool is_wider =
        problem_.options().keep_groups != KeepGroups::rank && widen_groups(problem_, wide);
    const bool is_better = best_.consider_reordered(equalized(std::move(slots)));
    return (is_wider && best_.consider_reordered(equalized(std::move(wide)))) || is_better;
  }

  DraftSlots equalized(DraftSlots slots) const {
    equalize(problem_, multiple_, slots);
    return slots;
  }

  std::int64_t num_operations() const {
    // The default for slots that wait for each other counts more work for packing them.
    return is_paced() ? work_ * 3 : work_ * 4;
  }

  // What needs no search.
  void consider_dealt() {
    if (is_fixed_ && !has_price_everywhere(problem_, problem_.sizes().front())) return;
    if (is_fixed_) best_.consider(deal_in_order(problem_));
    const Nanoseconds limit = std::min(best_.time(), limit_);
    auto naive = find_naive_slots(problem_, plan_, room_, bound_, limit);
    if (naive) best_.consider(equalized(*std::move(naive)));
  }

  const Problem& problem_;
  const PipelineShape& shape_;
  const RankRoom& room_;
  Nanoseconds bound_;
  Nanoseconds limit_;              // of what is asked for, as far as that is known beforehand
  bool is_given_up_ = false;       // no grid keeps it
  std::vector<GridRecipe> grids_;  // roughly, the fastest first
  std::int64_t work_;
  const StepPlan& plan_;  // the question
  std::int32_t multiple_;
  bool is_fixed_;
  StepWorth worth_;
  bool is_kept_;  // bundles of several items, few of them
  // Whether no static size may be faster.
  bool asks_sizes_;
  std::vector<std::int32_t> asked_;  // sizes
  bool are_all_short_;               // in a training pass
  bool has_sample_ = false;
  Tokens capacity_;  // of a rank, for micro-batches of several items
  SlotHeights heights_;
  bool has_start_;                           // which is all that aligned groups get
  std::int32_t best_size_;                   // of grids
  Nanoseconds best_rough_ = max_total_cost;  // as the scout counts
  BestSlots best_;
};

}  // namespace

bool do_many_wait(const Problem& problem) {
  constexpr std::int32_t many = 128;
  return problem.options().sync == Sync::microbatch && problem.num_ranks() >= many;
}

DraftSlots search_pipeline(const Problem& problem, const StepPlan& plan, const RankRoom& room,
                           Nanoseconds bound, std::int64_t work, DraftSlots start) {
  return PipelineSearch(problem, plan, room, bound, work, std::move(start)).run();
}

}  // namespace isochron
