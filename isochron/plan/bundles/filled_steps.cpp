#include "isochron/plan/bundles/filled_steps.h"

#include <algorithm>
#include <utility>

#include "isochron/plan/bundles/full_blocks.h"

namespace isochron {

FilledSteps::FilledSteps(const BundleTable& table, std::int32_t num_ranks, std::int32_t level,
                         BlockPacker& packer, Nanoseconds bound)
    : table_(table),
      num_ranks_(num_ranks),
      level_(level),
      packer_(packer),
      bound_(bound),
      near_(std::max<Nanoseconds>(1, bound >> 10)),
      weights_(static_cast<std::size_t>(table.num_bundles()), 1) {}

void FilledSteps::refill(BlockStep& step, std::int64_t& work) {
  halve(step, work);
  learn(step, work);
}

void FilledSteps::widen(BlockStep& step, std::int64_t& work) {
  std::vector<BundleId> widened;
  for (BundleId last = 0; last >= 0 && work > 0;) {
    last = -1;
    widened.push_back(last);
    const WidePlaces before = step.wide;
    for (BundleId bundle = 0; bundle < table_.num_bundles() && work > 0; ++bundle) {
      const Nanoseconds time = step.time - near_;
      if (time < bound_) return;
      if (before.has(bundle)) continue;
      widened.back() = bundle;
      auto wide = find_wide_places(table_, num_ranks_, level_, time, widened);
      if (!wide) continue;
      BlockStep wider{.wide = *std::move(wide), .blocks = {}, .time = step.time};
      if (!fill_within(wider, time, {}, work)) continue;
      halve(wider, work);
      step = std::move(wider);
      last = bundle;
    }
    widened.back() = last;
  }
}

// Whether blocks are filled so that the step ends by then.
bool FilledSteps::fill_within(BlockStep& step, Nanoseconds time, std::span<double> weights,
                              std::int64_t& work) {
  std::vector<BundleId> bundles;
  for (BundleId bundle = 0; bundle < table_.num_bundles(); ++bundle) {
    if (!step.wide.has(bundle)) bundles.push_back(bundle);
  }
  auto full = full_blocks(table_, level_, packer_, step.wide.before, bundles, time, work, weights);
  if (!full) return false;
  step.blocks = *std::move(full);
  step.time = 0;
  for (const BundleSet& block : step.blocks) step.time = std::max(step.time, block.time);
  return true;
}

// By halving what lies between the least and the time of the step.
void FilledSteps::halve(BlockStep& step, std::int64_t& work) {
  Nanoseconds low = least_time(step) - 1;
  while (step.time - low > near_ && work > 0) {
    const Nanoseconds time = low + (step.time - low) / 2;
    if (!fill_within(step, time, {}, work)) low = time;
  }
}

// A little shorter again and again, by what was hard to place before.
void FilledSteps::learn(BlockStep& step, std::int64_t& work) {
  constexpr int max_failures = 40;
  const Nanoseconds least = least_time(step);
  for (int failures = 0; failures < max_failures && work > 0;) {
    const Nanoseconds time = step.time - near_;
    if (time < least) return;
    if (!fill_within(step, time, weights_, work)) ++failures;
  }
}

Nanoseconds FilledSteps::least_time(const BlockStep& step) const {
  return std::max(bound_, *std::max_element(step.wide.before.begin(), step.wide.before.end()));
}

}  // namespace isochron
