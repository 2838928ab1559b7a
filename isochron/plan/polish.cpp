#include "isochron/plan/polish.h"

#include <algorithm>
#include <utility>

#include "isochron/plan/anneal.h"
#include "isochron/plan/default_effort.h"
#include "isochron/plan/exact.h"
#include "isochron/plan/plan_memory.h"
#include "isochron/plan/plan_slots.h"
#include "isochron/plan/related_problems.h"
#include "isochron/plan/steps/nested_step.h"

namespace isochron {

namespace {

// What a trial takes about, in nanoseconds: it plays so many parts of items, and where counts are
// equal gives every rank that idles something to do, which takes as long if ranks are many.
std::int64_t time_of_trial(const StepPlan& plan, std::int64_t played) {
  const bool is_free = plan.options.counts == Counts::free;
  const std::int64_t for_a_part = plan.topology.pipeline.stages > 1       ? 150
                                  : plan.options.sync == Sync::microbatch ? 110
                                  : is_free                               ? 40
                                                                          : 240;
  constexpr std::int32_t few_ranks = 8;
  const std::int64_t num_idle = is_free ? 0 : std::max(0, plan.topology.ranks - few_ranks);
  const std::int64_t for_idle = 100 * num_idle;
  return 50 + for_a_part * played + for_idle;
}

// The best slots of the same ranks without stages, all equally fast: where micro-batches are dear,
// few of them count, and they are hard to come by one change at a time. Empty if items are more
// than very few.
DraftSlots flat_slots(const Problem& problem) {
  constexpr std::int32_t very_few = 8;
  PlanOptions options = problem.options();
  if (problem.num_items() > very_few || options.keep_groups == KeepGroups::rank) return {};
  Topology topology = problem.topology();
  topology.pipeline = {};
  topology.rank_speed.clear();
  options.sync = Sync::microbatch;
  options.counts = Counts::equal;
  options.max_activation_bytes = 0;
  const auto flat = with_same_work(problem, topology, problem.model(), options);
  auto exact = find_exact_slots(*flat);
  return exact ? std::move(exact->slots) : DraftSlots{};
}

}  // namespace

DraftSlots polished(const StepPlan& plan, const Problem& problem, DraftSlots slots, Answer answer,
                    std::int64_t effort, Nanoseconds bound) {
  if (!is_annealed(problem)) return slots;
  const PlanOptions& options = plan.options;
  const PipelineShape& shape = plan.topology.pipeline;
  const std::int32_t multiple = shape.group;
  StepPlan trial = plan;
  // Slower than all that keeps the rules, the less it breaks them the better.
  const auto penalized = [](std::int64_t excess) {
    return max_total_cost / 2 + std::min(excess, max_total_cost / 4);
  };
  const auto time_of_equal = [&](const DraftSlots& filled) {
    if (options.short_ != Short::empty && has_placeholder(filled)) {
      return penalized(predicted_time(problem, filled));
    }
    const std::int64_t excess = shape.stages == 1 ? 0 : excess_with(problem, filled, trial);
    return excess == 0 ? predicted_time(problem, filled) : penalized(excess);
  };
  const auto time = [&](const Draft& draft) {
    DraftSlots filled = slots_of(problem, draft);
    if (options.counts == Counts::free) return predicted_time(problem, filled);
    equalize(problem, multiple, filled);
    return time_of_equal(filled);
  };
  if (shape.stages > 1) {
    DraftSlots flat = flat_slots(problem);
    if (!flat.empty()) equalize(problem, multiple, flat);
    if (!flat.empty() && time_of_equal(flat) < time_of_equal(slots)) slots = std::move(flat);
  }
  // A trial plays the step once. What nests as well as can be is hardly ever improved, unless
  // groups are too small for all ranks: then they have to cross.
  const bool is_near = options.counts == Counts::free && has_nested_step(problem) &&
                       problem.sizes().back() == problem.num_ranks();
  const std::int64_t played =
      std::int64_t{std::max(problem.num_items(), multiple)} * shape.num_chunks();
  const std::int64_t cost = 1 + (is_near ? played * 16 : played / 4);
  std::int64_t num_trials = effort / cost;
  // The fewer items there are, the more a change costs on the way to a better step.
  const bool are_very_few = problem.num_items() <= 8 && !is_near;
  if (!options.effort && is_time(bound)) {
    const Nanoseconds part = answer == Answer::rough ? 2000 : are_very_few ? 200 : 1000;
    const auto for_a_trial = static_cast<double>(time_of_trial(plan, played));
    // Half of what is left, so that the next question gets something too. Very few need it all.
    const double left = problem.purse()->left();
    const Nanoseconds most = time_to_plan(bound) / part;
    const double share = std::min(static_cast<double>(most), are_very_few ? left : left / 2);
    num_trials = std::min(num_trials, static_cast<std::int64_t>(share / for_a_trial));
    constexpr std::int64_t for_an_item = 16;  // with fewer of them nothing is found
    if (num_trials < for_an_item * problem.num_items()) return slots;
    problem.purse()->take(static_cast<double>(num_trials) * for_a_trial);
  }
  const double heat = are_very_few ? 0.8 / problem.num_items() : 0.02;
  DraftSlots annealed = anneal(problem, slots, bound, heat, num_trials, time);
  if (options.counts == Counts::free) return annealed;
  equalize(problem, multiple, annealed);
  // Annealing knows no placeholders: it begins with what is left of the slots without them.
  return time_of_equal(slots) < time_of_equal(annealed) ? slots : annealed;
}

}  // namespace isochron
