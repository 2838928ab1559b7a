// What is known of a pipeline before it is known what its slots hold.
//
// Stage: a stage does its share of the work of some rank that has at least the mean, after one slot
// has come down to it and before one has gone up. Item: the longest item visits all chunks.
//
// The others are for 1F1B without virtual stages, and take the paths of simulate/order_bound.cpp:
// on the first stage up to the forward of slot k, with it down to the last stage, d = stages - 1
// below, there to the backward of slot j, with that up, and on. Such a path meets all but the
// forwards of the d slots after j and the backwards of the d slots before k.
//
// Long slots: let k be the first and j the last slot of at least t. What the path misses is in
// shorter slots, and of each of these it meets the forward or the backward. So a rank that has a
// slot of at least t takes as long as that slot on d stages, what its items cost in slots of at
// least t, and the lesser pass of all others. An item chooses its size; the mean over the ranks
// bounds the slowest.
//
// Number of slots: with k the first slot and j any, in weights u_j that make the mean of the paths
// 1 + e in every slot, all of m slots count 1 + e times, whatever is in them. Few slots have a
// large e, many pay for each. Forward only, the path stays on the first stage up to the longest
// slot and goes down with it, so that e is d / m.

// Longest slots: the longer the longest slot of a rank, the less work the rank can do in the time
// of a step (rank_room.cpp); and the shorter, the more slots it must pay for. An item takes a part
// of a rank: its area over the most that a rank with a slot as long as the item can do. All parts
// together are no more than there are ranks, and what is beside the longest item has its room.

#include "isochron/plan/pipelines/pipeline_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "isochron/plan/bounds/bounds.h"
#include "isochron/plan/pipelines/rank_room.h"
#include "isochron/simulate/chunk_cost.h"

namespace isochron {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double slack = 1e-11;  // of sums in double: more than all their roundings

// A bundle on groups of one size.
struct Choice {
  std::int32_t size = 1;
  double area = 0;  // ranks * cost
  double time = 0;  // at least, of a slot with one of its items
};

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

  // `at_least`: some rank, or all of them together, works at least that long in a training pass.
  Nanoseconds bound(Nanoseconds at_least) const {
    auto whole = static_cast<double>(at_least);
    if (!problem_.has_speeds()) whole = std::max(whole, area_ / speed_ + fixed_);
    double best = stage_bound(whole);
    if (shape_.virtual_ == 1 && !problem_.has_speeds()) best = std::max(best, long_slots_bound());
    if (shape_.virtual_ == 1 && shape_.shares.empty()) {
      best = std::max(best, num_slots_bound(whole));
      if (!problem_.has_speeds()) best = std::max(best, longest_slots_bound(best));
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

  void find_choices(std::span<const std::int32_t> sizes) {
    choices_.resize(static_cast<std::size_t>(problem_.num_bundles()));
    for (BundleId bundle = 0; bundle < problem_.num_bundles(); ++bundle) {
      auto& choices = choices_[static_cast<std::size_t>(bundle)];
      double least = infinite;
      double fastest = infinite;
      const bool is_item = problem_.items_of(bundle).size() == 1;
      for (const std::int32_t size : sizes) {
        if (!problem_.fits(size, bundle)) continue;
        const auto cost = static_cast<double>(problem_.least_cost(size, bundle));
        const double time = is_item ? cost + static_cast<double>(problem_.least_fixed(size)) : 0;
        if (time >= fastest && cost * size >= least) continue;
        choices.push_back({.size = size, .area = cost * size, .time = time});
        least = std::min(least, cost * size);
        fastest = std::min(fastest, time);
      }
      area_ += least;
      if (fastest > longest_) {
        longest_ = fastest;
        longest_bundle_ = static_cast<std::size_t>(bundle);
      }
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
  double longest_slots_bound(double at_least) const {
    const RankRoom room(shape_, problem_.options().pass, problem_.model().forward_share, fixed_);
    // Lengths by classes, each with the room beside its shortest.
    constexpr double classes_per_doubling = 24;
    const auto class_of = [&](double length) {
      return length <= 1 ? 0
                         : static_cast<std::size_t>(std::log2(length) * classes_per_doubling) + 1;
    };
    std::vector<std::size_t> classes;
    for (const auto& choices : choices_) {
      for (const Choice& choice : choices) classes.push_back(class_of(choice.time));
    }
    const auto [least_class, last_class] = std::minmax_element(classes.begin(), classes.end());
    const std::size_t first_class = *least_class;
    std::vector<double> parts(1 + *last_class - first_class);
    for (std::size_t& length_class : classes) length_class -= first_class;
    struct ItemPart {
      double ranks = infinite;
      double area = infinite;
    };
    std::vector<ItemPart> items(choices_.size());
    const auto is_enough = [&](double time) {
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto place = static_cast<double>(first_class + i) - 1;
        const double shortest =
            place < 0 ? 0 : std::exp2(place / classes_per_doubling) * (1 - slack);
        const double area = room.area(time, shortest);
        parts[i] = area > 0 ? 1 / area : infinite;
      }
      double ranks = 0;
      auto length_class = classes.begin();
      for (std::size_t i = 0; i < items.size(); ++i) {
        items[i] = {};
        for (const Choice& choice : choices_[i]) {
          items[i].ranks = std::min(items[i].ranks, choice.area * parts[*length_class++]);
          items[i].area = std::min(items[i].area, choice.area);
        }
        ranks += items[i].ranks;
      }
      if (ranks > problem_.num_ranks()) return false;
      // On the ranks of the longest item all others have no more room than that one. At best those
      // that take the most of a rank for their area are there.
      std::sort(items.begin(), items.end(), [](const ItemPart& a, const ItemPart& b) {
        return a.ranks * b.area > b.ranks * a.area;
      });
      for (const Choice& choice : choices_[longest_bundle_]) {
        double left = choice.size * room.area(time, choice.time);
        double room_beside = problem_.num_ranks() - choice.size;
        if (left <= 0) continue;
        for (const ItemPart& item : items) {
          if (left <= 0 || room_beside >= ranks) break;
          room_beside += item.ranks * std::min(1.0, item.area > 0 ? left / item.area : 1.0);
          left -= item.area;
        }
        if (room_beside * (1 + slack) >= ranks) return true;
      }
      return false;
    };
    double low = std::max(1.0, at_least * shape_.stages / pass_share_);
    if (is_enough(low)) return 0;
    double high = low;
    do {
      high *= 1.25;
    } while (!is_enough(high));
    constexpr int num_halvings = 12;
    for (int i = 0; i < num_halvings; ++i) {
      const double middle = (low + high) / 2;
      (is_enough(middle) ? high : low) = middle;
    }
    return pass_share_ * low / shape_.stages * (1 - slack) - rounding() - room.lost();
  }

  double num_slots_bound(double whole) const {
    const double depth = shape_.stages - 1;
    const std::int32_t most = problem_.num_items() + shape_.group;
    double best = infinite;
    std::vector<double> weights;  // u, as multiples of e
    double sum = 0;
    double window = 0;
    for (std::int32_t count = 1; count <= most; ++count) {
      const double work = std::max(whole, (area_ + count * fixed_ * problem_.num_ranks()) / speed_);
      if (work >= best) break;
      weights.push_back(count == 1 ? 0 : (1 + lesser_ * window) / (depth * (1 - lesser_)));
      sum += weights.back();
      window += weights.back();
      if (count > shape_.stages - 1) {
        window -= weights[static_cast<std::size_t>(count - shape_.stages)];
      }
      double more = depth;
      if (!is_train_) {
        more = depth / count;
      } else if (count > 1) {
        more = std::min(depth * lesser_, 1 / sum);
      }
      best = std::min(best, work * (1 + more));
    }
    return pass_share_ * best / shape_.stages * (1 - slack) - rounding();
  }

  const Problem& problem_;
  const PipelineShape& shape_;
  bool is_train_;
  double fixed_;
  double speed_ = 1;
  double fastest_speed_ = 1;
  double lesser_ = 0;      // part of a cost that the lesser pass takes
  double pass_share_ = 1;  // part of a cost that the pass takes
  double area_ = 0;        // least, of all bundles
  double longest_ = 0;     // slot that some item needs
  std::size_t longest_bundle_ = 0;
  std::vector<std::vector<Choice>> choices_;
};

}  // namespace

Nanoseconds pipeline_bound(const Problem& problem) {
  const Nanoseconds whole = std::max(
      equal_count_bound(problem),
      problem.options().sync == Sync::microbatch ? slot_bound(problem) : step_bound(problem));
  return PipelineBound(problem, problem.sizes()).bound(whole);
}

Nanoseconds pipeline_bound(const Problem& problem, std::int32_t size) {
  return PipelineBound(problem, {&size, 1}).bound(0);
}

}  // namespace isochron
