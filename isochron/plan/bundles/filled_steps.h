#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "isochron/plan/bundles/bundle_sets.h"
#include "isochron/plan/bundles/bundle_table.h"
#include "isochron/plan/bundles/wide_places.h"

namespace isochron {

// A step by blocks of a level: some bundles stand on wider groups, every block runs a set of the
// others.
struct BlockStep {
  WidePlaces wide;
  std::vector<BundleSet> blocks;
  Nanoseconds time = 0;
};

// Looks for shorter steps whose blocks are filled one after the other (full_blocks.h), down to
// `bound`. What it learns about bundles that are hard to place serves all steps.
class FilledSteps {
 public:
  FilledSteps(const BundleTable& table, std::int32_t num_ranks, std::int32_t level,
              BlockPacker& packer, Nanoseconds bound);

  // Keeps what stands on wider groups. `work` is what full_blocks() may look at.
  void refill(BlockStep& step, std::int64_t& work);
  // Bundles that blocks run get wider groups too, one more at a time, as long as that helps: these
  // leave a part of several blocks, each as large as a bundle that nothing else fits beside.
  void widen(BlockStep& step, std::int64_t& work);

 private:
  bool fill_within(BlockStep& step, Nanoseconds time, std::span<double> weights,
                   std::int64_t& work);
  void halve(BlockStep& step, std::int64_t& work);
  void learn(BlockStep& step, std::int64_t& work);
  [[nodiscard]] Nanoseconds least_time(const BlockStep& step) const;

  const BundleTable& table_;
  std::int32_t num_ranks_;
  std::int32_t level_;
  BlockPacker& packer_;
  Nanoseconds bound_;
  Nanoseconds near_;             // a step is worth looking for if it is shorter by so much
  std::vector<double> weights_;  // of each bundle
};

}  // namespace isochron
