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

// Sizes by themselves, or those together that differ by less than an eighth.
std::vector<SizeRange> size_ranges(const Problem& problem, std::span<const std::int32_t> sizes,
                                   bool are_alike_together) {
  std::vector<SizeRange> ranges;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto fixed = static_cast<double>(problem.least_fixed(sizes[i]));
    // Areas grow within a range, wherever it begins for a bundle.
    const bool is_begun = !ranges.empty() && problem.grows_from(sizes[i - 1]);
    if (!are_alike_together || !is_begun || sizes[i] * 8 >= sizes[ranges.back().first] * 9) {
      ranges.push_back({.first = i, .last = i, .fixed = fixed});
    } else {
      ranges.back().last = i;
      ranges.back().fixed = std::min(ranges.back().fixed, fixed);
    }
  }
  return ranges;
}

// Which items are short.
struct Shortness {
  BundleId longest = -1;  // of one item, which is not
  double time = 0;        // of those that are, at most
};

// Much less than the slot of the longest item takes, or than a rank does.
Shortness find_shortness(const Problem& problem, std::span<const std::int32_t> sizes) {
  Nanoseconds most = -1;
  BundleId longest = -1;
  double sum = 0;
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    const std::int32_t size = problem.sizes()[problem.smallest_place(bundle)];
    const Nanoseconds area = problem.least_cost(size, bundle) * size;
    sum += static_cast<double>(area);
    if (problem.items_of(bundle).size() != 1 || area <= most) continue;
    most = area;
    longest = bundle;
  }
  if (longest < 0) return {};
  double fastest = infinite;
  for (const std::int32_t size : sizes) {
    if (!problem.fits(size, longest)) continue;
    fastest = std::min(fastest, static_cast<double>(problem.least_cost(size, longest)));
  }
  const double of_rank = sum / problem.num_ranks();
  // A hundredth of the step, for each bundle: where that is little, more of them are short.
  const double share = problem.options().pass == Pass::train ? 1 : problem.model().forward_share;
  const double step = of_rank * share / problem.topology().pipeline.stages;
  constexpr double little = 2000;
  const double part = step / 100 < little * problem.num_bundles() ? 32 : 64;
  return {.longest = longest,
          .time = std::max(fastest == infinite ? 0 : fastest / 8, of_rank / part)};
}

// Written in place: a copy would wait for what was just written.
void add_item_choice(std::vector<Choice>& choices, std::int32_t size, double area, double time) {
  Choice& choice = choices.emplace_back();
  choice.size = size;
  choice.area = area;
  choice.num_parts = 1;
  choice.parts.front() = {.area = area, .time = time};
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
  // Of one item that has one choice, on the smallest size.
  void add_short(double area, double time) {
    if (area <= 0) return;  // weighs nothing
    // By the exponent of the area, which is at least 1, and the first five bits of its fraction.
    const std::uint64_t place =
        (std::bit_cast<std::uint64_t>(area) - std::bit_cast<std::uint64_t>(1.0)) >> (52 - 5);
    if (place >= short_.size()) short_.resize(place + 1);
    Choice::Part& alike = short_[place];
    alike.time = alike.area == 0 ? time : std::min(alike.time, time);
    alike.area += area;
  }

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

  void append_to(std::vector<std::vector<Choice>>& result, std::int32_t smallest) && {
    for (const Choice::Part& alike : short_) {
      if (alike.area == 0) continue;
      add_item_choice(result.emplace_back(), smallest, alike.area, alike.time);
    }
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

  std::vector<Choice::Part> short_;                          // by what is alike
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

// What groups of one size, or of several that are judged together, make of a cost.
struct Pace {
  double span = 1;   // ranks of the fastest speed that it takes
  double delay = 1;  // its time, on a group as fast as any of the size
  double part = 1;   // of that time, on the largest of several sizes
};

// Where sizes are judged together, what is said of slow ranks is left out.
Pace pace_of(const Problem& problem, std::int32_t size, std::int32_t largest) {
  if (size != largest) {
    return {.span = static_cast<double>(size), .part = static_cast<double>(size) / largest};
  }
  return {.span = problem.least_span(size), .delay = problem.least_delay(size)};
}

// A bundle of several items on groups of these sizes, with its cost on the first. Areas grow from
// there on, so that all of them have at least that one, and the time of that area on the last.
Choice choice_of(const Problem& problem, double cost, const LongItems& long_items,
                 std::int32_t size, const Pace& pace, double fixed) {
  Choice choice{.size = size, .area = cost * pace.span};
  double rest = choice.area;
  double time = infinite;
  const auto add = [&](double area, double least_time) {
    time = std::min(time, least_time);
    choice.parts[choice.num_parts++] = {.area = area, .time = time};
    rest -= area;
  };
  for (const ItemId item : long_items) {
    const auto own = static_cast<double>(problem.least_item_cost(size, item));
    add(own * pace.span, (own * pace.part + fixed) * pace.delay);
  }
  if (rest > 0) add(rest, fixed * pace.delay);
  return choice;
}

}  // namespace

BundleChoices bundle_choices(const Problem& problem, std::span<const std::int32_t> sizes) {
  constexpr std::size_t few_sizes = 64;
  const bool are_few = sizes.size() <= few_sizes;
  const std::vector<SizeRange> alone = size_ranges(problem, sizes, false);
  const std::vector<SizeRange> alike = size_ranges(problem, sizes, !are_few);
  const Shortness shortness = find_shortness(problem, sizes);
  double least_fixed = infinite;
  for (const SizeRange& range : alone) least_fixed = std::min(least_fixed, range.fixed);
  BundleChoices result;
  ChoiceClasses classes;
  // Of one bundle, the second until a longer one takes its place.
  struct Own {
    std::vector<Choice> choices;
    LongItems long_items;
  };
  Own own;
  Own longest;
  // Most are short on the smallest size, which is their one choice.
  const bool grows = problem.grows_from(sizes.front());
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    if (grows && bundle != shortness.longest && problem.items_of(bundle).size() == 1 &&
        problem.fits(sizes.front(), bundle)) {
      const auto cost = static_cast<double>(problem.least_cost(sizes.front(), bundle));
      if (cost <= shortness.time) {
        const double area = cost * sizes.front();
        result.area += area;
        classes.add_short(area, area / sizes.back() + least_fixed);
        continue;
      }
    }
    own.choices.clear();
    find_long_items(problem, bundle, own.long_items);
    const bool is_item = own.long_items.empty();
    const bool may_be_short = is_item && bundle != shortness.longest;
    double least = infinite;
    double fastest = infinite;
    for (SizeRange range : problem.fits(sizes.front(), bundle) ? alike : alone) {
      while (range.first < range.last && !problem.fits(sizes[range.first], bundle)) ++range.first;
      const std::int32_t size = sizes[range.first];
      if (!problem.fits(size, bundle)) continue;
      const auto cost = static_cast<double>(problem.least_cost(size, bundle));
      // Larger groups of a short one are one choice with this: they have no less area, and at
      // least the time that it takes on the largest.
      const bool is_short = may_be_short && cost <= shortness.time && problem.grows_from(size);
      if (is_short) range = {.first = range.first, .last = sizes.size() - 1, .fixed = least_fixed};
      const Pace pace = pace_of(problem, size, sizes[range.last]);
      const double area = cost * pace.span;
      if (is_item) {
        const double time = (cost * pace.part + range.fixed) * pace.delay;
        if (time < fastest || area < least) add_item_choice(own.choices, size, area, time);
      } else {
        own.choices.push_back(choice_of(problem, cost, own.long_items, size, pace, range.fixed));
      }
      least = std::min(least, area);
      fastest = std::min(fastest, own.choices.back().time());
      if (is_short) break;
    }
    result.area += least;
    if (may_be_short && own.choices.size() == 1 && own.choices.front().size == sizes.front()) {
      classes.add_short(least, fastest);
      continue;
    }
    if (longest.choices.empty() || fastest > result.longest) {
      result.longest = fastest;
      std::swap(own, longest);
    }
    if (!own.choices.empty()) classes.add(own.choices, own.long_items.empty());
  }
  if (!longest.choices.empty()) result.classes.push_back(std::move(longest.choices));
  std::move(classes).append_to(result.classes, sizes.front());
  return result;
}

}  // namespace isochron
