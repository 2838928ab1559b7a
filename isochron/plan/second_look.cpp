// A search is made for its own mode, and on some questions another one gets further: a narrower
// choice of groups, whole prompts, micro-batches of one sequence, the other way to wait. What these
// find is a plan here too. Where the answer ends long after its bound, which most do that another
// mode beats, they are asked with a small part of the effort.

#include "isochron/plan/second_look.h"

#include <algorithm>
#include <compare>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "isochron/plan/anneal.h"
#include "isochron/plan/bounds/bounds.h"
#include "isochron/plan/bundles/bundle_bound.h"
#include "isochron/plan/default_effort.h"
#include "isochron/plan/full_slots.h"
#include "isochron/plan/least_areas.h"
#include "isochron/plan/narrower_questions.h"
#include "isochron/plan/pipelines/pipeline_bound.h"
#include "isochron/plan/plan_memory.h"
#include "isochron/plan/plan_slots.h"
#include "isochron/plan/related_problems.h"
#include "isochron/plan/slots/slot_search.h"

namespace isochron {

namespace {

bool has_one_size(const DraftSlots& slots, std::int32_t size) {
  return std::all_of(slots.begin(), slots.end(), [&](const std::vector<DraftGroup>& slot) {
    return std::all_of(slot.begin(), slot.end(),
                       [&](const DraftGroup& group) { return group.ranks.size == size; });
  });
}

// Whether static sizes get the search that they would get alone, so that none is ever faster;
// groups of any size have aligned ones that asked them, and grids of pipelines have been asked.
bool are_static_sizes_searched(const StepPlan& plan, const Problem& problem) {
  if (context_mode(plan.options.context).kind == ContextMode::Kind::fixed) return false;
  if (plan.topology.pipeline.stages > 1) return is_annealed(problem);
  return problem.is_aligned();
}

class SecondLook {
 public:
  SecondLook(const StepPlan& plan, const Problem& problem, DraftSlots slots, Nanoseconds bound,
             std::int64_t effort, const SlotsOf& search)
      : problem_(problem),
        trial_(plan),
        bound_(bound),
        effort_(effort),
        search_(search),
        is_pipeline_(plan.topology.pipeline.stages > 1),
        best_(std::move(slots)) {}

  DraftSlots run() {
    const bool has_sizes = are_static_sizes_searched(trial_, problem_);
    if (has_sizes && !is_pipeline_) {
      search_static_sizes();
      search_powers();
    }
    if (is_kept() && !is_pipeline_ && problem_.options().sync == Sync::step && is_far()) {
      search_whole_prompts();
    }
    // Nothing takes much longer than that.
    left_ = worth(2 * least_possible());
    if (left_ < cost_of(problem_)) return std::move(best_);
    left_ = worth(static_cast<double>(least().time));
    if (has_sizes && is_pipeline_) search_static_sizes();
    if (is_far()) search_others();
    return std::move(best_);
  }

 private:
  // Slots that break a rule are the worse for it, and then for their time.
  struct Score {
    bool is_short = false;  // has placeholders where there may be none
    std::int64_t excess = 0;
    Nanoseconds time = 0;

    auto operator<=>(const Score&) const = default;
    [[nodiscard]] bool is_valid() const { return !is_short && excess == 0; }
  };

  Score score(const DraftSlots& slots) {
    return {.is_short = must_be_full(problem_.options()) && has_placeholder(slots),
            .excess = excess_with(problem_, slots, trial_),
            .time = predicted_time(problem_, slots)};
  }

  const Score& least() {
    if (!least_) least_ = score(best_);
    return *least_;
  }

  void consider(DraftSlots slots) {
    const Score found = score(slots);
    if (found >= least()) return;
    least_ = found;
    best_ = std::move(slots);
  }

  // Nothing that the bound allows is faster than what there is.
  bool is_beaten(Nanoseconds bound) {
    return least().is_valid() && least().time <= pass_bound(problem_, bound);
  }

  // What may be lost is worth looking for.
  bool is_far() { return !is_beaten(bound_ + bound_ / 32); }

  // What the search finds of another question, of which a bound is known, or 0.
  DraftSlots rough_answer(const Problem& question, std::int64_t effort, Nanoseconds bound) const {
    StepPlan same = trial_;
    same.options = question.options();
    same.topology = question.topology();
    return search_(same, question, Answer::rough, effort, bound);
  }

  // All that the question gets when it is asked for; with stages what the purse has left for it.
  DraftSlots whole_answer(const Problem& question) const {
    const auto alone = is_pipeline_ ? nullptr : asked_alone(question);
    const Problem& asked = alone ? *alone : question;
    StepPlan same = trial_;
    same.options = asked.options();
    const std::int64_t effort = same.options.effort ? effort_ : default_effort(asked);
    Nanoseconds bound = 0;
    DraftSlots slots = search_(same, asked, Answer::whole, effort, bound);
    return second_look(same, asked, std::move(slots), bound, effort, search_);
  }

  // Annealing, and packing slots, take as long as they may. Grids of pipelines have taken most of
  // their time by then.
  bool has_grids() const { return is_pipeline_ && !is_annealed(problem_); }

  // What looks at a step of that time are worth: in pipelines about a hundredth of it, by what may
  // be lost; elsewhere less, since there answers are closer to their bounds. Of what is lost more
  // than usual a quarter for few items, and little for grids.
  double worth(double time) const {
    constexpr std::int32_t few_items = 128;  // they take no time
    const bool is_short = is_time(bound_) && !trial_.options.effort;
    const bool is_limited =
        is_short || has_grids() || (!is_pipeline_ && problem_.num_items() > few_items);
    if (!is_limited) return std::numeric_limits<double>::infinity();
    const double lost = time / least_possible() - 1;
    const double usually_lost = is_kept() ? 0.08 : 0.06;  // whole prompts are seldom nearer
    const double share = problem_.is_aligned() ? 1
                         : is_pipeline_        ? 0.3
                                               : 0.25;  // aligned groups have had theirs
    const double part = has_grids()             ? 0.008 * std::min(1.0, lost / usually_lost)
                        : is_pipeline_          ? 0.01 * std::min(2.0, lost / usually_lost)
                        : is_annealed(problem_) ? 0.002
                        : is_free(problem_)     ? 0.005
                                                : 0.003;
    const bool are_few =
        has_few_items(problem_) && (problem_.is_aligned() || is_annealed(problem_));
    // The bound of unequal stages is further off.
    const bool is_uneven = !trial_.topology.pipeline.shares.empty();
    const double beyond = time - (is_uneven ? 1.3 : 1.2) * least_possible();
    const double part_beyond = are_few ? 0.25 : has_grids() ? 0.04 : 0;
    const double unusual = part_beyond * beyond;
    return std::max(share * part * time_of_looks(time), unusual);
  }
  // Grids are made in haste where a step is short.
  double time_of_looks(double time) const {
    return has_grids() ? time : static_cast<double>(time_to_plan(static_cast<Nanoseconds>(time)));
  }
  // What a look at a question takes about, in nanoseconds.
  double cost_of(const Problem& question) const {
    const double num_items = problem_.num_items();
    // Short steps are looked at in haste.
    if (has_grids()) {
      return std::min(2e6 + 20e3 * num_items, 1e5 + 3e3 * num_items + 0.006 * least_possible());
    }
    if (is_pipeline_) return 1e5 + 30e3 * num_items;
    if (!is_free(question) && (has_few_items(question) || !is_kept())) {
      return time_of_equal_counts(question);
    }
    // Few items are annealed for parts of the step (polish.cpp, nested_anneal.cpp).
    const double annealed =
        is_annealed(question) && is_time(bound_) ? time_of_looks(least_possible()) / 200 : 0;
    return time_of_free_counts() + annealed;
  }
  double time_of_free_counts() const {
    return 1e5 + (is_kept() ? 6e3 : 3e3) * problem_.num_items();
  }
  static bool is_free(const Problem& question) {
    return question.options().sync == Sync::step && question.options().counts == Counts::free;
  }
  // What the cheapest of the other questions takes about.
  double cost_of_others() const {
    if (is_pipeline_) return cost_of(problem_);
    if (is_kept()) return std::min(cost_of(problem_), time_of_free_counts());
    return std::min(cost_of(problem_), time_of_equal_counts(problem_));
  }
  bool is_kept() const { return problem_.options().keep_groups == KeepGroups::rank; }
  double least_possible() const {
    return static_cast<double>(std::max<Nanoseconds>(1, pass_bound(problem_, bound_)));
  }
  // Takes a look at the question off what is left, if it is enough.
  bool can_afford(const Problem& question) {
    const double cost = cost_of(question);
    if (cost > left_ || !can_pay(cost)) return false;
    left_ -= cost;
    return true;
  }
  // From the purse of the plan; beyond that half of what is lost more than usual.
  bool can_pay(double cost) {
    if (problem_.purse()->pays(cost)) return true;
    // Grids of single sequences take long to look at, and seldom save that much.
    const double usual = has_grids() && !is_kept() ? 1.22 : 1.2;
    const double lost = static_cast<double>(least().time) - usual * least_possible();
    if (paid_beyond_ + cost > lost / 2) return false;
    paid_beyond_ += cost;
    return true;
  }

  void search_static_sizes() {
    const bool is_synced = problem_.options().sync == Sync::microbatch;
    const Nanoseconds time = is_pipeline_ ? 0
                             : is_synced  ? slots_time(problem_, best_)
                                          : step_time(problem_, best_);
    const auto is_near = [&](Nanoseconds bound) { return time <= bound + (bound >> 13); };
    const bool is_free = !is_pipeline_ && problem_.options().max_activation_bytes == 0;
    const LeastAreas areas(problem_);
    for (const std::int32_t size : problem_.sizes()) {
      if (!holds_all(problem_, size)) continue;
      // The search has been there: cells alone are where it begins. Annealing goes its own way, and
      // so does a search that is far from its bound.
      const bool is_searched = is_free && !is_annealed(problem_) &&
                               size == problem_.sizes().front() && has_one_size(best_, size);
      if (is_searched && is_near(bound_)) continue;
      if (is_free && areas.exceed(size, time)) continue;
      const auto fixed = with_static_size(problem_, size);
      if (fixed == nullptr || (is_pipeline_ && !can_afford(*fixed))) continue;
      const Nanoseconds bound =
          is_pipeline_ ? pipeline_bound(*fixed, rank_room_of(*fixed)) : bound_of_size(*fixed, time);
      if (is_beaten(bound) || (is_searched && is_near(bound))) continue;
      consider(whole_answer(*fixed));
    }
  }

  // Sizes that do not nest leave ranks idle beside each other, which those that do may not.
  void search_powers() {
    if (is_beaten(bound_ + bound_ / 256)) return;
    const auto powers = find_powers(problem_);
    if (powers == nullptr || is_beaten(bound_of_size(*powers, least().time))) return;
    consider(whole_answer(*powers));
  }

  void search_whole_prompts() {
    const auto question = find_whole_prompts(problem_);
    if (!question) return;
    // Few items, which are planned in about as much of the step as all of it may be.
    const double cost = 1e5 + 15e3 * question->problem->num_items() + least_possible() / 100;
    const double lost = static_cast<double>(least().time) - least_possible();
    constexpr double part_gained = 0.25;
    if (cost > part_gained * lost) return;
    consider(question->answer(problem_, whole_answer(*question->problem)));
  }

  // That of a narrower question. Bundles that leave holes are found out sooner than a step is,
  // as far as `time`, which a step takes.
  static Nanoseconds bound_of_size(const Problem& fixed, Nanoseconds time) {
    const PlanOptions& options = fixed.options();
    Nanoseconds low = step_bound(fixed, time);
    if (low >= time) return low;
    if (options.counts == Counts::equal) low = std::max(low, equal_count_bound(fixed));
    if (options.sync == Sync::microbatch && low < time) low = std::max(low, slot_bound(fixed));
    if (options.keep_groups != KeepGroups::rank || low >= time) return low;
    const Nanoseconds in_blocks = block_bound(fixed, low);
    if (in_blocks >= time || !has_nested_bundles(fixed)) return in_blocks;
    return bundle_bound(fixed, in_blocks, time);
  }

  // Of another question, in little time.
  Nanoseconds bound_of(const Problem& question) const {
    return is_pipeline_ ? side_by_side_bound(question) : step_bound(question);
  }

  // The effort of slots that are worth more than a rough look, taken off what is left, or 0.
  std::int64_t thorough(const NarrowerQuestion& question) {
    constexpr double for_an_item = 25e3;
    const double cost = for_an_item * problem_.num_items();
    const bool has_slots = question.problem->options().sync == Sync::microbatch && !is_pipeline_;
    const std::int64_t work = thorough_work(*question.problem);
    if (!has_slots || work > effort_ || cost > left_) return 0;
    left_ -= cost;
    return work;
  }

  // Whether the whole effort, of about ten nanoseconds a unit, is nothing beside the step.
  bool is_worth_all() const {
    constexpr double nothing = 1.0 / 400;
    return !is_pipeline_ && 10 * static_cast<double>(effort_) < nothing * least_possible();
  }

  // A rough answer tells: more effort seldom makes up for what the question leaves out.
  void search_others() {
    constexpr std::int64_t to_begin = 2000;  // less than that saves little
    if (left_ < cost_of_others()) return;
    for (const NarrowerQuestion& question : narrower_questions(problem_)) {
      if (!can_afford(*question.problem)) continue;
      const bool is_bound_known = question.problem->options().sync != problem_.options().sync;
      if (!is_bound_known && is_beaten(bound_of(*question.problem))) continue;
      // In pipelines whole bundles are few, and take as long to look at as all they hold.
      const std::int64_t of_items = effort_ * question.problem->num_items() / problem_.num_items();
      const std::int64_t part = is_worth_all()           ? effort_
                                : has_grids()            ? of_items / 4
                                : question.parts.empty() ? effort_ / 8
                                                         : effort_ / 4;
      const std::int64_t rough = std::max({part, std::min(effort_, to_begin), thorough(question)});
      // What answers that question answers this one, in the same time unless ranks are slow here.
      const bool is_known = question.problem->has_speeds() == problem_.has_speeds();
      consider(
          question.answer(problem_, rough_answer(*question.problem, rough, is_known ? bound_ : 0)));
    }
  }

  const Problem& problem_;
  StepPlan trial_;
  Nanoseconds bound_;
  std::int64_t effort_;
  const SlotsOf& search_;
  bool is_pipeline_;
  DraftSlots best_;
  double left_ = 0;                  // nanoseconds for looks
  double paid_beyond_ = 0;           // the purse
  std::optional<Score> least_ = {};  // of the best, once asked for
};

}  // namespace

DraftSlots second_look(const StepPlan& plan, const Problem& problem, DraftSlots slots,
                       Nanoseconds bound, std::int64_t effort, const SlotsOf& search) {
  return SecondLook(plan, problem, std::move(slots), bound, effort, search).run();
}

}  // namespace isochron
