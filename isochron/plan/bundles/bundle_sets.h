#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "isochron/plan/bundles/bundle_table.h"

namespace isochron {

// A few bundles that one block of ranks runs, in groups of its size and smaller ones.
struct BundleSet {
  static constexpr std::size_t max_count = 8;
  static constexpr std::size_t few = 6;  // as many as are combined in all ways
  std::array<BundleId, max_count> bundles = {};
  std::size_t count = 0;
  Nanoseconds time = 0;  // at the best places within the block: no packing of items is shorter

  [[nodiscard]] std::span<const BundleId> ids() const { return {bundles.data(), count}; }
};

// A block of a level, counted within a wider one.
struct BundlePlace {
  std::int32_t level = 0;
  std::int32_t block = 0;
};

// Finds the best places of a few bundles within one block, by dynamic programming over subsets:
// some run on all of it, the others in either half. Needs sizes that double up to its level.
class BlockPacker {
 public:
  // A rank may run groups of several sizes one after the other, or those of one size only: the
  // same groups then stand side by side in every slot.
  enum class Ranks { change_groups, keep_groups };

  BlockPacker(const BundleTable& table, std::int32_t level, Ranks ranks = Ranks::change_groups);

  static constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max() / 4;

  // Negative if some bundle fits no size, or all places take longer than `limit`.
  [[nodiscard]] Nanoseconds time(std::span<const BundleId> bundles, Nanoseconds limit = never - 1);
  // Of each of the bundles that time() was asked for last, unless it was negative.
  [[nodiscard]] std::vector<BundlePlace> places() const;

 private:
  using Mask = std::uint32_t;
  static constexpr std::size_t num_subsets = std::size_t{1} << BundleSet::max_count;
  using Times = std::array<Nanoseconds, num_subsets>;  // by subset
  // What a block of a level takes within the limit, of bundles that it can run.
  struct Level {
    Mask whole = 0;   // on all of it
    Mask inside = 0;  // in its halves
    Times own;        // all on the whole block
    Times split;      // all in its halves
    Times time;       // at the best places
  };
  struct Choice {
    Mask own = 0;   // on the whole block
    Mask left = 0;  // in its first half
  };
  // The subset of a mask that follows another one; none after the last.
  static Mask next(Mask subset, Mask mask) { return (subset - mask) & mask; }
  [[nodiscard]] Choice choice(std::size_t level, Mask set) const;
  void collect(std::int32_t level, Mask set, std::int32_t block,
               std::vector<BundlePlace>& places) const;

  const BundleTable& table_;
  Ranks ranks_;
  std::size_t count_ = 0;
  std::vector<Level> levels_;
  std::array<BlockUse, num_subsets> uses_;  // of subsets on the whole block of a level
};

// Whether BlockPacker serves blocks of this level.
[[nodiscard]] bool has_halves(const BundleTable& table, std::int32_t level);

// What each bundle takes at least of a block of a level that is done within `time`, in ranks times
// time and without micro-batches; infinite if the block cannot run it.
[[nodiscard]] std::vector<double> least_areas(const BundleTable& table, std::int32_t level,
                                              Nanoseconds time);

// Bundles of a larger area are few in a block that is done within `time`.
[[nodiscard]] double small_area(const BundleTable& table, std::int32_t level, Nanoseconds time);

// All sets of bundles above a small area that a block of a level runs within `time`, the shortest
// first; none if there are more than `most`, or some have more than a few.
[[nodiscard]] std::optional<std::vector<BundleSet>> find_bundle_sets(const BundleTable& table,
                                                                     std::int32_t level,
                                                                     Nanoseconds time, double small,
                                                                     std::size_t most);

}  // namespace isochron
