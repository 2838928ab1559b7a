// Equal counts out of free ones: the search is told how many micro-batches every rank will pay for,
// and what falls short of that number is split.
//
// Where that takes sequences from where they are best, there are too few of them: then each has a
// micro-batch of its own, which leaves nothing to split, or all groups are of one size, which are
// full in every slot. Few sequences on groups that nest are annealed, each in its own micro-batch.

#include "isochron/plan/equal_search.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "isochron/plan/anneal.h"
#include "isochron/plan/bundles/bundle_partition.h"
#include "isochron/plan/full_slots.h"
#include "isochron/plan/least_areas.h"
#include "isochron/plan/related_problems.h"
#include "isochron/plan/steps/nested_anneal.h"
#include "isochron/plan/steps/step_search.h"

namespace isochron {

namespace {

class EqualSearch {
 public:
  EqualSearch(const Problem& problem, Nanoseconds bound, std::int64_t work)
      : problem_(problem),
        bound_(bound),
        work_(work),
        num_left_(work / (to_begin + for_an_item * problem.num_items())),
        full_slots_(problem) {}

  DraftSlots run() {
    if (has_nested_bundles(problem_)) {
      const auto dealt =
          search_partition(problem_, bound_, work_ / 4, BlockPacker::Ranks::keep_groups);
      if (dealt) consider(*dealt);
    }
    const std::int32_t most = consider(search_step(problem_, bound_, work_));
    // Fewer micro-batches cost less and leave less room to balance.
    for (std::int32_t count = most; count >= std::max(1, most - 2); --count) {
      consider_beside(problem_, count);
    }
    if (problem_.options().keep_groups == KeepGroups::none && least_ > bound_ + bound_ / 100) {
      try_apart(problem_);
      try_static_sizes();
      try_nested();
    }
    return std::move(best_);
  }

 private:
  // How many slots the draft has.
  std::int32_t consider(const Draft& draft) {
    DraftSlots slots = slots_of(problem_, draft);
    const auto count = static_cast<std::int32_t>(slots.size());
    equalize(problem_, 1, slots);
    bool is_short = false;
    if (problem_.options().short_ != Short::empty) {
      // What idles is hardly faster once it is filled.
      if (!is_short_ && step_time(problem_, slots) >= least_) return count;
      auto full = full_slots_.find(slots);
      is_short = !full;
      if (full) slots = *std::move(full);
    }
    const Nanoseconds time = step_time(problem_, slots);
    if (std::pair(is_short, time) < std::pair(is_short_, least_)) {
      is_short_ = is_short;
      least_ = time;
      best_ = std::move(slots);
    }
    return count;
  }

  // What a search beside the first finds, while there is work for one.
  void consider_beside(const Problem& problem, std::int32_t min_slots = 0) {
    if (num_left_ > 0) consider(search_step(problem, bound_, work_ / 4, min_slots));
    --num_left_;
  }

  // A micro-batch for every sequence.
  void try_apart(const Problem& problem) {
    if (problem.options().max_sequences == 1) return;
    const auto apart = with_single_sequences(problem);
    consider_beside(*apart);
  }

  // What ends early with free counts, and leaves nothing to split.
  void try_nested() {
    if (is_annealed(problem_) || !has_few_nested_items(problem_)) return;
    const std::int64_t num_changes = nested_changes_worth(problem_, bound_, work_);
    const auto apart = with_single_sequences(problem_);
    if (const auto nested = anneal_nested(*apart, bound_, least_, num_changes)) consider(*nested);
  }

  void try_static_sizes() {
    if (problem_.sizes().size() == 1) return;
    const LeastAreas areas(problem_);
    for (const std::int32_t size : problem_.sizes()) {
      if (!holds_all(problem_, size) || areas.exceed(size, least_)) continue;
      const auto fixed = with_static_size(problem_, size);
      if (fixed == nullptr) continue;
      consider_beside(*fixed);
      try_apart(*fixed);
    }
  }

  // Of the work, whatever else a search does.
  static constexpr std::int64_t to_begin = 1000;
  static constexpr std::int64_t for_an_item = 30;

  const Problem& problem_;
  Nanoseconds bound_;
  std::int64_t work_;
  std::int64_t num_left_;  // searches
  FullSlots full_slots_;
  DraftSlots best_;
  Nanoseconds least_ = std::numeric_limits<Nanoseconds>::max();
  bool is_short_ = true;  // the best has placeholders where there may be none
};

}  // namespace

DraftSlots search_equal_step(const Problem& problem, Nanoseconds bound, std::int64_t work) {
  return EqualSearch(problem, bound, work).run();
}

}  // namespace isochron
