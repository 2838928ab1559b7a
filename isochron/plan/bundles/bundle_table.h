#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "isochron/plan/draft.h"
#include "isochron/plan/problem.h"

namespace isochron {

// Whether groups nest, cost the same wherever a size stands, and bundles have several items.
[[nodiscard]] bool has_nested_bundles(const Problem& problem);

// Whether a step is short for its ranks: what seldom pays would take more than a hundredth of it.
[[nodiscard]] bool is_short_step(const Problem& problem, Nanoseconds bound);

// What a set of bundles takes of a block of ranks.
struct BlockUse {
  Nanoseconds cost = 0;  // without micro-batches
  Tokens tokens = 0;     // padded
  std::int64_t sequences = 0;
};

// Bundles as units: what each takes of a block of every size, added up once. Levels are the sizes,
// ascending, of which groups cost the same wherever they stand.
class BundleTable {
 public:
  BundleTable(const Problem& problem, std::span<const std::int32_t> sizes);
  // Of all sizes. Needs has_nested_bundles().
  explicit BundleTable(const Problem& problem) : BundleTable(problem, problem.sizes()) {}

  [[nodiscard]] std::int32_t num_levels() const {
    return static_cast<std::int32_t>(levels_.size());
  }
  [[nodiscard]] std::int32_t num_bundles() const { return num_bundles_; }
  [[nodiscard]] std::int32_t size(std::int32_t level) const { return at(level).size; }
  [[nodiscard]] Nanoseconds fixed(std::int32_t level) const { return at(level).fixed; }
  [[nodiscard]] bool fits(std::int32_t level, BundleId bundle) const {
    return at(level).fits[static_cast<std::size_t>(bundle)];
  }
  [[nodiscard]] const BlockUse& use(std::int32_t level, BundleId bundle) const {
    return at(level).uses[static_cast<std::size_t>(bundle)];
  }
  [[nodiscard]] Tokens capacity() const { return at(0).capacity / at(0).size; }  // of a rank
  // With as many micro-batches as the tokens fill, which no packing goes below.
  [[nodiscard]] Nanoseconds time(std::int32_t level, const BlockUse& use) const {
    const Level& here = at(level);
    // Divisions take long, and one micro-batch is most common.
    std::int64_t groups = use.tokens > 0 ? 1 : 0;
    if (use.tokens > here.capacity) groups = (use.tokens + here.capacity - 1) / here.capacity;
    if (max_sequences_ > 0) {
      groups = std::max(groups, (use.sequences + max_sequences_ - 1) / max_sequences_);
    }
    return use.cost + groups * here.fixed;
  }
  [[nodiscard]] Nanoseconds time(std::int32_t level, BundleId bundle) const {
    return time(level, use(level, bundle));
  }

 private:
  struct Level {
    std::int32_t size = 1;
    Nanoseconds fixed = 0;  // of a micro-batch
    Tokens capacity = 0;
    std::vector<BlockUse> uses = {};  // of each bundle
    std::vector<bool> fits = {};
  };
  [[nodiscard]] const Level& at(std::int32_t level) const {
    return levels_[static_cast<std::size_t>(level)];
  }

  std::int32_t num_bundles_ = 0;
  std::int64_t max_sequences_ = 0;
  std::vector<Level> levels_;
};

// The step in which every bundle stands on its ranks of these, widest groups first, its items
// packed by first fit.
[[nodiscard]] Draft bundle_draft(const Problem& problem, const std::vector<RankRange>& places);

}  // namespace isochron
