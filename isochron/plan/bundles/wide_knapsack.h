#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "isochron/plan/bundles/bundle_table.h"
#include "isochron/plan/bundles/cover_program.h"

namespace isochron {

// Groups wider than a block of one level, in the time that a block has for its part of them. A
// bundle has a price, and the block its share of it. What a content is worth is never too little:
// groups are whole, but times are rounded down, to a thousandth of the latest, and groups of a low
// worth by time are cut once one of them fits.
class WideKnapsack {
 public:
  // Groups that take at most `latest`.
  WideKnapsack(const BundleTable& table, std::int32_t level, Nanoseconds latest);

  // No price is below 0.
  void set_prices(std::span<const double> prices);

  // No content of a time, at most `latest`, is worth more.
  [[nodiscard]] double most_worth(Nanoseconds time) const;
  // What is worth that, as parts of bundles.
  void add_dearest(Nanoseconds time, std::vector<CoverProgram::Part>& content) const;
  // The most of a bundle that a block holds within a time.
  [[nodiscard]] double most_of(BundleId bundle, Nanoseconds time) const;

 private:
  struct Group {
    Nanoseconds time = 0;   // alone
    std::size_t cells = 0;  // what it adds to others
    BundleId bundle = 0;
    double part = 0;
  };
  static constexpr std::size_t num_cells = 1024;
  static constexpr std::size_t row_size = num_cells + 1;
  [[nodiscard]] std::size_t cells_of(Nanoseconds time) const;
  void add_whole(const Group& group, double worth);
  void add_cut();

  Nanoseconds cell_ = 1;   // time
  Nanoseconds fixed_ = 0;  // of a micro-batch, at least
  std::vector<Group> groups_;

  // At the prices at hand.
  std::vector<const Group*> whole_;
  std::vector<double> worth_;            // of whole groups by cells, then of all
  std::vector<double> rows_;             // of so many whole groups, by cells: none, one, ..
  const Group* cut_ = nullptr;           // the best by time of those of a low worth
  double cut_rate_ = 0;                  // its worth by cells
  std::size_t least_cut_ = 0;            // cells of the shortest of them
  std::vector<std::size_t> before_cut_;  // by cells: those of whole groups
};

}  // namespace isochron
