// Longest first on top of a skyline, then exchanges between the last cell and the early ones.
//
// The load of a cell is the end of its wider groups, plus what its bundles cost, plus one fixed
// cost for each micro-batch that they need. That number changes with every exchange, so a candidate
// is weighed by its cost first and packed only if it would be the best so far.

#include "isochron/plan/steps/cells.h"

#include <algorithm>
#include <queue>
#include <tuple>

namespace isochron {

Cells::Cells(const Problem& problem, std::int32_t size)
    : problem_(problem),
      size_(size),
      capacity_(problem.capacity() * size),
      bins_(capacity_, problem.options().max_sequences) {
  is_uniform_ = !problem.has_speeds();
  for (std::int32_t first = 0; first + size_ <= problem.num_ranks(); first += size_) {
    const RankRange ranks{.first = first, .size = size_};
    const PriceId price = problem.price_of(ranks);
    if (price < 0) continue;
    const double slow = problem.slowness(ranks);
    cells_.push_back({.ranks = ranks,
                      .price = price,
                      .slowness = slow,
                      .fixed = Problem::slowed(problem.price(price).fixed, slow)});
    is_uniform_ = is_uniform_ && price == cells_.front().price;
  }
  has_items_ = problem.num_items() != problem.num_bundles();
  const auto count = static_cast<std::size_t>(problem.num_bundles());
  times_.resize(count);
  tokens_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto bundle = static_cast<BundleId>(i);
    for (const ItemId item : problem.items_of(bundle)) tokens_[i] += problem.tokens(size_, item);
    times_[i] = problem.cost(cells_.front().price, bundle);
  }
}

void Cells::reset(std::span<const Nanoseconds> height, std::span<const std::int32_t> min_slots) {
  has_min_slots_ = !min_slots.empty();
  for (Cell& cell : cells_) {
    const auto first = height.begin() + cell.ranks.first;
    cell.base = *std::max_element(first, first + cell.ranks.size);
    cell.min_slots = 0;
    if (!min_slots.empty()) {
      const auto slots = min_slots.begin() + cell.ranks.first;
      cell.min_slots = *std::max_element(slots, slots + cell.ranks.size);
    }
    cell.num_slots = cell.min_slots;
    cell.load = cell.base + slots_time(cell, cell.num_slots);
    cell.tokens = 0;
    cell.bundles.clear();
  }
}

namespace {

// What a micro-batch counts, in its own cost, if all ranks have to run one more for it.
constexpr Nanoseconds extra_factor = 32;

}  // namespace

Nanoseconds Cells::slots_time(const Cell& cell, std::int32_t slots) const {
  const std::int32_t extra = has_min_slots_ ? slots - cell.min_slots : 0;
  return (slots + (extra_factor - 1) * extra) * cell.fixed;
}

Nanoseconds Cells::time_on(const Cell& cell, BundleId bundle) const {
  if (is_uniform_) return times_[static_cast<std::size_t>(bundle)];
  return Problem::slowed(problem_.cost(cell.price, bundle), cell.slowness);
}

std::int32_t Cells::count_slots(std::span<const BundleId> bundles, Tokens tokens,
                                std::int64_t& work) {
  if (bundles.empty()) return 0;
  const bool is_limited = problem_.options().max_sequences > 0;
  if (tokens <= capacity_ && !is_limited) return 1;
  item_tokens_.clear();
  item_sequences_.clear();
  for (const BundleId bundle : bundles) {
    if (!has_items_) {
      item_tokens_.push_back(tokens_of(bundle));
    } else {
      for (const ItemId item : problem_.items_of(bundle)) {
        item_tokens_.push_back(problem_.tokens(size_, item));
      }
    }
    if (!is_limited) continue;
    for (const ItemId item : problem_.items_of(bundle)) {
      item_sequences_.push_back(problem_.num_sequences(item));
    }
  }
  return bins_.pack(item_tokens_, item_sequences_, work);
}

std::vector<std::vector<ItemId>> Cells::pack(const Cell& cell) const {
  std::vector<ItemId> items;
  std::vector<Tokens> tokens;
  std::vector<std::int32_t> sequences;
  for (const BundleId bundle : cell.bundles) {
    for (const ItemId item : problem_.items_of(bundle)) {
      items.push_back(item);
      tokens.push_back(problem_.tokens(size_, item));
      sequences.push_back(problem_.num_sequences(item));
    }
  }
  CellBins bins(capacity_, problem_.options().max_sequences);
  std::int64_t work = 0;
  std::vector<std::vector<ItemId>> packed(
      static_cast<std::size_t>(bins.pack(tokens, sequences, work)));
  for (std::size_t i = 0; i < items.size(); ++i) {
    packed[static_cast<std::size_t>(bins.bin_of()[i])].push_back(items[i]);
  }
  return packed;
}

void Cells::put(Cell& cell, BundleId bundle) {
  cell.bundles.push_back(bundle);
  cell.tokens += tokens_of(bundle);
  // While bundles are added the number of micro-batches is guessed from the tokens.
  const auto slots = std::max(cell.min_slots,
                              static_cast<std::int32_t>((cell.tokens + capacity_ - 1) / capacity_));
  cell.load += time_on(cell, bundle) + slots_time(cell, slots) - slots_time(cell, cell.num_slots);
  cell.num_slots = slots;
}

void Cells::add(std::span<const BundleId> dearest_first) {
  using Entry = std::pair<Nanoseconds, std::int32_t>;  // load, cell
  using Earliest = std::priority_queue<Entry, std::vector<Entry>, std::greater<>>;
  // Of cells on which everything takes equally long the earliest is done first.
  std::vector<std::pair<PriceId, double>> paces;
  std::vector<Earliest> earliest;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const std::pair pace(cells_[i].price, cells_[i].slowness);
    const auto found = is_uniform_ ? paces.begin() : std::find(paces.begin(), paces.end(), pace);
    const auto place = static_cast<std::size_t>(found - paces.begin());
    if (found == paces.end()) {
      paces.push_back(pace);
      earliest.emplace_back();
    }
    earliest[place].emplace(cells_[i].load, static_cast<std::int32_t>(i));
  }
  for (const BundleId bundle : dearest_first) {
    std::size_t best = 0;
    if (earliest.size() > 1) {
      Entry least(std::numeric_limits<Nanoseconds>::max(), 0);
      for (std::size_t place = 0; place < earliest.size(); ++place) {
        const auto& [load, id] = earliest[place].top();
        const Entry end(load + time_on(cells_[static_cast<std::size_t>(id)], bundle), id);
        if (end >= least) continue;
        least = end;
        best = place;
      }
    }
    const std::int32_t id = earliest[best].top().second;
    earliest[best].pop();
    Cell& cell = cells_[static_cast<std::size_t>(id)];
    put(cell, bundle);
    earliest[best].emplace(cell.load, id);
  }
  std::int64_t work = 0;
  for (Cell& cell : cells_) replace(cell, cell.bundles, work);
}

void Cells::replace(Cell& cell, std::span<const BundleId> bundles, std::int64_t& work) {
  if (bundles.data() != cell.bundles.data()) cell.bundles.assign(bundles.begin(), bundles.end());
  cell.tokens = 0;
  cell.load = cell.base;
  for (const BundleId bundle : cell.bundles) {
    cell.tokens += tokens_of(bundle);
    cell.load += time_on(cell, bundle);
  }
  cell.num_slots = std::max(cell.min_slots, count_slots(cell.bundles, cell.tokens, work));
  cell.load += slots_time(cell, cell.num_slots);
}

Nanoseconds Cells::max_load() const {
  Nanoseconds load = 0;
  for (const Cell& cell : cells_) load = std::max(load, cell.load);
  return load;
}

Nanoseconds Cells::mean_load() const {
  double sum = 0;
  for (const Cell& cell : cells_) sum += static_cast<double>(cell.load);
  return static_cast<Nanoseconds>(sum / static_cast<double>(cells_.size()));
}

void Cells::exchange(const Cell& cell, const Subset& out, const Cell& other, const Subset& in,
                     std::vector<BundleId>& result) const {
  result.clear();
  for (std::size_t i = 0; i < cell.bundles.size(); ++i) {
    const auto place = static_cast<std::int32_t>(i);
    if (place != out.places[0] && place != out.places[1]) result.push_back(cell.bundles[i]);
  }
  for (const std::int32_t place : in.places) {
    if (place < 0) continue;
    const BundleId bundle = other.bundles[static_cast<std::size_t>(place)];
    const auto spot = std::find_if(result.begin(), result.end(), [&](BundleId there) {
      const Nanoseconds a = times_[static_cast<std::size_t>(bundle)];
      const Nanoseconds b = times_[static_cast<std::size_t>(there)];
      return a > b || (a == b && bundle < there);
    });
    result.insert(spot, bundle);
  }
}

namespace {

constexpr std::size_t max_pairs = 24;  // neighbours of a bundle that form pairs with it

}  // namespace

// Subsets of up to `depth` bundles of a cell, dearest first; `with_none`: the empty one last.
void Cells::find_subsets(const Cell& cell, std::int32_t depth, bool with_none,
                         std::vector<Subset>& subsets) const {
  subsets.clear();
  const std::size_t count = cell.bundles.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Nanoseconds time = time_on(cell, cell.bundles[i]);
    const Tokens tokens = tokens_of(cell.bundles[i]);
    const auto place = static_cast<std::int32_t>(i);
    subsets.push_back({.time = time, .tokens = tokens, .places = {place, -1}});
    if (depth < 2) continue;
    for (std::size_t j = i + 1; j < std::min(count, i + max_pairs); ++j) {
      subsets.push_back({.time = time + time_on(cell, cell.bundles[j]),
                         .tokens = tokens + tokens_of(cell.bundles[j]),
                         .places = {place, static_cast<std::int32_t>(j)}});
    }
  }
  if (with_none) subsets.push_back({});
  if (depth < 2) return;
  std::sort(subsets.begin(), subsets.end(), [](const Subset& a, const Subset& b) {
    return std::tuple(-a.time, a.places[0], a.places[1]) <
           std::tuple(-b.time, b.places[0], b.places[1]);
  });
}

template <class Visit>
void Cells::visit_exchanges(const Cell& dear, const Cell& cheap, Visit visit) const {
  const Nanoseconds half = (dear.load - cheap.load) / 2;
  const auto time_elsewhere = [&](const Cell& from, const Subset& subset, const Cell& to) {
    if (is_uniform_) return subset.time;
    Nanoseconds time = 0;
    for (const std::int32_t place : subset.places) {
      if (place >= 0) time += time_on(to, from.bundles[static_cast<std::size_t>(place)]);
    }
    return time;
  };
  std::size_t j = 0;
  for (const Subset& give : gives_) {
    // The first subset to take that is not dearer than what makes both ends meet.
    while (j < takes_.size() && takes_[j].time > give.time - half) ++j;
    for (std::size_t k = j == 0 ? 0 : j - 1; k < std::min(takes_.size(), j + 2); ++k) {
      const Subset& take = takes_[k];
      visit(give, take, dear.load - give.time + time_elsewhere(cheap, take, dear),
            cheap.load - take.time + time_elsewhere(dear, give, cheap));
    }
  }
}

Nanoseconds Cells::least_load(const Cell& cell, Nanoseconds load, Tokens tokens) const {
  const auto least =
      std::max(cell.min_slots, static_cast<std::int32_t>((tokens + capacity_ - 1) / capacity_));
  return load + slots_time(cell, least) - slots_time(cell, cell.num_slots);
}

Nanoseconds Cells::packed_load(const Cell& cell, Nanoseconds load, const Subset& out,
                               const Cell& other, const Subset& in, std::int64_t& work) {
  exchange(cell, out, other, in, trial_);
  const Tokens tokens = cell.tokens - out.tokens + in.tokens;
  const std::int32_t slots = std::max(cell.min_slots, count_slots(trial_, tokens, work));
  return load + slots_time(cell, slots) - slots_time(cell, cell.num_slots);
}

Cells::Exchange Cells::find_exchange(const Cell& dear, const Cell& cheap, std::int32_t depth,
                                     Nanoseconds limit, std::int64_t& work) {
  // gives_ holds the subsets of the dear cell already.
  find_subsets(cheap, depth, true, takes_);
  work -= static_cast<std::int64_t>(gives_.size() + takes_.size());
  // One micro-batch fewer on each side is the best that packing brings.
  const auto is_hopeless = [&](Nanoseconds dear_load, Nanoseconds cheap_load, Nanoseconds end) {
    const Nanoseconds factor = has_min_slots_ ? extra_factor : 1;
    return dear_load - factor * dear.fixed >= end || cheap_load - factor * cheap.fixed >= end;
  };
  const auto least_end = [&](const Subset& give, const Subset& take, Nanoseconds dear_load,
                             Nanoseconds cheap_load) {
    const Tokens moved = give.tokens - take.tokens;
    return std::max(least_load(dear, dear_load, dear.tokens - moved),
                    least_load(cheap, cheap_load, cheap.tokens + moved));
  };
  const auto packed_end = [&](const Subset& give, const Subset& take, Nanoseconds dear_load,
                              Nanoseconds cheap_load) {
    return std::max(packed_load(dear, dear_load, give, cheap, take, work),
                    packed_load(cheap, cheap_load, take, dear, give, work));
  };
  // Most often the best by tokens can be packed like that.
  Exchange first;
  Nanoseconds first_dear_load = 0;
  Nanoseconds first_cheap_load = 0;
  first.end = limit;
  visit_exchanges(
      dear, cheap,
      [&](const Subset& give, const Subset& take, Nanoseconds dear_load, Nanoseconds cheap_load) {
        if (is_hopeless(dear_load, cheap_load, first.end)) return;
        const Nanoseconds end = least_end(give, take, dear_load, cheap_load);
        if (end >= first.end) return;
        first = {.give = give, .take = take, .end = end, .is_found = true};
        first_dear_load = dear_load;
        first_cheap_load = cheap_load;
      });
  if (!first.is_found) return first;
  const Nanoseconds least = first.end;
  first.end = packed_end(first.give, first.take, first_dear_load, first_cheap_load);
  if (first.end == least) return first;

  Exchange best = first;
  if (first.end >= limit) best = {.end = limit};
  visit_exchanges(
      dear, cheap,
      [&](const Subset& give, const Subset& take, Nanoseconds dear_load, Nanoseconds cheap_load) {
        if (is_hopeless(dear_load, cheap_load, best.end) ||
            least_end(give, take, dear_load, cheap_load) >= best.end) {
          return;
        }
        const Nanoseconds end = packed_end(give, take, dear_load, cheap_load);
        if (end < best.end) best = {.give = give, .take = take, .end = end, .is_found = true};
      });
  return best;
}

// Cells cannot all end before their mean. If that is late, the last bit matters less.
Nanoseconds Cells::goal(Nanoseconds target) const {
  const Nanoseconds mean = mean_load();
  return std::max(target, mean + std::clamp((mean - target) / 16, target >> 17, target >> 15));
}

void Cells::refine(Nanoseconds target, std::int64_t& work) {
  if (cells_.size() < 2) return;
  std::vector<std::int32_t> order(cells_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
  std::vector<std::int32_t> near(std::min<std::size_t>(8, order.size()));  // done earliest
  while (work > 0) {
    const auto dearest = std::max_element(
        cells_.begin(), cells_.end(), [](const Cell& a, const Cell& b) { return a.load < b.load; });
    Cell& dear = *dearest;
    if (dear.load <= goal(target) || dear.bundles.empty()) return;
    const auto by_load = [&](std::int32_t a, std::int32_t b) {
      const Nanoseconds x = cells_[static_cast<std::size_t>(a)].load;
      const Nanoseconds y = cells_[static_cast<std::size_t>(b)].load;
      return std::pair(x, a) < std::pair(y, b);
    };
    std::partial_sort_copy(order.begin(), order.end(), near.begin(), near.end(), by_load);
    work -= static_cast<std::int64_t>(order.size() / 4 + 1);
    Exchange best;
    Cell* partner = nullptr;
    const auto ask = [&](std::span<const std::int32_t> others, std::int32_t depth) {
      find_subsets(dear, depth, false, gives_);
      for (const std::int32_t other : others) {
        Cell& cheap = cells_[static_cast<std::size_t>(other)];
        if (&cheap == &dear || cheap.load >= dear.load) continue;
        const Nanoseconds limit = best.is_found ? best.end : dear.load;
        const Exchange found = find_exchange(dear, cheap, depth, limit, work);
        if (!found.is_found) continue;
        best = found;
        partner = &cheap;
        // Half of the difference is the most that balance brings.
        if (limit - best.end > (dear.load - cheap.load) / 3) return;
      }
    };
    // The earliest cells first; more is asked until one helps.
    ask(near, 1);
    if (!best.is_found) ask(near, 2);
    if (!best.is_found && near.size() < order.size()) ask(order, 1);
    if (!best.is_found) return;
    exchange(dear, best.give, *partner, best.take, trial_);
    exchange(*partner, best.take, dear, best.give, other_trial_);
    replace(dear, trial_, work);
    replace(*partner, other_trial_, work);
  }
}

void Cells::shake(Nanoseconds target, Random& random, std::int64_t& work) {
  if (cells_.size() < 2) return;
  while (work > 0) {
    const auto dearest = std::max_element(
        cells_.begin(), cells_.end(), [](const Cell& a, const Cell& b) { return a.load < b.load; });
    const Nanoseconds before = dearest->load;
    if (before <= goal(target) || dearest->bundles.empty()) return;
    const std::vector<Cell> kept = cells_;
    // A bundle of the last cell for one of another, and one of that for one of a third.
    auto from = static_cast<std::size_t>(dearest - cells_.begin());
    for (std::int32_t swap = 0; swap < 2; ++swap) {
      const auto to = static_cast<std::size_t>(random.below(cells_.size()));
      if (to == from || cells_[to].bundles.empty()) continue;
      Cell& a = cells_[from];
      Cell& b = cells_[to];
      const Subset out{.places = {static_cast<std::int32_t>(random.below(a.bundles.size())), -1}};
      const Subset in{.places = {static_cast<std::int32_t>(random.below(b.bundles.size())), -1}};
      exchange(a, out, b, in, trial_);
      exchange(b, in, a, out, other_trial_);
      replace(a, trial_, work);
      replace(b, other_trial_, work);
      from = to;
    }
    work -= static_cast<std::int64_t>(cells_.size());
    refine(target, work);
    if (max_load() > before) cells_ = kept;
  }
}

}  // namespace isochron
