// Bounds weigh all bundles many times, so thousands of them are put into some hundred classes: of
// those whose areas on their smallest size are alike, each size has the least ratio to that area
// and the least time that any of them has there. They weigh no less than their areas on the
// smallest size times the best of these ratios. Only traffic makes ratios differ, and not by much.

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
    const bool is_unlike =
        together == Together::none || (together == Together::wide && ranges.size() < 2) ||
        (together == Together::alike && sizes[i] * 8 >= sizes[ranges.back().first] * 9);
    if (ranges.empty() || is_unlike) {
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

class ChoiceClasses {
 public:
  void add(const std::vector<Choice>& choices, bool is_item) {
    const Choice& first = choices.front();
    if (first.area <= 0) return;  // weighs nothing
    // By the exponent of the area and the first five bits of its fraction.
    const std::uint64_t step = std::bit_cast<std::uint64_t>(first.area) >> (52 - 5);
    const auto size = static_cast<std::uint64_t>(first.size);
    const auto [found, is_new] =
        place_of_.try_emplace(step << 32 | size << 1 | (is_item ? 1U : 0U), classes_.size());
    if (is_new) classes_.emplace_back();
    Class& alike = classes_[found->second];
    alike.area += first.area;
    auto place = alike.ratios.begin();
    for (const Choice& choice : choices) {
      const double ratio = choice.area / first.area;
      while (place != alike.ratios.end() && place->size < choice.size) ++place;
      if (place == alike.ratios.end() || place->size > choice.size) {
        place =
            alike.ratios.insert(place, {.size = choice.size, .area = ratio, .time = choice.time});
        continue;
      }
      place->area = std::min(place->area, ratio);
      place->time = std::min(place->time, choice.time);
    }
  }

  void append_to(std::vector<std::vector<Choice>>& result) && {
    for (Class& alike : classes_) {
      for (Choice& choice : alike.ratios) choice.area *= alike.area;
      result.push_back(std::move(alike.ratios));
    }
  }

 private:
  struct Class {
    double area = 0;             // on the smallest size
    std::vector<Choice> ratios;  // areas in parts of that
  };

  std::unordered_map<std::uint64_t, std::size_t> place_of_;  // of a class, by what is alike
  std::vector<Class> classes_;
};

}  // namespace

BundleChoices bundle_choices(const Problem& problem, std::span<const std::int32_t> sizes) {
  constexpr std::size_t few_sizes = 64;
  const bool are_few = sizes.size() <= few_sizes || !problem.has_ordered_links();
  const std::vector<SizeRange> alone = size_ranges(problem, sizes, Together::none);
  const std::vector<SizeRange> alike =
      size_ranges(problem, sizes, are_few ? Together::none : Together::alike);
  const std::vector<SizeRange> wide = size_ranges(problem, sizes, Together::wide);
  // What takes no longer than that on the smallest size is short whatever it runs on.
  const double hardly_long = problem.has_ordered_links() ? longest_time(problem, sizes) / 8 : 0;
  BundleChoices result;
  ChoiceClasses classes;
  // Of one bundle, the second until a longer one takes its place.
  struct Own {
    std::vector<Choice> choices;
    bool is_item = false;
  };
  Own own;
  Own longest;
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    own.choices.clear();
    own.is_item = problem.items_of(bundle).size() == 1;
    double least = infinite;
    double fastest = infinite;
    // Short ones hardly need wide groups.
    const bool is_short = problem.fits(sizes.front(), bundle);
    const bool is_very_short =
        is_short && own.is_item &&
        static_cast<double>(problem.least_cost(sizes.front(), bundle)) <= hardly_long;
    for (SizeRange range : is_very_short ? wide : is_short ? alike : alone) {
      while (range.first < range.last && !problem.fits(sizes[range.first], bundle)) ++range.first;
      const std::int32_t size = sizes[range.first];
      if (!problem.fits(size, bundle)) continue;
      // Where links are ordered no larger group has the smaller area, so that all of the range have
      // at least that of the first, and the time of that area on the last.
      const double area = static_cast<double>(problem.least_cost(size, bundle)) * size;
      const double time = own.is_item ? area / sizes[range.last] + range.fixed : 0;
      if (time >= fastest && area >= least) continue;
      own.choices.push_back({.size = size, .area = area, .time = time});
      least = std::min(least, area);
      fastest = std::min(fastest, time);
    }
    result.area += least;
    if (longest.choices.empty() || fastest > result.longest) {
      result.longest = fastest;
      std::swap(own, longest);
    }
    if (!own.choices.empty()) classes.add(own.choices, own.is_item);
  }
  if (!longest.choices.empty()) result.classes.push_back(std::move(longest.choices));
  std::move(classes).append_to(result.classes);
  return result;
}

}  // namespace isochron
