#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "isochron/plan/bundles/bundle_sets.h"
#include "isochron/plan/bundles/bundle_table.h"
#include "isochron/plan/bundles/wide_fill.h"

namespace isochron {

// Sets of at most 64 bundles that a block of a level runs, where there are too many to list: those
// that are worth much at given prices.
class DearSets {
 public:
  // Sets that take at most `latest`.
  DearSets(const BundleTable& table, std::int32_t level, Nanoseconds latest);

  // For each bundle that a block runs it alone, and filled with the largest that fit: of all, and
  // of those that are smaller than it.
  [[nodiscard]] std::vector<BundleSet> first_sets();

  // Sets that a block runs within `time`, no more than `latest`, that are worth at least `limit`
  // together with what `wide` has for the time they leave: for every bundle the dearest of those in
  // which it has the highest price by area. Nothing if that takes more than `work` looks, or sets
  // larger than a BundleSet. No price is below 0, and `wide` knows the same.
  [[nodiscard]] std::optional<std::vector<BundleSet>> find(std::span<const double> prices,
                                                           const WideFill& wide, Nanoseconds time,
                                                           double limit, std::int64_t& work);

 private:
  struct Priced {
    double rate = 0;  // price by area
    double area = 0;
    double price = 0;
    BundleId bundle = 0;
  };
  using Mask = std::uint64_t;  // of bundles
  bool extend(std::size_t i, double area, double worth, Mask late);
  bool consider(double area, double worth);
  Nanoseconds time_of_set();

  const BundleTable& table_;
  std::int32_t level_;
  Nanoseconds latest_;
  BlockPacker packer_;
  Nanoseconds fixed_ = 0;                        // of a micro-batch, at least
  std::vector<double> areas_;                    // of each bundle at least
  std::vector<Mask> no_less_;                    // of each, those that take no less of any size
  std::unordered_map<Mask, Nanoseconds> times_;  // of sets that were packed; negative: too long

  // Of the call at hand.
  const WideFill* wide_ = nullptr;
  std::vector<Priced> by_rate_;  // the highest first
  double wide_rate_ = 0;         // of wide groups by area, at most
  Nanoseconds time_ = 0;
  double room_ = 0;
  double limit_ = 0;  // rises to the worth of what was found
  bool is_complete_ = true;
  std::int64_t work_ = 0;
  BundleSet set_;
  Mask members_ = 0;
  BundleSet best_;  // of those that begin with the same bundle
};

}  // namespace isochron
