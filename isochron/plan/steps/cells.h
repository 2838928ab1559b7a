#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "isochron/core/random.h"
#include "isochron/plan/problem.h"
#include "isochron/plan/steps/cell_bins.h"

namespace isochron {

// One of the smallest groups, with what runs on it alone.
struct Cell {
  RankRange ranks;
  PriceId price = 0;
  double slowness = 1;
  Nanoseconds fixed = 0;  // of a micro-batch
  Nanoseconds base = 0;   // end of what runs here in larger groups
  Nanoseconds load = 0;   // base and all that follows
  Tokens tokens = 0;
  std::int32_t num_slots = 0;
  std::int32_t min_slots = 0;          // that it pays for, whatever it runs
  std::vector<BundleId> bundles = {};  // dearest first
};

// The last and finest stage of a step: bundles that run on single cells, on top of what the wider
// groups left. All cells are of one size that a group may have.
class Cells {
 public:
  Cells(const Problem& problem, std::int32_t size);

  [[nodiscard]] std::int32_t size() const { return size_; }
  [[nodiscard]] std::span<Cell> cells() { return cells_; }
  [[nodiscard]] std::span<const Cell> cells() const { return cells_; }

  // All that the cells hold, to come back to.
  [[nodiscard]] const std::vector<Cell>& saved() const { return cells_; }
  void restore(const std::vector<Cell>& saved) { cells_ = saved; }

  // Empties the cells; `height` is when each rank is free, `min_slots` how many micro-batches it
  // pays for at least (empty: none). More than that are avoided: then all ranks would have more.
  void reset(std::span<const Nanoseconds> height, std::span<const std::int32_t> min_slots = {});

  // Longest first: each bundle, in the order given, to the cell that is done earliest.
  void add(std::span<const BundleId> dearest_first);

  // Exchanges bundles between the last cell to finish and the others until it finishes at `target`
  // or hardly after the mean, nothing helps or `work` is used up; what was used is taken off.
  void refine(Nanoseconds target, std::int64_t& work);

  // Moves bundles at random and refines, again and again, as long as refine() would go on; nothing
  // that ends later is kept.
  void shake(Nanoseconds target, Random& random, std::int64_t& work);

  [[nodiscard]] Nanoseconds max_load() const;
  [[nodiscard]] Nanoseconds mean_load() const;

  // The items of a cell in its micro-batches.
  [[nodiscard]] std::vector<std::vector<ItemId>> pack(const Cell& cell) const;

 private:
  // Up to two bundles of a cell.
  struct Subset {
    Nanoseconds time = 0;
    Tokens tokens = 0;
    std::int32_t places[2] = {-1, -1};
  };

  struct Exchange {
    Subset give = {};                                           // of the dear cell
    Subset take = {};                                           // of the cheap one
    Nanoseconds end = std::numeric_limits<Nanoseconds>::max();  // of the later one
    bool is_found = false;
  };

  // When the last cell is early enough for a target.
  [[nodiscard]] Nanoseconds goal(Nanoseconds target) const;
  // What so many micro-batches count, without what is in them.
  [[nodiscard]] Nanoseconds slots_time(const Cell& cell, std::int32_t slots) const;
  [[nodiscard]] Nanoseconds time_on(const Cell& cell, BundleId bundle) const;
  [[nodiscard]] Tokens tokens_of(BundleId bundle) const {
    return tokens_[static_cast<std::size_t>(bundle)];
  }
  // How many micro-batches these bundles take.
  [[nodiscard]] std::int32_t count_slots(std::span<const BundleId> bundles, Tokens tokens,
                                         std::int64_t& work);
  void put(Cell& cell, BundleId bundle);
  void find_subsets(const Cell& cell, std::int32_t depth, bool with_none,
                    std::vector<Subset>& subsets) const;
  // Calls visit(give, take, load of the dear cell, of the cheap one) for exchanges that make both
  // ends meet, or nearly; the loads without a change in the number of micro-batches.
  template <class Visit>
  void visit_exchanges(const Cell& dear, const Cell& cheap, Visit visit) const;
  // The best of them that ends before `limit`.
  [[nodiscard]] Exchange find_exchange(const Cell& dear, const Cell& cheap, std::int32_t depth,
                                       Nanoseconds limit, std::int64_t& work);
  // `load` with as many micro-batches as the tokens ask for, and as packing takes.
  [[nodiscard]] Nanoseconds least_load(const Cell& cell, Nanoseconds load, Tokens tokens) const;
  [[nodiscard]] Nanoseconds packed_load(const Cell& cell, Nanoseconds load, const Subset& out,
                                        const Cell& other, const Subset& in, std::int64_t& work);
  // The bundles of a cell after an exchange.
  void exchange(const Cell& cell, const Subset& out, const Cell& other, const Subset& in,
                std::vector<BundleId>& result) const;
  void replace(Cell& cell, std::span<const BundleId> bundles, std::int64_t& work);

  const Problem& problem_;
  std::int32_t size_;
  Tokens capacity_;  // of a micro-batch on a cell
  bool is_uniform_;  // all cells cost the same
  bool has_items_;   // some bundle has several items
  bool has_min_slots_ = false;
  std::vector<Nanoseconds> times_;  // of bundles, on the first cell
  std::vector<Tokens> tokens_;      // of bundles
  std::vector<Cell> cells_;
  std::vector<Subset> gives_;  // of the dear cell, while exchanges are looked for
  std::vector<Subset> takes_;
  std::vector<BundleId> trial_;  // the bundles of a cell after an exchange
  std::vector<BundleId> other_trial_;
  CellBins bins_;
  std::vector<Tokens> item_tokens_;  // of what is packed
  std::vector<std::int32_t> item_sequences_;
};

}  // namespace isochron
