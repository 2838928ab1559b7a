#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "isochron/core/ids.h"
#include "isochron/core/lists.h"
#include "isochron/core/units.h"
#include "isochron/cost/cost_model.h"
#include "isochron/plan/exchange_order.h"
#include "isochron/plan/purse.h"
#include "isochron/step/plan_options.h"
#include "isochron/step/topology.h"

// The question of plan_step() in the terms of its searches.

namespace isochron {

// Sequences that share a micro-batch (an item), and items that share a set of ranks (a bundle).
// What keeps nothing together has one sequence in an item and one item in a bundle.
using ItemId = std::int32_t;
using BundleId = std::int32_t;

// Groups of one size that use the same exchange over the same link: all that their cost depends on,
// but for slow ranks.
struct Price {
  std::int32_t size = 1;
  std::int32_t exchange = 0;  // of the cost model
  RankRange example;          // a group of this price
  ContextLink link;           // of its exchange, if it has several ranks
  Nanoseconds fixed = 0;      // of a micro-batch: microbatch_ns and latency
};
using PriceId = std::int32_t;

// What the policies left to plan: the sequences that run, and how they stay together.
struct Work {
  std::vector<Tokens> lengths;           // of all sequences, padding rows included
  std::vector<Nanoseconds> extra_costs;  // empty: none
  Lists<SequenceId> items;
  Lists<ItemId> bundles;
};

class Problem {
 public:
  // `options` are resolved. Questions on the way to the same plan share the purse. Throws
  // std::invalid_argument if the costs add up to more than 2^62.
  Problem(Work work, const Topology& topology, const CostModel& cost, const PlanOptions& options,
          std::shared_ptr<Purse> purse = std::make_shared<Purse>());
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  [[nodiscard]] const Topology& topology() const { return topology_; }
  [[nodiscard]] const PlanOptions& options() const { return options_; }
  [[nodiscard]] const CostModel& model() const { return cost_; }
  [[nodiscard]] const Work& work() const { return work_; }
  [[nodiscard]] const std::shared_ptr<Purse>& purse() const { return purse_; }
  [[nodiscard]] std::int32_t num_ranks() const { return topology_.ranks; }
  [[nodiscard]] Tokens capacity() const { return topology_.capacity; }
  [[nodiscard]] Nanoseconds microbatch() const { return microbatch_; }
  [[nodiscard]] std::int32_t num_bundles() const {
    return static_cast<std::int32_t>(work_.bundles.size());
  }
  [[nodiscard]] std::int32_t num_items() const {
    return static_cast<std::int32_t>(work_.items.size());
  }
  [[nodiscard]] std::span<const ItemId> items_of(BundleId bundle) const {
    return work_.bundles[static_cast<std::size_t>(bundle)];
  }
  [[nodiscard]] std::span<const SequenceId> sequences_of(ItemId item) const {
    return work_.items[static_cast<std::size_t>(item)];
  }
  [[nodiscard]] bool is_alone(ItemId item) const {
    return !is_alone_.empty() && is_alone_[static_cast<std::size_t>(item)];
  }

  // The item exceeds every size: it runs alone on `size` ranks, which others may not have.
  void set_alone(ItemId item, std::int32_t size);
  [[nodiscard]] std::int32_t alone_size() const { return alone_size_; }

  // Sizes that a group may have, ascending, and where groups of a size may start.
  [[nodiscard]] std::span<const std::int32_t> sizes() const { return sizes_; }
  [[nodiscard]] std::int32_t first_step(std::int32_t size) const { return is_aligned_ ? size : 1; }
  [[nodiscard]] bool is_aligned() const { return is_aligned_; }

  // The price of a group, or -1 if no exchange admits it. Several exchanges: the one that is
  // cheapest for a full micro-batch.
  [[nodiscard]] PriceId price_of(RankRange ranks) const;
  [[nodiscard]] const Price& price(PriceId id) const {
    return prices_[static_cast<std::size_t>(id)];
  }
  // The cheapest price of a size, wherever a group of it may stand; -1 if there is none.
  [[nodiscard]] PriceId cheapest_price(std::int32_t size) const {
    return cheapest_[static_cast<std::size_t>(size)];
  }

  // Whether groups of every size are admissible wherever they may start.
  [[nodiscard]] bool is_everywhere() const { return is_everywhere_; }

  // What a bundle or an item costs each rank of a group, without the fixed part.
  [[nodiscard]] Nanoseconds cost(PriceId price, BundleId bundle) const {
    const std::vector<Nanoseconds>& known = costs_of_price_[static_cast<std::size_t>(price)];
    const Nanoseconds cost = known.empty() ? -1 : known[static_cast<std::size_t>(bundle)];
    return cost >= 0 ? cost : find_cost(price, bundle);
  }
  [[nodiscard]] Nanoseconds item_cost(PriceId price, ItemId item) const {
    return is_plain_ ? cost(price, item) : find_item_cost(price, item);
  }
  // A micro-batch of these items on a group, by the exchange that is cheapest for it.
  [[nodiscard]] Nanoseconds group_cost(RankRange ranks, std::span<const ItemId> items) const;
  // No group of this size, wherever it stands and however it exchanges, is cheaper. Negative if
  // the size does not admit the bundle.
  [[nodiscard]] Nanoseconds least_cost(std::int32_t size, BundleId bundle) const {
    return is_cheapest_for_all(size) ? cost(cheapest_price(size), bundle)
                                     : least_cost_of(size, items_of(bundle));
  }
  [[nodiscard]] Nanoseconds least_item_cost(std::int32_t size, ItemId item) const;
  [[nodiscard]] Nanoseconds least_fixed(std::int32_t size) const {
    const Nanoseconds known = least_fixed_of_size_[static_cast<std::size_t>(size)];
    return known >= 0 ? known : find_least_fixed(size);
  }
  // What is known of groups, whatever they hold.
  [[nodiscard]] const ExchangeOrder& order() const { return order_; }
  // Whether no larger group has the smaller area.
  [[nodiscard]] bool grows_from(std::int32_t size) const {
    return order_.grows_from[static_cast<std::size_t>(size)];
  }

  // Padded tokens of an item on a group of `size`; an item that stands alone takes all there is.
  [[nodiscard]] Tokens tokens(std::int32_t size, ItemId item) const;
  // No group that holds the bundle pads it to less: where sizes are multiples of each other the
  // smallest, while five ranks may pad to less than four.
  [[nodiscard]] Tokens least_tokens(BundleId bundle) const;
  [[nodiscard]] std::int32_t num_sequences(ItemId item) const {
    if (!lengths_of_items_.empty()) return 1;
    return static_cast<std::int32_t>(sequences_of(item).size());
  }
  // Whether a group of `size` may hold the bundle: each of its items keeps the capacity by itself.
  [[nodiscard]] bool fits(std::int32_t size, BundleId bundle) const {
    return is_plain_ ? item_fits(size, bundle) : do_all_fit(size, bundle);
  }
  [[nodiscard]] bool item_fits(std::int32_t size, ItemId item) const {
    if (is_alone(item)) return size == alone_size_;
    if (lengths_of_items_.empty()) return is_within_limits(size, item);
    return lengths_of_items_[static_cast<std::size_t>(item)] <=
           longest_of_size_[static_cast<std::size_t>(size)];
  }
  // The place in sizes() of the smallest that may hold the bundle; the number of sizes if none may.
  [[nodiscard]] std::size_t smallest_place(BundleId bundle) const {
    const std::int32_t known =
        smallest_places_.empty() ? -1 : smallest_places_[static_cast<std::size_t>(bundle)];
    return known >= 0 ? static_cast<std::size_t>(known) : find_smallest_place(bundle);
  }

  // 1 / speed of the slowest rank of a group; 1 without slow ranks.
  [[nodiscard]] bool has_speeds() const { return !topology_.rank_speed.empty(); }
  [[nodiscard]] double slowness(RankRange ranks) const;
  // Of all ranks: how many of speed 1 do as much.
  [[nodiscard]] double total_speed() const;
  // Speed of the fastest group of a size.
  [[nodiscard]] double fastest_speed(std::int32_t size) const {
    return has_speeds() ? fastest_speed_[static_cast<std::size_t>(size)] : 1;
  }
  // What the fastest rank is faster than that group.
  [[nodiscard]] double least_delay(std::int32_t size) const {
    return has_speeds() ? fastest_speed_[1] / fastest_speed_[static_cast<std::size_t>(size)] : 1;
  }
  // What a group of a size takes of all ranks' speed together, in parts of its own pace, where it
  // takes least. The size, unless faster ranks wait for a slow one.
  [[nodiscard]] double least_span(std::int32_t size) const {
    return has_speeds() ? least_span_[static_cast<std::size_t>(size)] : size;
  }
  // A cost on ranks of that slowness.
  [[nodiscard]] static Nanoseconds slowed(Nanoseconds cost, double slowness);

 private:
  struct Key {
    std::int32_t size = 0;
    std::int32_t links = 0;
    PriceId price = -1;
  };

  void find_paces();
  [[nodiscard]] PriceId find_price(RankRange ranks) const;
  [[nodiscard]] std::int32_t links_of(RankRange ranks) const;
  // Groups of a size, one for all that have the same links. Only where these are not ordered: else
  // the first ranks have the best ones.
  [[nodiscard]] const std::vector<RankRange>& examples(std::int32_t size) const;
  [[nodiscard]] Nanoseconds find_cost(PriceId price, BundleId bundle) const;
  [[nodiscard]] Nanoseconds find_item_cost(PriceId price, ItemId item) const;
  [[nodiscard]] Nanoseconds find_least_fixed(std::int32_t size) const;
  [[nodiscard]] Tokens find_tokens(std::int32_t size, ItemId item) const;
  void find_order();
  [[nodiscard]] std::size_t find_smallest_place(BundleId bundle) const;
  [[nodiscard]] bool do_all_fit(std::int32_t size, BundleId bundle) const;
  [[nodiscard]] bool is_within_limits(std::int32_t size, ItemId item) const;
  Nanoseconds sequence_cost_at(const Price& price, std::size_t sequence) const;
  Nanoseconds least_cost_of(std::int32_t size, std::span<const ItemId> items) const;
  [[nodiscard]] bool is_cheapest_for_all(std::int32_t size) const {
    return size == 1 || (order_.has_one_exchange && order_.has_ordered_links);
  }

  Work work_;
  std::shared_ptr<Purse> purse_;
  Topology topology_;
  CostModel cost_;
  PlanOptions options_;
  Nanoseconds microbatch_ = 0;
  std::vector<bool> is_alone_;  // items over the capacity; empty: none
  std::int32_t alone_size_ = 0;
  std::int32_t max_size_ = 0;  // of all others
  bool is_aligned_ = true;
  Tokens all_tokens_ = 0;
  ExchangeOrder order_;
  bool is_everywhere_ = true;
  std::vector<std::int32_t> sizes_;
  bool are_multiples_ = true;          // each size of the one before it
  std::vector<PriceId> cheapest_;      // of each size
  std::vector<double> fastest_speed_;  // of each size, with slow ranks
  std::vector<double> least_span_;
  std::vector<std::vector<double>> slowest_speeds_;  // of 1, 2, 4, .. ranks from each on
  std::vector<Tokens> lengths_of_items_;             // if every item is one sequence
  std::vector<Tokens> longest_of_size_;  // sequence that groups of each size may hold, in that case
  std::vector<Tokens> tokens_of_one_;    // padded tokens of each item on one rank
  bool is_plain_ = true;                 // every bundle is one item
  mutable std::vector<Nanoseconds> least_fixed_of_size_;  // -1: not known
  mutable std::vector<std::int32_t> smallest_places_;     // of bundles, -1: not known
  // Padded, of items of several sequences, by size; empty or -1: not known.
  mutable std::vector<std::vector<Tokens>> tokens_of_size_;
  // Of bundles of several items, by size: 1 fits, 0 does not, -1 not known.
  mutable std::vector<std::vector<std::int8_t>> fits_of_size_;
  mutable std::vector<Price> prices_;
  // By size and first rank, of up to max_tabled_ranks; -2: not known.
  static constexpr std::int32_t max_tabled_ranks = 512;
  mutable std::vector<std::vector<PriceId>> price_at_;
  mutable std::vector<std::vector<Key>> keys_of_size_;            // by size
  mutable std::vector<std::vector<RankRange>> examples_;          // by size, empty: not known
  mutable std::vector<std::vector<Nanoseconds>> costs_of_price_;  // by bundle; then item
};

}  // namespace isochron
