#include "isochron/plan/problem.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>
#include <utility>

#include "isochron/core/require.h"
#include "isochron/core/round.h"
#include "isochron/step/step_plan.h"

namespace isochron {

namespace {

bool is_power_of_two(std::int32_t value) { return (value & (value - 1)) == 0; }

std::vector<std::int32_t> sizes_of(const ContextMode& mode, const Topology& topology,
                                   const PlanOptions& options) {
  using Kind = ContextMode::Kind;
  if (mode.kind == Kind::fixed) return {mode.size};
  std::vector<std::int32_t> sizes;
  const std::int32_t last =
      options.max_context_size == 0 ? topology.ranks : options.max_context_size;
  for (std::int32_t size = options.min_context_size; size <= last; ++size) {
    const bool is_listed =
        mode.kind == Kind::powers
            ? size == topology.ranks || (is_power_of_two(size) && 2 * size <= topology.ranks)
            : mode.kind == Kind::any || is_power_of_two(size) || topology.ranks % size == 0;
    if (is_listed) sizes.push_back(size);
  }
  return sizes;
}

// An upper bound of what everything costs, wherever it runs, so that sums stay in 64 bits.
void require_small_total(const Work& work, const Topology& topology, const CostModel& model) {
  double per_token = 0;
  double latency = 0;
  for (const ContextCost& context : model.context) {
    for (const ContextLink& link : context.links) {
      per_token = std::max(per_token, context.bytes_per_token / link.gb_per_s);
      latency = std::max(latency, link.latency_us * 1000);
    }
  }
  const auto& speeds = topology.rank_speed;
  const double speed =
      speeds.empty() ? 1 : std::min(1.0, *std::min_element(speeds.begin(), speeds.end()));
  // Every micro-batch goes through all chunks and back.
  const double transfer =
      2.0 * topology.pipeline.num_chunks() * static_cast<double>(topology.pipeline.transfer_ns);
  double total = 0;
  for (std::size_t i = 0; i < work.lengths.size(); ++i) {
    const Nanoseconds extra = work.extra_costs.empty() ? 0 : work.extra_costs[i];
    const auto alone = find_sequence_cost(model, work.lengths[i], extra);
    require(alone.has_value(), "plan", "sequence {} of {} tokens costs more than 2^62", i,
            work.lengths[i]);
    const double cost = static_cast<double>(*alone) +
                        per_token * static_cast<double>(work.lengths[i]) + model.microbatch_ns +
                        latency;
    total += cost / speed + transfer;
    require(total < static_cast<double>(max_total_cost), "plan",
            "the costs up to sequence {} add up to more than 2^62", i);
  }
}

}  // namespace

Problem::Problem(Work work, const Topology& topology, const CostModel& cost,
                 const PlanOptions& options, std::shared_ptr<Purse> purse)
    : work_(std::move(work)),
      purse_(std::move(purse)),
      topology_(topology),
      cost_(cost),
      options_(options) {
  require_valid(cost_);
  require_small_total(work_, topology_, cost_);
  for (const Tokens length : work_.lengths) all_tokens_ += length;
  // No rank holds more than all there is, padded; a larger capacity would overflow.
  const auto padding = static_cast<Tokens>(work_.lengths.size()) * 2 * options_.tensor_parallel;
  topology_.capacity = std::min(topology_.capacity, std::max(max_length, all_tokens_ + padding));
  microbatch_ = microbatch_cost(cost_);
  // Some exchange takes any size, on a link that spans the machine.
  is_everywhere_ =
      std::any_of(cost_.context.begin(), cost_.context.end(), [&](const ContextCost& context) {
        const bool is_free = context.kind == ContextKind::none && context.links.empty();
        return context.divides == 0 &&
               (is_free ||
                (!context.links.empty() && context.links.back().max_ranks >= topology_.ranks));
      });
  auto& speeds = topology_.rank_speed;
  if (std::all_of(speeds.begin(), speeds.end(), [](double speed) { return speed == 1; })) {
    speeds.clear();  // nothing is slow
  }
  const ContextMode mode = context_mode(options_.context);
  is_aligned_ = mode.kind != ContextMode::Kind::any;
  keys_of_size_.resize(static_cast<std::size_t>(topology_.ranks) + 1);
  price_at_.resize(keys_of_size_.size());
  least_fixed_of_size_.assign(keys_of_size_.size(), -1);
  // The first ranks are in the first block of every link, so no place has an earlier link.
  cheapest_.assign(static_cast<std::size_t>(topology_.ranks) + 1, -1);
  const auto find_cheapest = [&](std::int32_t size) {
    cheapest_[static_cast<std::size_t>(size)] = price_of({.first = 0, .size = size});
    return cheapest_price(size) >= 0;
  };
  for (const std::int32_t size : sizes_of(mode, topology_, options_)) {
    if (find_cheapest(size)) sizes_.push_back(size);
  }
  find_cheapest(topology_.ranks);  // what stands alone may take them all
  find_order();
  max_size_ = sizes_.empty() ? 0 : sizes_.back();
  if (has_speeds()) find_paces();
  is_plain_ = work_.bundles.size() == work_.items.size();
  const auto ids = work_.items.values();
  bool is_one_each = ids.size() == work_.items.size();
  for (std::size_t i = 0; is_one_each && i < ids.size(); ++i) {
    is_one_each = work_.items[i].size() == 1;
  }
  if (is_one_each) {
    lengths_of_items_.reserve(ids.size());
    for (const SequenceId id : ids) lengths_of_items_.push_back(work_.lengths[id.index()]);
    longest_of_size_.assign(keys_of_size_.size(), 0);
    for (std::int32_t size = 1; size <= max_size_; ++size) {
      const Tokens multiple = padded_length(1, size, options_.tensor_parallel);
      longest_of_size_[static_cast<std::size_t>(size)] = capacity() * size / multiple * multiple;
    }
  }
  tokens_of_one_.reserve(work_.items.size());
  for (ItemId item = 0; item < num_items(); ++item) {
    Tokens sum = 0;
    for (const SequenceId id : sequences_of(item)) {
      sum += padded_length(work_.lengths[id.index()], 1, options_.tensor_parallel);
    }
    tokens_of_one_.push_back(sum);
  }
}

void Problem::find_order() {
  order_ = exchange_order(cost_, sizes_);
  for (std::size_t i = 1; i < sizes_.size(); ++i) {
    are_multiples_ = are_multiples_ && sizes_[i] % sizes_[i - 1] == 0;
  }
}

void Problem::find_paces() {
  const auto ranks = static_cast<std::size_t>(topology_.ranks);
  fastest_speed_.assign(ranks + 1, 0);
  least_span_.assign(ranks + 1, static_cast<double>(ranks) * 1e6);
  const auto& speeds = topology_.rank_speed;
  slowest_speeds_ = {speeds};
  for (std::size_t half = 1; 2 * half <= ranks; half *= 2) {
    const std::vector<double>& halves = slowest_speeds_.back();
    std::vector<double> slowest(ranks - 2 * half + 1);
    for (std::size_t first = 0; first < slowest.size(); ++first) {
      slowest[first] = std::min(halves[first], halves[first + half]);
    }
    slowest_speeds_.push_back(std::move(slowest));
  }
  const auto note = [&](std::size_t size, double sum, double slowest) {
    fastest_speed_[size] = std::max(fastest_speed_[size], slowest);
    least_span_[size] = std::min(least_span_[size], sum / slowest);
  };
  if (is_aligned_) {  // few sizes, in few places
    std::set<std::int32_t> sizes(sizes_.begin(), sizes_.end());
    sizes.insert({1, topology_.ranks});
    for (const std::int32_t each : sizes) {
      const auto size = static_cast<std::size_t>(each);
      for (std::size_t first = 0; first + size <= ranks; first += size) {
        const auto begin = speeds.begin() + static_cast<std::ptrdiff_t>(first);
        const auto end = begin + each;
        note(size, std::accumulate(begin, end, 0.0), *std::min_element(begin, end));
      }
    }
    return;
  }
  for (std::size_t first = 0; first < ranks; ++first) {
    double sum = 0;
    double slowest = speeds[first];
    for (std::size_t size = 1; first + size <= ranks; ++size) {
      sum += speeds[first + size - 1];
      slowest = std::min(slowest, speeds[first + size - 1]);
      note(size, sum, slowest);
    }
  }
}

void Problem::set_alone(ItemId item, std::int32_t size) {
  alone_size_ = size;
  if (sizes_.empty() || sizes_.back() < size) {
    sizes_.push_back(size);
    find_order();
  }
  is_alone_.resize(work_.items.size(), false);
  is_alone_[static_cast<std::size_t>(item)] = true;
  smallest_places_.clear();
  fits_of_size_.clear();
}

PriceId Problem::price_of(RankRange ranks) const {
  if (num_ranks() > max_tabled_ranks) return find_price(ranks);
  constexpr PriceId not_known = -2;
  std::vector<PriceId>& prices = price_at_[static_cast<std::size_t>(ranks.size)];
  if (prices.empty()) prices.assign(static_cast<std::size_t>(num_ranks()), not_known);
  PriceId& price = prices[static_cast<std::size_t>(ranks.first)];
  if (price == not_known) price = find_price(ranks);
  return price;
}

// Which links the exchanges of a group use, as a number.
std::int32_t Problem::links_of(RankRange ranks) const {
  if (ranks.size == 1) return 0;
  const std::int64_t last = ranks.first + ranks.size - 1;
  std::int32_t links = 0;
  for (const ContextCost& context : cost_.context) {
    std::int32_t link = 0;
    for (const ContextLink& candidate : context.links) {
      if (ranks.first / candidate.max_ranks == last / candidate.max_ranks) break;
      ++link;
    }
    links = links * static_cast<std::int32_t>(context.links.size() + 1) + link;
  }
  return links;
}

const std::vector<RankRange>& Problem::examples(std::int32_t size) const {
  if (examples_.empty()) examples_.resize(static_cast<std::size_t>(num_ranks()) + 1);
  std::vector<RankRange>& known = examples_[static_cast<std::size_t>(size)];
  if (!known.empty()) return known;
  if (order_.has_ordered_links) return known = {{.first = 0, .size = size}};
  std::set<std::int32_t> seen;
  for (std::int64_t first = 0; first + size <= num_ranks(); first += first_step(size)) {
    const RankRange ranks{.first = first, .size = size};
    if (seen.insert(links_of(ranks)).second) known.push_back(ranks);
  }
  return known;
}

PriceId Problem::find_price(RankRange ranks) const {
  const std::int32_t links = links_of(ranks);
  std::vector<Key>& keys = keys_of_size_[static_cast<std::size_t>(ranks.size)];
  for (const Key& key : keys) {
    if (key.links == links) return key.price;
  }

  Key key{.size = static_cast<std::int32_t>(ranks.size), .links = links, .price = -1};
  Price best;
  Nanoseconds best_cost = 0;
  const Tokens full =
      std::min({max_length, topology_.capacity * ranks.size, std::max<Tokens>(1, all_tokens_)});
  for (std::size_t e = 0; e < cost_.context.size() || e == 0; ++e) {
    Nanoseconds latency = 0;
    Nanoseconds cost = 0;
    std::optional<ContextLink> link = ContextLink{};
    if (ranks.size > 1) {
      if (cost_.context.empty()) break;
      link = find_link(cost_.context[e], ranks);
      if (!link) continue;
      latency = link_latency(*link);
      cost = latency + find_sequence_cost(cost_, cost_.context[e], ranks, full).value_or(0);
    }
    if (key.price < 0 || cost < best_cost) {
      best_cost = cost;
      best = {.size = key.size,
              .exchange = static_cast<std::int32_t>(e),
              .example = ranks,
              .link = *link,
              .fixed = microbatch_ + latency};
      key.price = static_cast<PriceId>(prices_.size());
    }
    if (ranks.size == 1) break;
  }
  if (key.price >= 0) {
    prices_.push_back(best);
    costs_of_price_.emplace_back();
  }
  keys.push_back(key);
  return key.price;
}

Nanoseconds Problem::sequence_cost_at(const Price& price, std::size_t sequence) const {
  const Nanoseconds extra = work_.extra_costs.empty() ? 0 : work_.extra_costs[sequence];
  if (price.size == 1) return sequence_cost(cost_, work_.lengths[sequence], extra);
  const ContextCost& context = cost_.context[static_cast<std::size_t>(price.exchange)];
  return sequence_cost_over(cost_, context, price.link, price.size, work_.lengths[sequence], extra);
}

// What bundles cost is known in front of what their items do; -1: not known.
Nanoseconds Problem::find_item_cost(PriceId id, ItemId item) const {
  std::vector<Nanoseconds>& costs = costs_of_price_[static_cast<std::size_t>(id)];
  costs.resize(work_.bundles.size() + work_.items.size(), -1);
  Nanoseconds& known = costs[work_.bundles.size() + static_cast<std::size_t>(item)];
  if (known >= 0) return known;
  Nanoseconds sum = 0;
  for (const SequenceId sequence : sequences_of(item)) {
    sum += sequence_cost_at(price(id), sequence.index());
  }
  return known = sum;
}

Nanoseconds Problem::find_cost(PriceId id, BundleId bundle) const {
  const auto worked_out = [&] {
    Nanoseconds sum = 0;
    for (const ItemId item : items_of(bundle)) {
      for (const SequenceId sequence : sequences_of(item)) {
        sum += sequence_cost_at(price(id), sequence.index());
      }
    }
    return sum;
  };
  // The searches of slots keep what they ask of wide groups, about few bundles: a table of all
  // would take longer than it spares. Where there are many sizes and bundles it would take
  // gigabytes.
  constexpr std::int32_t max_tabled_size = 16;
  constexpr std::size_t max_tabled_costs = std::size_t{1} << 25;
  const bool is_kept = options_.sync == Sync::microbatch && is_plain_;
  const bool is_large =
      sizes_.size() > max_tabled_costs / std::max<std::size_t>(1, work_.bundles.size());
  if ((is_kept || is_large) && price(id).size > max_tabled_size) return worked_out();
  std::vector<Nanoseconds>& costs = costs_of_price_[static_cast<std::size_t>(id)];
  if (costs.empty()) costs.assign(work_.bundles.size(), -1);
  return costs[static_cast<std::size_t>(bundle)] = worked_out();
}

Nanoseconds Problem::group_cost(RankRange ranks, std::span<const ItemId> items) const {
  const PriceId id = price_of(ranks);
  if (ranks.size == 1 || order_.has_one_exchange) {
    Nanoseconds time = price(id).fixed;
    for (const ItemId item : items) time += item_cost(id, item);
    return time;
  }
  Nanoseconds least = -1;
  for (std::size_t e = 0; e < cost_.context.size(); ++e) {
    const auto link = find_link(cost_.context[e], ranks);
    if (!link) continue;
    Price exchange = price(id);
    exchange.exchange = static_cast<std::int32_t>(e);
    exchange.link = *link;
    Nanoseconds time = microbatch_ + link_latency(*link);
    for (const ItemId item : items) {
      for (const SequenceId sequence : sequences_of(item)) {
        time += sequence_cost_at(exchange, sequence.index());
      }
    }
    if (least < 0 || time < least) least = time;
  }
  return least;
}

Nanoseconds Problem::least_item_cost(std::int32_t size, ItemId item) const {
  return is_cheapest_for_all(size) ? item_cost(cheapest_price(size), item)
                                   : least_cost_of(size, {&item, 1});
}

// Several exchanges or places: the one that is cheapest for these items may not be the price's.
Nanoseconds Problem::least_cost_of(std::int32_t size, std::span<const ItemId> items) const {
  Nanoseconds least = -1;
  for (const RankRange& ranks : examples(size)) {
    for (const ContextCost& context : cost_.context) {
      if (!find_link(context, ranks)) continue;
      Nanoseconds sum = 0;
      for (const ItemId item : items) {
        for (const SequenceId id : sequences_of(item)) {
          const Nanoseconds extra = work_.extra_costs.empty() ? 0 : work_.extra_costs[id.index()];
          sum += *find_sequence_cost(cost_, context, ranks, work_.lengths[id.index()], extra);
        }
      }
      if (least < 0 || sum < least) least = sum;
    }
  }
  return least;
}

Nanoseconds Problem::find_least_fixed(std::int32_t size) const {
  Nanoseconds& known = least_fixed_of_size_[static_cast<std::size_t>(size)];
  if (size == 1) return known = microbatch_;
  Nanoseconds least = -1;
  for (const RankRange& ranks : examples(size)) {
    for (const ContextCost& context : cost_.context) {
      const auto link = find_link(context, ranks);
      if (link && (least < 0 || link_latency(*link) < least)) least = link_latency(*link);
    }
  }
  return known = microbatch_ + std::max<Nanoseconds>(0, least);
}

Tokens Problem::tokens(std::int32_t size, ItemId item) const {
  if (is_alone(item)) return capacity() * size;
  if (size == 1) return tokens_of_one_[static_cast<std::size_t>(item)];
  if (!lengths_of_items_.empty()) {
    return padded_length(lengths_of_items_[static_cast<std::size_t>(item)], size,
                         options_.tensor_parallel);
  }
  return find_tokens(size, item);
}

// Searches ask again and again, and every sequence takes a division.
Tokens Problem::find_tokens(std::int32_t size, ItemId item) const {
  const auto worked_out = [&] {
    Tokens sum = 0;
    for (const SequenceId id : sequences_of(item)) {
      sum += padded_length(work_.lengths[id.index()], size, options_.tensor_parallel);
    }
    return sum;
  };
  constexpr std::size_t max_tabled = std::size_t{1} << 22;  // 32 MB
  if (sizes_.size() * work_.items.size() > max_tabled) return worked_out();
  const auto place = static_cast<std::size_t>(size);
  if (place >= tokens_of_size_.size()) tokens_of_size_.resize(place + 1);
  std::vector<Tokens>& known = tokens_of_size_[place];
  if (known.empty()) known.assign(work_.items.size(), -1);
  Tokens& sum = known[static_cast<std::size_t>(item)];
  return sum >= 0 ? sum : sum = worked_out();
}

Tokens Problem::least_tokens(BundleId bundle) const {
  const std::int32_t size = are_multiples_ ? sizes_[smallest_place(bundle)] : 1;
  Tokens sum = 0;
  for (const ItemId item : items_of(bundle)) sum += tokens(size, item);
  return sum;
}

bool Problem::is_within_limits(std::int32_t size, ItemId item) const {
  return size <= max_size_ && tokens(size, item) <= capacity() * size &&
         (options_.max_sequences == 0 || num_sequences(item) <= options_.max_sequences);
}

bool Problem::do_all_fit(std::int32_t size, BundleId bundle) const {
  const auto items = items_of(bundle);
  if (items.size() == 1) return item_fits(size, items.front());
  const auto place = static_cast<std::size_t>(size);
  if (place >= fits_of_size_.size()) fits_of_size_.resize(place + 1);
  std::vector<std::int8_t>& known = fits_of_size_[place];
  if (known.empty()) known.assign(work_.bundles.size(), -1);
  std::int8_t& fits = known[static_cast<std::size_t>(bundle)];
  if (fits < 0) {
    fits =
        std::all_of(items.begin(), items.end(), [&](ItemId item) { return item_fits(size, item); })
            ? 1
            : 0;
  }
  return fits == 1;
}

std::size_t Problem::find_smallest_place(BundleId bundle) const {
  std::size_t place = 0;
  if (items_of(bundle).size() == 1 && !is_alone(items_of(bundle).front())) {
    // A larger group pads to a multiple of what one rank pads to.
    const Tokens tokens = tokens_of_one_[static_cast<std::size_t>(items_of(bundle).front())];
    while (place < sizes_.size() && sizes_[place] * capacity() < tokens) ++place;
  }
  while (place < sizes_.size() && !fits(sizes_[place], bundle)) ++place;
  if (smallest_places_.empty()) smallest_places_.assign(work_.bundles.size(), -1);
  smallest_places_[static_cast<std::size_t>(bundle)] = static_cast<std::int32_t>(place);
  return place;
}

double Problem::slowness(RankRange ranks) const {
  if (!has_speeds()) return 1;
  // Two blocks cover the ranks.
  const auto first = static_cast<std::size_t>(ranks.first);
  const auto size = static_cast<std::size_t>(ranks.size);
  const std::size_t block = std::bit_floor(size);
  const std::vector<double>& slowest =
      slowest_speeds_[static_cast<std::size_t>(std::countr_zero(block))];
  return 1 / std::min(slowest[first], slowest[first + size - block]);
}

double Problem::total_speed() const {
  const std::vector<double>& speeds = topology_.rank_speed;
  return speeds.empty() ? num_ranks() : std::accumulate(speeds.begin(), speeds.end(), 0.0);
}

Nanoseconds Problem::slowed(Nanoseconds cost, double slowness) {
  return slowness == 1 ? cost : rounded(static_cast<double>(cost) * slowness);
}

}  // namespace isochron
