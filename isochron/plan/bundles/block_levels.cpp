#include "isochron/plan/bundles/block_levels.h"

#include "isochron/plan/bundles/bundle_sets.h"

namespace isochron {

bool is_cheap(const BundleTable& table, std::int32_t level, double little) {
  double area = 0;
  double below = 0;
  for (BundleId bundle = 0; bundle < table.num_bundles(); ++bundle) {
    if (!table.fits(level, bundle) || !table.fits(level - 1, bundle)) continue;
    area += static_cast<double>(table.time(level, bundle)) * table.size(level);
    below += static_cast<double>(table.time(level - 1, bundle)) * table.size(level - 1);
  }
  return area < little * below;
}

bool fills_one_microbatch(const BundleTable& table, std::int32_t num_ranks) {
  constexpr std::int64_t num_parts = 4;  // of the share, and one more
  BlockUse all;
  for (BundleId bundle = 0; bundle < table.num_bundles(); ++bundle) {
    if (!table.fits(0, bundle)) continue;
    all.tokens += table.use(0, bundle).tokens;
    all.sequences += table.use(0, bundle).sequences;
  }
  const std::int64_t parts = num_parts * (num_ranks / table.size(0));
  all.tokens = all.tokens * (num_parts + 1) / parts;
  all.sequences = all.sequences * (num_parts + 1) / parts;
  return table.time(0, all) <= table.fixed(0);
}

std::int32_t level_of_blocks(const BundleTable& table, std::int32_t num_ranks) {
  const double a_rank = static_cast<double>(table.num_bundles()) / num_ranks;
  std::int32_t best = -1;
  for (std::int32_t level = 0; level < table.num_levels(); ++level) {
    const double a_block = a_rank * table.size(level);
    const bool is_many = level > 0 ? a_block >= 1.5 : a_block > 2;
    if (!is_many || a_block > 4 || !has_halves(table, level)) continue;
    if (best >= 0 && !is_cheap(table, level, 1.12)) break;
    best = level;
  }
  return best;
}

}  // namespace isochron
