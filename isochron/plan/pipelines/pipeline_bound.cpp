// What is known of a pipeline before it is known what its slots hold.
//
// Stage: a stage does its share of the work of some rank that has at least the mean, after one slot
// has come down to it and before one has gone up. Item: the longest item visits all chunks.
//
// Long slots: for 1F1B without virtual stages. It takes the paths of simulate/order_bound.cpp:
// on the first stage up to the forward of slot k, with it down to the last stage, d = stages - 1
// below, there to the backward of slot j, with that up, and on. Such a path meets all but the
// forwards of the d slots after j and the backwards of the d slots before k. Let k be the first and
// j the last slot of at least t. What the path misses is in shorter slots, and of each of these it
// meets the forward or the backward. So a rank that has a slot of at least t takes as long as that
// slot on d stages, what its items cost in slots of at least t, and the lesser pass of all others.
// An item chooses its size; the mean over the ranks bounds the slowest.
//
// Number of slots: few of them make every rank wait (pipeline_bubble.cpp), many have to be paid.
// Longest slots: so do long ones, the rank that they are on (room_bound.cpp). Both for equal
// stages, virtual ones included.

#include "isochron/plan/pipelines/pipeline_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "isochron/plan/bounds/bounds.h"
#include "isochron/plan/pipelines/rank_room.h"
#include "isochron/plan/pipelines/room_bound.h"
#include "isochron/simulate/chunk_cost.h"

namespace isochron {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double slack = 1e-11;  // of sums in double: more than all their roundings

// Without the bounds that weigh every bundle for many times and lengths, or with them.
enum class Effort { little, full };

class PipelineBound {
 public:
  PipelineBound(const Problem& problem, std::span<const std::int32_t> sizes)
      : problem_(problem),
        shape_(problem.topology().pipeline),
        is_train_(problem.options().pass == Pass::train),
        fixed_(static_cast<double>(problem.microbatch())) {
    speed_ = problem.num_ranks();
    if (problem.has_speeds()) {
      const auto& speeds = problem.topology().rank_speed;
      speed_ = 0;
      for (const double speed : speeds) speed_ += speed;
      fastest_speed_ = *std::max_element(speeds.begin(), speeds.end());
    }
    const double forward = problem.model().forward_share;
    lesser_ = is_train_ ? std::min(forward, 1 - forward) : 1;
    pass_share_ = is_train_ ? 1 : forward;
    find_choices(sizes);
  }

  // `at_least`: some rank, or all of them together, works at least that long in a training pass;
  // `beside_fixed`: the same without the fixed cost of slots.
  Nanoseconds bound(Nanoseconds at_least, Nanoseconds beside_fixed, Effort effort) {
    auto whole = static_cast<double>(at_least);
    if (!problem_.has_speeds()) {
      beside_fixed_ = std::max(area_ / speed_, static_cast<double>(beside_fixed));
      whole = std::max(whole, beside_fixed_ + fixed_);
    }
    double best = stage_bound(whole);
    if (effort == Effort::full && shape_.virtual_ == 1 && !problem_.has_speeds()) {
      best = std::max(best, long_slots_bound());
    }
    if (shape_.shares.empty()) {
      best = std::max(
          best, effort == Effort::full ? equal_stages_bound(whole, best) : num_slots_bound(whole));
    }
    return std::max({Nanoseconds{0}, static_cast<Nanoseconds>(best * (1 - slack)),
                     static_cast<Nanoseconds>(item_bound())});
  }

 private:
  // Of a path over slots whose passes are rounded: at most half a nanosecond for each. No more than
  // group - 1 slots are empty.
  double rounding() const {
    return 2.0 + problem_.num_items() + shape_.group + shape_.num_chunks();
  }

  // Sizes that are judged together, as places from `first` to `last`.
  struct SizeRange {
    std::size_t first = 0;
    std::size_t last = 0;
    double fixed = 0;  // least of a micro-batch
  };

  // Every size alone, or those that differ by less than an eighth together.
  std::vector<SizeRange> size_ranges(std::span<const std::int32_t> sizes, bool is_alone) const {
    std::vector<SizeRange> ranges;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto fixed = static_cast<double>(problem_.least_fixed(sizes[i]));
      if (is_alone || ranges.empty() || sizes[i] * 8 >= sizes[ranges.back().first] * 9) {
        ranges.push_back({.first = i, .last = i, .fixed = fixed});
      } else {
        ranges.back().last = i;
        ranges.back().fixed = std::min(ranges.back().fixed, fixed);
      }
    }
    return ranges;
  }

  // What a bundle takes at least on the sizes of a range. Where links are ordered no larger group
  // has the smaller area, so that all have at least that of the first, and the time of that area on
  // the last.
  Choice choice_of(BundleId bundle, std::span<const std::int32_t> sizes,
                   const SizeRange& range) const {
    const std::int32_t size = sizes[range.first];
    const double area = static_cast<double>(problem_.least_cost(size, bundle)) * size;
    const bool is_item = problem_.items_of(bundle).size() == 1;
    return {
        .size = size, .area = area, .time = is_item ? area / sizes[range.last] + range.fixed : 0};
  }

  void find_choices(std::span<const std::int32_t> sizes) {
    constexpr std::size_t few_sizes = 64;
    const bool are_few = sizes.size() <= few_sizes || !problem_.has_ordered_links();
    const std::vector<SizeRange> alone = size_ranges(sizes, true);
    const std::vector<SizeRange> together = size_ranges(sizes, are_few);
    choices_.resize(static_cast<std::size_t>(problem_.num_bundles()));
    for (BundleId bundle = 0; bundle < problem_.num_bundles(); ++bundle) {
      auto& choices = choices_[static_cast<std::size_t>(bundle)];
      double least = infinite;
      double fastest = infinite;
      // Short ones hardly need wide groups.
      const bool is_short = problem_.fits(sizes.front(), bundle);
      for (SizeRange range : is_short ? together : alone) {
        while (range.first < range.last && !problem_.fits(sizes[range.first], bundle)) {
          ++range.first;
        }
        if (!problem_.fits(sizes[range.first], bundle)) continue;
        const Choice choice = choice_of(bundle, sizes, range);
        if (choice.time >= fastest && choice.area >= least) continue;
        choices.push_back(choice);
        least = std::min(least, choice.area);
        fastest = std::min(fastest, choice.time);
      }
      area_ += least;
      longest_ = std::max(longest_, fastest);
    }
  }

  double share_of(std::int32_t stage) const {
    double share = 0;
    for (std::int32_t chunk = stage; chunk < shape_.num_chunks(); chunk += shape_.stages) {
      share += shape_.shares.empty() ? 1.0 / shape_.num_chunks()
                                     : shape_.shares[static_cast<std::size_t>(chunk)];
    }
    return share;
  }

  double stage_bound(double whole) const {
    PassCost least = split_cost(problem_.microbatch(), problem_.model().forward_share);
    if (!is_train_) least.backward = 0;
    if (problem_.has_speeds()) least = {};
    double best = 0;
    double ways = 0;  // to the stage and from it
    const std::int32_t last_layer = shape_.num_chunks() - shape_.stages;
    if (!is_train_) {
      for (std::int32_t stage = 1; stage < shape_.stages; ++stage) {
        ways += static_cast<double>(chunk_cost(shape_, least.forward, last_layer + stage) +
                                    shape_.transfer_ns);
      }
    }
    const double lost = is_train_ ? 1 : rounding();
    for (std::int32_t stage = 0; stage < shape_.stages; ++stage) {
      best = std::max(best, share_of(stage) * pass_share_ * whole * (1 - slack) + ways - lost);
      ways += static_cast<double>(chunk_cost(shape_, least.forward, stage));
      if (is_train_) {
        ways +=
            static_cast<double>(chunk_cost(shape_, least.backward, stage) + 2 * shape_.transfer_ns);
      } else if (stage + 1 < shape_.stages) {
        ways -= static_cast<double>(chunk_cost(shape_, least.forward, last_layer + stage + 1));
      }
    }
    return best;
  }

  double item_bound() const {
    const double lost = is_train_ && !problem_.has_speeds() ? 0 : 2;
    return longest_ / fastest_speed_ * pass_share_ - lost + transfers();
  }
  double transfers() const {
    return static_cast<double>(shape_.transfer_ns) * (shape_.num_chunks() - 1) *
           (is_train_ ? 2 : 1);
  }

  double long_slots_bound() const {
    const double part = std::min(share_of(0), share_of(shape_.stages - 1));
    std::vector<double> lengths;
    for (const auto& choices : choices_) {
      for (const Choice& choice : choices) lengths.push_back(choice.time);
    }
    std::sort(lengths.begin(), lengths.end());
    constexpr std::size_t max_lengths = 64;
    const std::size_t step = std::max<std::size_t>(1, lengths.size() / max_lengths);
    double best = 0;
    for (std::size_t i = lengths.size(); i > 0; i -= std::min(i, step)) {
      const double length = lengths[i - 1];
      double weighed = 0;
      for (const auto& choices : choices_) {
        double least = infinite;
        for (const Choice& choice : choices) {
          least = std::min(least, choice.area * (choice.time >= length ? 1 : lesser_));
        }
        weighed += least;
      }
      const double mean = weighed / problem_.num_ranks();
      // A rank without such a slot meets the lesser pass of all it has.
      const double with = part * (mean + fixed_) + (1 - part) * length;
      const double without = lesser_ > 0 ? part * mean / lesser_ : infinite;
      best = std::max(best, std::min(with, without));
    }
    return pass_share_ * best * (1 - slack) - rounding();
  }

  // `at_least` is another bound.
  double equal_stages_bound(double whole, double at_least) const {
    const std::int32_t step = shape_.virtual_ > 1 ? shape_.group : 1;
    // An empty slot helps nobody, but their number is a multiple.
    const std::int32_t most = std::max(step, (problem_.num_items() + step - 1) / step * step);
    constexpr std::int32_t max_known = 512;
    const RankRoom room(shape_, problem_.options().pass, problem_.model().forward_share, fixed_,
                        std::min(most, max_known));
    const auto other_parts = static_cast<double>(room.transfers());
    const double to_time = pass_share_ / shape_.stages;
    const double lost = rounding() + room.lost();
    double time = num_slots_time(room.bubble(), whole, most);
    time = std::max(time, (at_least + lost - other_parts) / to_time);
    if (!problem_.has_speeds()) {
      const RoomQuestion question{.choices = choices_,
                                  .room = room,
                                  .fixed = fixed_,
                                  .num_ranks = problem_.num_ranks(),
                                  .max_slots = most,
                                  .slots_per_block = step,
                                  .is_paced = problem_.options().sync == Sync::microbatch};
      time = std::max(time, room_bound(question, time));
    }
    return to_time * time * (1 - slack) + other_parts - lost;
  }

  double num_slots_bound(double whole) const {
    const std::int32_t most = problem_.num_items() + shape_.group;
    constexpr std::int32_t max_known = 128;
    const PipelineBubble bubble(shape_, problem_.options().pass, problem_.model().forward_share,
                                std::min(most, max_known));
    return pass_share_ / shape_.stages * num_slots_time(bubble, whole, most) * (1 - slack) -
           rounding();
  }

  double num_slots_time(const PipelineBubble& bubble, double whole, std::int32_t most) const {
    double best = infinite;
    for (std::int32_t count = 1; count <= most; ++count) {
      const double work = std::max({whole, beside_fixed_ + count * fixed_,
                                    (area_ + count * fixed_ * problem_.num_ranks()) / speed_});
      if (work >= best) break;
      best = std::min(best, work * (1 + bubble.share(count)));
    }
    return best;
  }

  const Problem& problem_;
  const PipelineShape& shape_;
  bool is_train_;
  double fixed_;
  double speed_ = 1;
  double fastest_speed_ = 1;
  double lesser_ = 0;                // part of a cost that the lesser pass takes
  double pass_share_ = 1;            // part of a cost that the pass takes
  double area_ = 0;                  // least, of all bundles
  double beside_fixed_ = -infinite;  // work of some rank without the fixed cost of its slots
  double longest_ = 0;               // slot that some item needs
  std::vector<std::vector<Choice>> choices_;
};

}  // namespace

Nanoseconds pipeline_bound(const Problem& problem, Nanoseconds work) {
  const Nanoseconds whole = std::max(
      equal_count_bound(problem),
      problem.options().sync == Sync::microbatch ? slot_bound(problem) : step_bound(problem));
  return PipelineBound(problem, problem.sizes()).bound(whole, work, Effort::full);
}

Nanoseconds static_pipeline_bound(const Problem& problem, std::int32_t size) {
  return PipelineBound(problem, {&size, 1}).bound(0, 0, Effort::little);
}

}  // namespace isochron
