// A skyline that keeps the holes below it.
//
// A group starts at the highest of its ranks; on the others it leaves a hole, which is a skyline of
// its own with a ceiling. Narrower groups follow and go into holes as well as on top, and bundles
// of single ranks fill the rest, so a hole costs little; a group that is wider than it must be
// costs its traffic. Between two edges of the skyline nothing changes: only the edges are looked
// at.

#include "isochron/plan/steps/skyline.h"

#include <algorithm>
#include <tuple>

namespace isochron {

bool Skyline::Spot::is_better_than(const Spot& other) const {
  if (is_late != other.is_late) return !is_late;
  if (is_late) return std::pair(end, waste) < std::pair(other.end, other.waste);
  return std::tuple(waste, end, size, first) <
         std::tuple(other.waste, other.end, other.size, other.first);
}

Nanoseconds Skyline::height_waste(Nanoseconds below, Nanoseconds hole) const {
  constexpr Nanoseconds part = 128;
  return (below + hole_weight_ * hole) / part;
}

void Skyline::reset(Nanoseconds shortest, std::int64_t hole_weight) {
  shortest_ = shortest;
  hole_weight_ = hole_weight;
  top_of_.assign(wide_.height.size(), -1);
  pits_.clear();
  floors_.clear();
  tops_.clear();
  changes_.clear();
  for (Windows& windows : windows_) {
    windows.tops.clear();
    windows.num_seen = 0;
  }
}

const Skyline::Windows& Skyline::windows_of(std::int32_t width) {
  const auto w = static_cast<std::size_t>(width);
  if (windows_.size() <= w) windows_.resize(w + 1);
  Windows& windows = windows_[w];
  const std::int64_t count = problem_.num_ranks() - width + 1;
  if (windows.prices.empty()) {
    for (std::int64_t first = 0; first < count; ++first) {
      windows.prices.push_back(problem_.price_of({.first = first, .size = width}));
    }
  }
  std::int64_t num_changed = 0;
  for (std::size_t i = windows.num_seen; i < changes_.size() && num_changed < count; ++i) {
    num_changed += changes_[i].size + width;
  }
  if (windows.tops.empty() || num_changed >= count) {
    windows.tops.resize(windows.prices.size());
    windows.holes.resize(windows.prices.size());
    windows.wastes.resize(windows.prices.size());
    update(width, 0, count, windows);
  } else {
    for (std::size_t i = windows.num_seen; i < changes_.size(); ++i) {
      update(width, std::max<std::int64_t>(0, changes_[i].first - width + 1),
             std::min(count, changes_[i].first + changes_[i].size), windows);
    }
  }
  windows.num_seen = changes_.size();
  return windows;
}

void Skyline::update(std::int32_t width, std::int64_t first, std::int64_t last,
                     Windows& windows) const {
  const std::int64_t step = problem_.first_step(width);
  for (std::int64_t f = (first + step - 1) / step * step; f < last; f += step) {
    Nanoseconds top = 0;
    Nanoseconds sum = 0;
    for (std::int64_t r = f; r < f + width; ++r) {
      const Nanoseconds height = wide_.height[static_cast<std::size_t>(r)];
      top = std::max(top, height);
      sum += height;
    }
    const auto place = static_cast<std::size_t>(f);
    windows.tops[place] = top;
    windows.holes[place] = top * width - sum;
    windows.wastes[place] = height_waste(top * width, windows.holes[place]);
  }
}

void Skyline::consider(Trial& trial, std::int32_t pit, std::int32_t first, Nanoseconds top,
                       Nanoseconds hole, std::span<const std::int32_t> tops, Nanoseconds ceiling,
                       Spot& best) {
  const PriceId price = trial.prices[static_cast<std::size_t>(first)];
  if (price < 0) return;
  const RankRange ranks{.first = first, .size = trial.width};
  if (price != trial.price || problem_.has_speeds()) {
    const double slow = problem_.slowness(ranks);
    trial.price = price;
    trial.cost = Problem::slowed(problem_.cost(price, trial.bundle), slow);
    trial.fixed = Problem::slowed(problem_.price(price).fixed, slow);
  }
  Spot spot{
      .pit = pit,
      .first = first,
      .size = trial.width,
      .price = price,
      .start = top,
      .end = top + trial.cost,
      .waste = trial.cost * trial.width - trial.least_area + height_waste(top * trial.width, hole),
      .is_late = top + trial.cost > trial.target};
  if (spot.end > ceiling || !spot.is_better_than(best)) return;
  const std::int32_t open = tops.front();
  const bool joins =
      open >= 0 && tops.back() == open &&
      wide_.groups[static_cast<std::size_t>(open)].ranks == ranks &&
      std::all_of(tops.begin(), tops.end(), [&](std::int32_t group) { return group == open; }) &&
      can_join(problem_, wide_.groups[static_cast<std::size_t>(open)], trial.bundle);
  if (joins) {
    spot.joins = open;
  } else {
    spot.end += trial.fixed;
    spot.waste += trial.fixed * trial.width;
    spot.is_late = spot.end > trial.target;
    if (spot.end > ceiling || !spot.is_better_than(best)) return;
  }
  best = spot;
}

void Skyline::try_top(Trial& trial, const Windows& windows, Spot& best) {
  const std::vector<Nanoseconds>& height = wide_.height;
  const std::span<const PriceId> prices = trial.prices;
  const std::int32_t step = problem_.first_step(trial.width);
  const auto w = static_cast<std::size_t>(trial.width);
  for (std::int32_t first = 0; first + trial.width <= problem_.num_ranks(); first += step) {
    const auto f = static_cast<std::size_t>(first);
    if (!best.is_late && trial.least_waste + windows.wastes[f] > best.waste) continue;
    const std::size_t last = f + w;
    if (step == 1 && f > 0 && last < height.size() && height[f - 1] == height[f] &&
        height[last - 1] == height[last] && prices[f - 1] == prices[f] &&
        prices[f] == prices[f + 1] && !problem_.has_speeds()) {
      continue;
    }
    consider(trial, -1, first, windows.tops[f], windows.holes[f], std::span(top_of_).subspan(f, w),
             never, best);
  }
}

void Skyline::try_pit(Trial& trial, std::size_t pit, Spot& best) {
  const Pit& here = pits_[pit];
  const std::int32_t step = problem_.first_step(trial.width);
  const auto w = static_cast<std::size_t>(trial.width);
  std::int32_t first = (here.first + step - 1) / step * step;
  for (; first + trial.width <= here.first + here.size; first += step) {
    const std::size_t begin = here.begin + static_cast<std::size_t>(first - here.first);
    Nanoseconds top = 0;
    Nanoseconds sum = 0;
    for (std::size_t r = begin; r < begin + w; ++r) {
      top = std::max(top, floors_[r]);
      sum += floors_[r];
    }
    consider(trial, static_cast<std::int32_t>(pit), first, top, top * trial.width - sum,
             std::span(tops_).subspan(begin, w), here.ceiling, best);
  }
}

void Skyline::place(BundleId bundle, std::int32_t size, Nanoseconds target, Reach reach,
                    std::int64_t& work) {
  const auto sizes = problem_.sizes();
  const auto begin =
      static_cast<std::size_t>(std::lower_bound(sizes.begin(), sizes.end(), size) - sizes.begin());
  const std::size_t num_sizes = problem_.is_aligned() ? 2 : 4;
  const std::vector<Nanoseconds>& height = wide_.height;
  // How many micro-batches several items take is known too late for a hole.
  const bool is_single = problem_.items_of(bundle).size() == 1;
  const Nanoseconds least_area = problem_.cost(problem_.cheapest_price(size), bundle) * size;
  const auto try_size = [&](std::size_t k, Spot& best) {
    if (!problem_.fits(sizes[k], bundle)) return;
    const Nanoseconds least = problem_.cost(problem_.cheapest_price(sizes[k]), bundle);
    if (!best.is_late && best.waste < least * sizes[k] - least_area) return;
    const Windows& windows = windows_of(sizes[k]);
    Trial trial{.bundle = bundle,
                .width = sizes[k],
                .least_area = least_area,
                .least_waste = least * sizes[k] - least_area,
                .target = target,
                .prices = windows.prices};
    work -= static_cast<std::int64_t>(height.size() / 8 + pits_.size() / 8);
    for (std::size_t pit = 0; pit < pits_.size() && is_single; ++pit) {
      if (pits_[pit].size < sizes[k] || pits_[pit].lowest + least > pits_[pit].ceiling) continue;
      try_pit(trial, pit, best);
      work -= pits_[pit].size / 8;
    }
    try_top(trial, windows, best);
  };
  Spot best;
  const std::size_t end = std::min(sizes.size(), begin + num_sizes);
  for (std::size_t k = begin; k < end; ++k) try_size(k, best);
  // Sizes far above are worth their traffic only if they keep the target.
  std::int32_t tried = sizes[end - 1];
  for (std::size_t k = end; k < sizes.size() && best.is_late && reach == Reach::far; ++k) {
    if (sizes[k] < 2 * tried && k + 1 < sizes.size()) continue;
    tried = sizes[k];
    Spot far;
    try_size(k, far);
    if (!far.is_late) best = far;
  }
  put(bundle, best);
}

void Skyline::dig(std::int32_t first, std::span<const Nanoseconds> floors,
                  std::span<const std::int32_t> tops, Nanoseconds ceiling) {
  for (std::size_t r = 0; r < floors.size();) {
    if (ceiling - floors[r] <= shortest_) {
      ++r;
      continue;
    }
    Pit pit{.first = first + static_cast<std::int32_t>(r),
            .size = 0,
            .ceiling = ceiling,
            .lowest = floors[r],
            .begin = floors_.size()};
    for (; r < floors.size() && ceiling - floors[r] > shortest_; ++r) {
      ++pit.size;
      pit.lowest = std::min(pit.lowest, floors[r]);
      floors_.push_back(floors[r]);
      tops_.push_back(tops[r]);
    }
    pits_.push_back(pit);
  }
}

void Skyline::put(BundleId bundle, const Spot& spot) {
  const RankRange ranks{.first = spot.first, .size = spot.size};
  const auto w = static_cast<std::size_t>(spot.size);
  Nanoseconds end = spot.end;
  std::int32_t group = spot.joins;
  if (spot.joins >= 0) {
    WideGroup& joined = wide_.groups[static_cast<std::size_t>(group)];
    add_item(problem_, problem_.items_of(bundle)[0], joined);
    joined.end = end;
  } else {
    const std::size_t count = wide_.groups.size();
    const std::int32_t num_opened = open_groups(problem_, bundle, ranks, wide_.groups);
    end += (num_opened - 1) *
           Problem::slowed(problem_.price(spot.price).fixed, problem_.slowness(ranks));
    for (std::size_t g = count; g < wide_.groups.size(); ++g) {
      wide_.groups[g].start = spot.start;
      wide_.groups[g].end = end;
    }
    group = static_cast<std::int32_t>(wide_.groups.size()) - 1;
  }
  if (spot.pit < 0) {
    const auto f = static_cast<std::size_t>(spot.first);
    if (spot.joins < 0) {
      dig(spot.first, std::span(wide_.height).subspan(f, w), std::span(top_of_).subspan(f, w),
          spot.start);
    }
    wide_.raise(ranks, end);
    changes_.push_back(ranks);
    std::fill(top_of_.begin() + spot.first, top_of_.begin() + spot.first + spot.size, group);
    return;
  }
  const Pit pit = pits_[static_cast<std::size_t>(spot.pit)];
  const std::size_t begin = pit.begin + static_cast<std::size_t>(spot.first - pit.first);
  const std::vector<Nanoseconds> floors(floors_.begin() + static_cast<std::ptrdiff_t>(begin),
                                        floors_.begin() + static_cast<std::ptrdiff_t>(begin + w));
  const std::vector<std::int32_t> tops(tops_.begin() + static_cast<std::ptrdiff_t>(begin),
                                       tops_.begin() + static_cast<std::ptrdiff_t>(begin + w));
  if (spot.joins < 0) dig(spot.first, floors, tops, spot.start);
  for (std::size_t r = begin; r < begin + w; ++r) {
    floors_[r] = end;
    tops_[r] = group;
  }
  // A pit that is full holds nothing more.
  const auto begin_of_pit = floors_.begin() + static_cast<std::ptrdiff_t>(pit.begin);
  Pit& here = pits_[static_cast<std::size_t>(spot.pit)];
  here.lowest = *std::min_element(begin_of_pit, begin_of_pit + pit.size);
  if (here.ceiling - here.lowest <= shortest_) {
    here = pits_.back();
    pits_.pop_back();
  }
}

std::vector<Gap> Skyline::gaps() const {
  std::vector<Gap> gaps;
  for (const Pit& pit : pits_) {
    for (std::int32_t r = 0; r < pit.size; ++r) {
      const Nanoseconds floor = floors_[pit.begin + static_cast<std::size_t>(r)];
      if (pit.ceiling - floor <= shortest_) continue;
      gaps.push_back({.rank = pit.first + r, .start = floor, .end = pit.ceiling});
    }
  }
  return gaps;
}

}  // namespace isochron
