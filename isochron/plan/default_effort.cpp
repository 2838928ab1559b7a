#include "isochron/plan/default_effort.h"

#include <algorithm>

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/least_areas.h"

namespace isochron {

namespace {

// What a step of pipelines takes about, if nothing waits.
double pipeline_time(const Problem& problem) {
  const double share = problem.options().pass == Pass::train ? 1 : problem.model().forward_share;
  return narrow_area(problem) * share / problem.num_ranks() / problem.topology().pipeline.stages;
}

}  // namespace

std::int64_t default_effort(const Problem& problem) {
  const auto count = static_cast<std::int64_t>(problem.num_items());
  // Slots are a matter of packing, which takes more than balance does, the more so where groups of
  // one size leave nothing else to choose. Thousands of sequences are seldom done after their first
  // rounds.
  const std::int64_t effort =
      problem.options().sync == Sync::microbatch
          ? 60'000 + (problem.sizes().size() == 1 ? 100 : 30) * count
          : 30'000 + 40 * count + 60 * std::max<std::int64_t>(0, count - 2048);
  if (problem.topology().pipeline.stages == 1) return effort;
  // About ten nanoseconds a unit.
  constexpr double part_of_step = 0.002;
  constexpr double least = 20'000;
  const double worth = std::max(least, part_of_step * pipeline_time(problem) / 10);
  return static_cast<std::int64_t>(std::min(static_cast<double>(effort), worth));
}

void limit_purse(const Problem& problem, Nanoseconds bound) {
  if (problem.options().effort || !is_time(bound)) return;
  constexpr std::int32_t very_few = 12;
  const bool are_very_few = problem.num_items() <= very_few;
  // Beside what aligned groups had.
  const double of_any_size = are_very_few ? 0.005 : 0.003;
  const double part_of_step = problem.is_aligned() ? 0.007 : of_any_size;
  const double part = part_of_step * static_cast<double>(time_to_plan(pass_bound(problem, bound)));
  // Each of very few items decides: two milliseconds are what it takes to try them all.
  constexpr double to_try_all = 2e6;
  problem.purse()->limit(are_very_few ? std::max(part, to_try_all) : part);
}

bool has_few_items(const Problem& problem) {
  constexpr std::int32_t few = 256;
  return problem.num_items() <= few;
}

double time_of_equal_counts(const Problem& problem) {
  const bool tries_all = has_few_items(problem) || problem.options().max_sequences == 1;
  const double count = problem.num_items();
  const double paces = problem.has_speeds() ? 3 : 1;  // of slow ranks, each with slots of its own
  return paces * (tries_all ? std::min(25e3 * count, 3e5 + 12e3 * count) : 2.5e3 * count);
}

}  // namespace isochron
