#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "isochron/plan/bundles/bundle_table.h"

namespace isochron {

// A few bundles that one group runs.
struct PricedSet {
  static constexpr std::size_t max_members = 3;

  std::array<BundleId, max_members> bundles = {};
  std::uint8_t count = 0;
  float groups = 1;  // of the smallest size that it takes
  float fluid = 0;   // of its bundles: what they take where they leave no holes
  float worth = 0;   // of them together, in groups of their size

  [[nodiscard]] std::span<const BundleId> members() const { return {bundles.data(), count}; }
  [[nodiscard]] bool is_wide() const { return groups > 1; }
};

// Lists the sets that a group of one size runs within a time, by what they are worth.
class SetList {
 public:
  // A group takes as many groups of the smallest size. A bundle is worth its price in ranks, and no
  // more than its fluid, which is in groups of the smallest size.
  SetList(const BundleTable& table, std::int32_t level, double num_narrow,
          std::span<const BundleId> bundles, std::span<const double> prices,
          std::span<const double> fluid, Nanoseconds time);

  [[nodiscard]] bool has(BundleId bundle) const {
    return spots_[static_cast<std::size_t>(bundle)] < items_.size();
  }

  // A set that is done in time.
  [[nodiscard]] PricedSet set_of(std::span<const BundleId> bundles) const;

  // Adds the sets of which a bundle costs most and that are worth at least so much of a group.
  void add_of_dearest(BundleId bundle, double least, std::vector<PricedSet>& sets) const;
  // Adds all sets with a bundle that are worth at least so much, but less than `most`.
  void add_with(BundleId bundle, double least, double most, std::vector<PricedSet>& sets) const;

 private:
  struct Item {
    double cost = 0;   // in groups of the size
    double worth = 0;  // as well
    BlockUse use;
    float fluid = 0;
    BundleId bundle = 0;
  };
  [[nodiscard]] PricedSet together(std::span<const Item* const> members) const;
  // The items before `end` stand beside the bundle.
  void add(BundleId bundle, std::size_t end, double least, double most,
           std::vector<PricedSet>& sets) const;
  void add_in_time(std::span<const Item* const> members, std::vector<PricedSet>& sets) const;

  const BundleTable& table_;
  std::int32_t level_;
  float num_narrow_;
  Nanoseconds time_;
  std::vector<Item> items_;         // by cost
  std::vector<double> most_worth_;  // of the cheapest so many
  std::vector<std::size_t> spots_;  // of bundles among the items
};

}  // namespace isochron
