// Bounds weigh all bundles many times, so thousands of them are put into some hundred classes: of
// those whose areas on their smallest size are alike, each size has the least ratio to that area
// and the least time that any of them has there. They weigh no less than their areas on the
// smallest size times the best of these ratios. Only traffic makes ratios differ, and not by much.
// Bundles of several items are alike if their longest ones are too; then the same is said of the
// longest, the two longest and so on.

#include "isochron/plan/pipelines/bundle_choices.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_map>
#include <utility>

namespace isochron {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

// Sizes that are judged together, as places from `first` to `last`.
struct SizeRange {
  std::size_t first = 0;
  std::size_t last = 0;
  double fixed = 0;  // least of a micro-batch
};

// Which sizes are judged together: none, those that differ by less than an eighth, or all but the
// smallest.
enum class Together { none, alike, wide };

std::vector<SizeRange> size_ranges(const Problem& problem, std::span<const std::int32_t> sizes,
                                   Together together) {
  std::vector<SizeRange> ranges;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto fixed = static_cast<double>(problem.least_fixed(sizes[i]));
    // Areas grow within a range, wherever it begins for a bundle.
    const bool is_begun = !ranges.empty() && problem.grows_from(sizes[i - 1]);
    const bool is_alike =
        (together == Together::wide && ranges.size() > 1) ||
        (together == Together::alike && is_begun && sizes[i] * 8 < sizes[ranges.back().first] * 9);
    if (!is_begun || !is_alike) {
      ranges.push_back({.first = i, .last = i, .fixed = fixed});
    } else {
      ranges.back().last = i;
      ranges.back().fixed = std::min(ranges.back().fixed, fixed);
    }
  }
  return ranges;
}

// Of the item that takes longest on its smallest size, at its fastest; 0 if there is none.
double longest_time(const Problem& problem, std::span<const std::int32_t> sizes) {
  Nanoseconds most = 0;
  BundleId longest = -1;
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    if (problem.items_of(bundle).size() != 1) continue;
    const std::int32_t size = problem.sizes()[problem.smallest_place(bundle)];
    const Nanoseconds area = problem.least_cost(size, bundle) * size;
    if (area <= most) continue;
    most = area;
    longest = bundle;
  }
  double fastest = infinite;
  for (const std::int32_t size : sizes) {
    if (longest < 0 || !problem.fits(size, longest)) continue;
    fastest = std::min(fastest, static_cast<double>(problem.least_cost(size, longest)));
  }
  return fastest == infinite ? 0 : fastest;
}

// A choice of as many bundles as `factor` has of the unit.
Choice scaled(Choice choice, double factor) {
  for (Choice::Part& part : choice.parts) part.area *= factor;
  choice.area *= factor;
  return choice;
}

// What a choice says of its first parts together, for each number of them, and back.
Choice summed(Choice choice) {
  for (std::size_t k = 1; k < choice.num_parts; ++k) {
    choice.parts[k].area += choice.parts[k - 1].area;
  }
  return choice;
}
Choice parted(Choice sums) {
  for (std::size_t k = sums.num_parts; k-- > 1;) {
    sums.parts[k].area -= sums.parts[k - 1].area;
  }
  return sums;
}

// What holds of both, in sums.
void weaken(Choice& sums, const Choice& other) {
  const auto part_of = [](const Choice& choice, std::size_t k) {
    return choice.parts[std::min(k, choice.num_parts - 1)];
  };
  const std::size_t count = std::max(sums.num_parts, other.num_parts);
  for (std::size_t k = count; k-- > 0;) {
    const Choice::Part a = part_of(sums, k);
    const Choice::Part b = part_of(other, k);
    sums.parts[k] = {.area = std::min(a.area, b.area), .time = std::min(a.time, b.time)};
  }
  sums.num_parts = count;
  sums.area = std::min(sums.area, other.area);
}

class ChoiceClasses {
 public:
  void add(const std::vector<Choice>& choices, bool is_item) {
    const Choice& first = choices.front();
    if (first.area <= 0) return;  // weighs nothing
    // By the exponent of the area and the first five bits of its fraction, and the first two of the
    // time of the longest of several items.
    const std::uint64_t area = std::bit_cast<std::uint64_t>(first.area) >> (52 - 5);
    const std::uint64_t time = is_item ? 0 : std::bit_cast<std::uint64_t>(first.time()) >> (52 - 2);
    const auto size = static_cast<std::uint64_t>(first.size);
    const auto [found, is_new] = place_of_.try_emplace(
        area << 46 | time << 32 | size << 1 | (is_item ? 1U : 0U), classes_.size());
    if (is_new) classes_.emplace_back();
    Class& alike = classes_[found->second];
    alike.area += first.area;
    auto place = alike.ratios.begin();
    const double factor = 1 / first.area;
    for (const Choice& choice : choices) {
      while (place != alike.ratios.end() && place->size < choice.size) ++place;
      if (place == alike.ratios.end() || place->size > choice.size) {
        place = alike.ratios.insert(place, summed(scaled(choice, factor)));
      } else if (is_item) {
        place->area = std::min(place->area, choice.area * factor);
        place->parts.front() = {.area = place->area,
                                .time = std::min(place->time(), choice.time())};
      } else {
        weaken(*place, summed(scaled(choice, factor)));
      }
    }
  }

  void append_to(std::vector<std::vector<Choice>>& result) && {
    for (Class& alike : classes_) {
      for (Choice& choice : alike.ratios) choice = scaled(parted(choice), alike.area);
      result.push_back(std::move(alike.ratios));
    }
  }

 private:
  struct Class {
    double area = 0;             // on the smallest size
    std::vector<Choice> ratios;  // sums in parts of that
  };

  std::unordered_map<std::uint64_t, std::size_t> place_of_;  // of a class, by what is alike
  std::vector<Class> classes_;
};

// The items of a bundle that are listed by themselves if it has several, longest first.
using LongItems = std::vector<ItemId>;

void find_long_items(const Problem& problem, BundleId bundle, LongItems& found) {
  found.clear();
  const auto items = problem.items_of(bundle);
  if (items.size() == 1) return;
  const auto tokens = [&](ItemId item) { return problem.tokens(1, item); };
  for (const ItemId item : items) {
    const auto place = std::find_if(found.begin(), found.end(),
                                    [&](ItemId other) { return tokens(other) < tokens(item); });
    if (place == found.end() && found.size() + 1 == Choice::max_parts) continue;
    found.insert(place, item);
    if (found.size() == Choice::max_parts) found.pop_back();
  }
}

// A bundle of several items on groups of these sizes, with its area on the first. Areas grow from
// there on, so that all of them have at least that one, and the time of that area on the last.
Choice choice_of(const Problem& problem, double whole, const LongItems& long_items,
                 std::int32_t size, std::int32_t largest, double fixed) {
  Choice choice{.size = size, .area = whole};
  double rest = whole;
  double time = infinite;
  const auto add = [&](double area, double least_time) {
    time = std::min(time, least_time);
    choice.parts[choice.num_parts++] = {.area = area, .time = time};
    rest -= area;
  };
  for (const ItemId item : long_items) {
    const double area = static_cast<double>(problem.least_item_cost(size, item)) * size;
    add(area, area / largest + fixed);
  }
  if (rest > 0) add(rest, fixed);
  return choice;
}

}  // namespace

BundleChoices bundle_choices(const Problem& problem, std::span<const std::int32_t> sizes) {
  constexpr std::size_t few_sizes = 64;
  const bool are_few = sizes.size() <= few_sizes;
  const std::vector<SizeRange> alone = size_ranges(problem, sizes, Together::none);
  const std::vector<SizeRange> alike =
      size_ranges(problem, sizes, are_few ? Together::none : Together::alike);
  const std::vector<SizeRange> wide = size_ranges(problem, sizes, Together::wide);
  // What takes no longer than that on the smallest size is short whatever it runs on.
  const double hardly_long = longest_time(problem, sizes) / 8;
  BundleChoices result;
  ChoiceClasses classes;
  // Of one bundle, the second until a longer one takes its place.
  struct Own {
    std::vector<Choice> choices;
    LongItems long_items;
  };
  Own own;
  Own longest;
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    own.choices.clear();
    find_long_items(problem, bundle, own.long_items);
    double least = infinite;
    double fastest = infinite;
    // Short ones hardly need wide groups.
    const bool is_short = problem.fits(sizes.front(), bundle);
    const bool is_very_short =
        is_short && own.long_items.empty() &&
        static_cast<double>(problem.least_cost(sizes.front(), bundle)) <= hardly_long;
    for (SizeRange range : is_very_short ? wide : is_short ? alike : alone) {
      while (range.first < range.last && !problem.fits(sizes[range.first], bundle)) ++range.first;
      const std::int32_t size = sizes[range.first];
      if (!problem.fits(size, bundle)) continue;
      const auto cost = static_cast<double>(problem.least_cost(size, bundle));
      const double area = cost * size;
      if (own.long_items.empty()) {
        const bool is_one = range.first == range.last;
        const double time = (is_one ? cost : area / sizes[range.last]) + range.fixed;
        if (time >= fastest && area >= least) continue;  // worse than another
        Choice& choice = own.choices.emplace_back();
        choice.size = size;
        choice.area = area;
        choice.num_parts = 1;
        choice.parts.front() = {.area = area, .time = time};
      } else {
        own.choices.push_back(
            choice_of(problem, area, own.long_items, size, sizes[range.last], range.fixed));
      }
      least = std::min(least, area);
      fastest = std::min(fastest, own.choices.back().time());
    }
    result.area += least;
    if (longest.choices.empty() || fastest > result.longest) {
      result.longest = fastest;
      std::swap(own, longest);
    }
    if (!own.choices.empty()) classes.add(own.choices, own.long_items.empty());
  }
  if (!longest.choices.empty()) result.classes.push_back(std::move(longest.choices));
  std::move(classes).append_to(result.classes);
  return result;
}

}  // namespace isochron
