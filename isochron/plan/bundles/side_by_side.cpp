// Bundles alone, or some of them together, have ranks of their own. For a time each has the
// smallest group that is as fast. Groups are placed widest first, each where it leaves least:
// within a block of ranks that a fast link joins, or over several of them. What share a group waste
// less by its whole number of ranks: as long as the step gets shorter, two become one.

#include "isochron/plan/bundles/side_by_side.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "isochron/plan/bundles/bundle_table.h"

namespace isochron {

namespace {

constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max();

class SideBySide {
 public:
  explicit SideBySide(const Problem& problem)
      : problem_(problem), table_(problem, problem.sizes()), block_(problem.num_ranks()) {
    for (const ContextCost& context : problem.model().context) {
      if (!context.links.empty()) {
        block_ = std::min<std::int64_t>(block_, context.links.front().max_ranks);
      }
    }
    for (BundleId bundle = 0; bundle < table_.num_bundles(); ++bundle) {
      units_.push_back(unit_of({bundle}));
    }
  }

  // Of each bundle; empty if no step is found that is shorter than `limit`.
  std::vector<RankRange> places(Nanoseconds limit) {
    time_ = limit;
    shorten(all_units());
    while (merge_two()) {
    }
    std::vector<RankRange> result(places_.empty() ? 0
                                                  : static_cast<std::size_t>(table_.num_bundles()));
    for (std::size_t i = 0; i < places_.size(); ++i) {
      for (const BundleId bundle : units_[i].bundles) {
        result[static_cast<std::size_t>(bundle)] = places_[i];
      }
    }
    return result;
  }

 private:
  // Bundles that share a group.
  struct Unit {
    std::vector<BundleId> bundles;
    std::vector<Nanoseconds> times;  // by level
    Nanoseconds least = never;       // of them
  };
  using Units = std::vector<const Unit*>;

  Units all_units() const {
    Units units;
    for (const Unit& unit : units_) units.push_back(&unit);
    return units;
  }

  Unit unit_of(std::vector<BundleId> bundles) const {
    Unit unit{.bundles = std::move(bundles), .times = {}};
    for (std::int32_t level = 0; level < table_.num_levels(); ++level) {
      BlockUse sum;
      bool do_fit = true;
      for (const BundleId bundle : unit.bundles) {
        const BlockUse& use = table_.use(level, bundle);
        sum.cost += use.cost;
        sum.tokens += use.tokens;
        sum.sequences += use.sequences;
        do_fit = do_fit && table_.fits(level, bundle);
      }
      unit.times.push_back(do_fit ? table_.time(level, sum) : never);
      unit.least = std::min(unit.least, unit.times.back());
    }
    return unit;
  }

  // Makes one of the two that shorten the step most; false if none do.
  bool merge_two() {
    std::optional<Unit> best;
    std::pair<std::size_t, std::size_t> merged;
    for (std::size_t a = 0; a < units_.size(); ++a) {
      for (std::size_t b = a + 1; b < units_.size(); ++b) {
        std::vector<BundleId> bundles = units_[a].bundles;
        bundles.insert(bundles.end(), units_[b].bundles.begin(), units_[b].bundles.end());
        Unit both = unit_of(std::move(bundles));
        Units units = all_units();
        units[a] = &both;
        units.erase(units.begin() + static_cast<std::ptrdiff_t>(b));
        if (!shorten(units)) continue;
        best = std::move(both);
        merged = {a, b};
      }
    }
    if (!best) return false;
    units_[merged.first] = *std::move(best);
    units_.erase(units_.begin() + static_cast<std::ptrdiff_t>(merged.second));
    return true;
  }

  // Whether these are done before the best so far; finds about the least time for them.
  bool shorten(const Units& units) {
    constexpr Nanoseconds part = 1024;
    Nanoseconds low = 1;  // nothing less is enough
    for (const Unit* unit : units) low = std::max(low, unit->least);
    const auto is_enough = [&](Nanoseconds time) {
      std::vector<RankRange> places = places_within(units, time);
      if (places.empty()) return false;
      time_ = time;
      places_ = std::move(places);
      return true;
    };
    const Nanoseconds clearly_less = time_ - time_ / part - 1;
    if (clearly_less < low || !is_enough(clearly_less)) return false;
    while (time_ - low > time_ / part) {
      const Nanoseconds middle = low + (time_ - low) / 2;
      if (!is_enough(middle)) low = middle + 1;
    }
    return true;
  }

  // Empty if there are not enough ranks.
  std::vector<RankRange> places_within(const Units& units, Nanoseconds time) const {
    std::vector<std::int32_t> sizes;
    std::int64_t num_ranks = 0;
    for (const Unit* unit : units) {
      const auto level = std::find_if(unit->times.begin(), unit->times.end(),
                                      [&](Nanoseconds each) { return each <= time; });
      if (level == unit->times.end()) return {};
      sizes.push_back(table_.size(static_cast<std::int32_t>(level - unit->times.begin())));
      num_ranks += sizes.back();
      if (num_ranks > problem_.num_ranks()) return {};
    }
    std::vector<std::size_t> widest_first(sizes.size());
    std::iota(widest_first.begin(), widest_first.end(), std::size_t{0});
    std::stable_sort(widest_first.begin(), widest_first.end(),
                     [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
    std::vector<RankRange> gaps;  // within blocks
    for (std::int64_t first = 0; first < problem_.num_ranks(); first += block_) {
      gaps.push_back({.first = first, .size = std::min(block_, problem_.num_ranks() - first)});
    }
    std::vector<RankRange> places(sizes.size());
    for (const std::size_t i : widest_first) {
      places[i] = taken(sizes[i], gaps);
      if (places[i].size == 0 || problem_.price_of(places[i]) < 0) return {};
    }
    return places;
  }

  // Ranks of the smallest gap that has so many, or, of what is wider than a block, of several that
  // follow each other; else none.
  RankRange taken(std::int64_t size, std::vector<RankRange>& gaps) const {
    auto first = gaps.end();
    for (auto gap = gaps.begin(); gap != gaps.end(); ++gap) {
      if (gap->size >= size && (first == gaps.end() || gap->size < first->size)) first = gap;
    }
    auto last = first;  // that it reaches into
    std::int64_t num_ranks = first == gaps.end() ? 0 : first->size;
    for (auto begin = gaps.begin(); first == gaps.end() && begin != gaps.end(); ++begin) {
      if (size <= block_) break;
      num_ranks = begin->size;
      for (last = begin; num_ranks < size; num_ranks += last->size) {
        const std::int64_t end = last->first + last->size;
        if (++last == gaps.end() || last->first != end) break;
      }
      if (num_ranks >= size) first = begin;
    }
    if (first == gaps.end()) return {.first = 0, .size = 0};
    const RankRange place{.first = first->first, .size = size};
    const std::int64_t left = num_ranks - size;
    *last = {.first = last->first + last->size - left, .size = left};
    gaps.erase(first, left == 0 ? last + 1 : last);
    return place;
  }

  const Problem& problem_;
  BundleTable table_;
  std::int64_t block_;  // of ranks
  std::vector<Unit> units_;
  std::vector<RankRange> places_;  // of the units, in the shortest step so far
  Nanoseconds time_ = never;       // which is no longer than that
};

}  // namespace

std::optional<Draft> find_side_by_side(const Problem& problem, Nanoseconds limit) {
  const std::vector<RankRange> places = SideBySide(problem).places(limit);
  if (places.empty()) return std::nullopt;
  Draft draft = bundle_draft(problem, places);
  if (draft.time >= limit) return std::nullopt;
  return draft;
}

}  // namespace isochron
