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
//
// Slow ranks: times count as on the fastest rank, on which a rank r has the speed v(r) <= 1. A slot
// of r with items of cost a, whose group has the speed v <= v(r), takes at least (fixed + a) / v.
// Let the items count a * v(r) / v on r: over the ranks of a group that is their area, where faster
// ranks that wait for a slow one are more ranks, and over the slots of r no more than v(r) times
// what these take beside the fixed cost. So what is said above of the work of each of so many ranks
// holds for the mean by v, and r is v(r) ranks.

#include "isochron/plan/pipelines/pipeline_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "isochron/plan/bounds/bounds.h"
#include "isochron/plan/pipelines/rank_room.h"
#include "isochron/plan/pipelines/room_bound.h"
#include "isochron/plan/pipelines/uneven_stages.h"
#include "isochron/simulate/chunk_cost.h"

namespace isochron {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double slack = 1e-11;  // of sums in double: more than all their roundings

// Without the bounds that weigh every bundle for many times and lengths, or with them.
enum class Effort { little, full };

class PipelineBound {
 public:
  PipelineBound(const Problem& problem, const RankRoom& room, BundleChoices bundles)
      : problem_(problem),
        room_(room),
        shape_(problem.topology().pipeline),
        is_train_(problem.options().pass == Pass::train),
        fixed_(static_cast<double>(problem.microbatch())),
        bundles_(std::move(bundles)) {
    ranks_ = problem.num_ranks();
    if (problem.has_speeds()) {
      const auto& speeds = problem.topology().rank_speed;
      const auto [slowest, fastest] = std::minmax_element(speeds.begin(), speeds.end());
      fastest_speed_ = *fastest;
      least_rank_ = *slowest / *fastest;
      ranks_ = 0;
      for (const double speed : speeds) ranks_ += speed / fastest_speed_;
    }
    const double forward = problem.model().forward_share;
    lesser_ = is_train_ ? std::min(forward, 1 - forward) : 1;
    pass_share_ = is_train_ ? 1 : forward;
  }

  // `at_least`: some rank, or all of them together, works at least that long in a training pass;
  // `beside_fixed`: the same without the fixed cost of slots.
  Nanoseconds bound(Nanoseconds at_least, Nanoseconds beside_fixed, Effort effort) {
    beside_fixed_ =
        std::max(bundles_.area / ranks_, static_cast<double>(beside_fixed) * fastest_speed_);
    const double whole =
        std::max(static_cast<double>(at_least) * fastest_speed_, beside_fixed_ + fixed_);
    double best = stage_bound(whole);
    if (effort == Effort::full && shape_.virtual_ == 1) {
      best = std::max(best, long_slots_bound(best));
    }
    if (shape_.shares.empty()) {
      best = std::max(best, equal_stages_bound(whole, best, effort));
    } else if (shape_.virtual_ == 1) {
      best = std::max(best, uneven_stages_bound(whole));
    }
    return std::max({Nanoseconds{0}, static_cast<Nanoseconds>(best * (1 - slack)),
                     static_cast<Nanoseconds>(item_bound())});
  }

 private:
  // Of a path over slots whose passes are rounded: at most half a nanosecond for each. No more than
  // group - 1 slots are empty. What slow ranks take is rounded as well.
  double rounding() const {
    const double once = 2.0 + problem_.num_items() + shape_.group + shape_.num_chunks();
    return problem_.has_speeds() ? 2 * once : once;
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
    const auto fastest =
        static_cast<Nanoseconds>(static_cast<double>(problem_.microbatch()) / fastest_speed_);
    PassCost least = split_cost(fastest, problem_.model().forward_share);
    if (!is_train_) least.backward = 0;
    double best = 0;
    double ways = 0;  // to the stage and from it
    const std::int32_t last_layer = shape_.num_chunks() - shape_.stages;
    if (!is_train_) {
      for (std::int32_t stage = 1; stage < shape_.stages; ++stage) {
        ways += static_cast<double>(chunk_cost(shape_, least.forward, last_layer + stage) +
                                    shape_.transfer_ns);
      }
    }
    const double lost = is_train_ && !problem_.has_speeds() ? 1 : rounding();
    const double to_time = pass_share_ / fastest_speed_ * (1 - slack);
    for (std::int32_t stage = 0; stage < shape_.stages; ++stage) {
      best = std::max(best, share_of(stage) * whole * to_time + ways - lost);
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
    return bundles_.longest / fastest_speed_ * pass_share_ - lost + transfers();
  }
  double transfers() const {
    return static_cast<double>(shape_.transfer_ns) * (shape_.num_chunks() - 1) *
           (is_train_ ? 2 : 1);
  }

  static double summed_area(const Choice& choice) {
    double sum = 0;
    for (const Choice::Part& part : choice.all()) sum += part.area;
    return sum;
  }

  // `at_least` is another bound.
  double long_slots_bound(double at_least) const {
    const double share = std::min(share_of(0), share_of(shape_.stages - 1));
    const double to_time = pass_share_ / fastest_speed_;
    double best = at_least / to_time;
    const double most_mean = bundles_.area / ranks_;
    // The most that a weight of 1 for everything would make of it is less than the best.
    const auto is_too_short = [&](double length) {
      return (share * (most_mean + fixed_) + (1 - share) * length) * (1 + 1e-9) < best;
    };
    std::vector<double> lengths;
    std::size_t num_parts = 0;
    for (const auto& choices : bundles_.classes) {
      for (const Choice& choice : choices) {
        for (const Choice::Part& part : choice.all()) {
          if (!is_too_short(part.time)) lengths.push_back(part.time);
          ++num_parts;
        }
      }
    }
    std::sort(lengths.begin(), lengths.end());
    constexpr std::size_t max_lengths = 64;
    const std::size_t step = std::max<std::size_t>(1, num_parts / max_lengths);
    // What each class and those after it weigh at most.
    std::vector<double> most_from(bundles_.classes.size() + 1, 0);
    for (std::size_t c = bundles_.classes.size(); c-- > 0;) {
      double least = infinite;
      for (const Choice& choice : bundles_.classes[c]) least = std::min(least, summed_area(choice));
      most_from[c] = most_from[c + 1] + least;
    }
    for (std::size_t i = lengths.size(); i > 0; i -= std::min(i, step)) {
      const double length = lengths[i - 1];
      if (is_too_short(length)) break;
      // A rank with such a slot, and one without it, which meets the lesser pass of all it has.
      const auto time_of = [&](double all) {
        const double mean = all / ranks_;
        const double with = share * (mean + fixed_) + (1 - share) * length;
        const double without = lesser_ > 0 ? share * mean / lesser_ : infinite;
        return std::min(with, without);
      };
      double weighed = 0;
      for (std::size_t c = 0; c < bundles_.classes.size(); ++c) {
        if (time_of((weighed + most_from[c]) * (1 + 1e-9)) < best) break;
        double least = infinite;
        for (const Choice& choice : bundles_.classes[c]) {
          double sum = 0;
          for (const Choice::Part& part : choice.all()) {
            sum += part.area * (part.time >= length ? 1 : lesser_);
          }
          least = std::min(least, sum);
        }
        weighed += least;
      }
      best = std::max(best, time_of(weighed));
    }
    return to_time * best * (1 - slack) - rounding();
  }

  // `at_least` is another bound.
  double equal_stages_bound(double whole, double at_least, Effort effort) const {
    const auto other_parts = static_cast<double>(room_.transfers());
    const double to_time = pass_share_ / shape_.stages / fastest_speed_;
    const double lost = rounding() + room_.lost();
    const auto part = [&](std::int32_t count) { return 1 + room_.bubble().share(count); };
    double time = num_slots_time(whole, part);
    time = std::max(time, (at_least + lost - other_parts) / to_time);
    if (effort == Effort::full) {
      const RoomQuestion question{.choices = bundles_.classes,
                                  .room = room_,
                                  .fixed = fixed_,
                                  .ranks = ranks_,
                                  .least_rank = least_rank_,
                                  .max_slots = max_slots(),
                                  .slots_per_block = shape_.group,
                                  .is_paced = problem_.options().sync == Sync::microbatch};
      time = std::max(time, room_bound(question, time));
    }
    return to_time * time * (1 - slack) + other_parts - lost;
  }

  double uneven_stages_bound(double whole) const {
    const UnevenStages stages = uneven_stages_of(problem_);
    const double time =
        num_slots_time(whole, [&](std::int32_t count) { return stages.part(count); });
    return pass_share_ / fastest_speed_ * time * (1 - slack) - rounding();
  }

  // An empty slot helps nobody, but their number is a multiple.
  std::int32_t max_slots() const {
    const std::int32_t step = shape_.group;
    return std::max(step, (problem_.num_items() + step - 1) / step * step);
  }

  // Of what some rank works, that part at least which the number of its slots makes it take.
  template <class Part>
  double num_slots_time(double whole, const Part& part) const {
    double best = infinite;
    for (std::int32_t count = 1; count <= max_slots(); ++count) {
      const double work =
          std::max({whole, beside_fixed_ + count * fixed_,
                    (bundles_.area + count * fixed_ * problem_.num_ranks()) / ranks_});
      if (work * part(max_slots()) >= best) break;
      best = std::min(best, work * part(count));
    }
    return best;
  }

  const Problem& problem_;
  const RankRoom& room_;
  const PipelineShape& shape_;
  bool is_train_;
  double fixed_;
  double fastest_speed_ = 1;
  double ranks_ = 1;                 // in ranks as fast as the fastest
  double least_rank_ = 1;            // the slowest, in these
  double lesser_ = 0;                // part of a cost that the lesser pass takes
  double pass_share_ = 1;            // part of a cost that the pass takes
  double beside_fixed_ = -infinite;  // work of some rank without the fixed cost of its slots
  BundleChoices bundles_;
};

}  // namespace

Nanoseconds pipeline_bound(const Problem& problem, const RankRoom& room) {
  const Nanoseconds whole = equal_count_bound(problem);
  PipelineBound pipelines(problem, room, bundle_choices(problem, problem.sizes()));
  const Nanoseconds bound = pipelines.bound(whole, 0, Effort::full);
  const auto raised_by = [&](Nanoseconds work) {
    return std::max(bound, pipelines.bound(work, 0, Effort::little));
  };
  // What a step without stages knows of its micro-batches is seldom more than a hundredth, of slots
  // seldom more than three.
  const bool is_paced = problem.options().sync == Sync::microbatch;
  const Nanoseconds likely = whole + whole / (is_paced ? 20 : 50);
  if (raised_by(likely) == bound) return bound;
  return raised_by(is_paced ? slot_bound(problem) : step_bound(problem));
}

Nanoseconds pipeline_bound_of(const Problem& problem, const RankRoom& room, Nanoseconds work) {
  return PipelineBound(problem, room, {}).bound(0, work, Effort::little);
}

Nanoseconds static_pipeline_bound(const Problem& problem, const RankRoom& room, std::int32_t size) {
  BundleChoices bundles;
  Nanoseconds dearest = 0;  // bundle, which some rank runs
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    const Nanoseconds cost = problem.least_cost(size, bundle);
    dearest = std::max(dearest, cost);
    bundles.area += static_cast<double>(cost) * problem.least_span(size);
    for (const ItemId item : problem.items_of(bundle)) {
      const auto own = static_cast<double>(problem.least_item_cost(size, item));
      bundles.longest = std::max(bundles.longest, own);
    }
  }
  bundles.longest += static_cast<double>(problem.least_fixed(size));
  bundles.longest *= problem.least_delay(size);
  const auto own_time =
      static_cast<Nanoseconds>(static_cast<double>(dearest) / problem.fastest_speed(size));
  return PipelineBound(problem, room, std::move(bundles)).bound(0, own_time, Effort::little);
}

Nanoseconds side_by_side_bound(const Problem& problem) {
  const Nanoseconds work = left_over_work(problem);
  return work == 0 ? 0 : pipeline_bound_of(problem, rank_room_of(problem), work);
}

}  // namespace isochron
