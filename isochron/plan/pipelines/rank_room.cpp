// A path of 1F1B goes down over d stages with slot k, less the d backwards before k, and up with
// slot j, less the d forwards after j (simulate/order_bound.cpp). Let t be the longest slot, and a
// forward the lesser part f of it; the other way round time runs backwards.
//
// Simple: down with the first slot, up with the last one of length t. The forwards after it are
// shorter than f, so a rank with work W takes W + d * (t - 2f).
//
// Sums: in a step of W + d * (r * (t - f) + y * f) no slot rises by more than r and none falls by
// more than y. So the d forwards after t are at least d * (ratio - y) in units of f, with
// ratio = (t - f) / f, and every slot x among them needs d * (ratio * x - y) after itself. With
// weights w_0 = a for t and w_i >= (w_i-1 + .. + w_i-d - 1) / (d * ratio) for the i-th after it the
// sum of these inequalities bounds the volume behind t: at least d * (ratio * a - y * sum of w).
// Likewise in front, with 1 / ratio. Both volumes together are no more than W - t, which makes a
// line in W and t: little work beside a long slot leaves nothing for it to hide behind.
//
// Journey: with the longest slot all the way down and up again every other one counts with the
// lesser part of its first or its last visit.
//
// Slots are paid for, and the fewer there are, the more a rank waits (pipeline_bubble.cpp).

#include "isochron/plan/pipelines/rank_room.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "isochron/core/memo.h"

namespace isochron {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

// Of the least weights that begin with `first`; infinite if they do not end, or are more than
// `limit`.
double sum_of_weights(double first, std::size_t depth, double ratio, double limit) {
  constexpr std::size_t max_weights = 400;
  std::vector<double> weights = {first};
  double sum = first;
  double window = first;
  for (std::size_t i = 1; window > 1; ++i) {
    if (i == max_weights || sum > limit) return infinite;
    weights.push_back((window - 1) / (static_cast<double>(depth) * ratio));
    sum += weights.back();
    window += weights.back();
    if (i >= depth) window -= weights[i - depth];
  }
  return sum;
}

// The largest first weight whose sum is not above a limit, which is at least 1.
double first_weight(double limit, std::size_t depth, double ratio) {
  double low = 1;
  double high = limit;
  constexpr int num_halvings = 12;
  for (int i = 0; i < num_halvings; ++i) {
    const double middle = (low + high) / 2;
    (sum_of_weights(middle, depth, ratio, limit) <= limit ? low : high) = middle;
  }
  return low;
}

}  // namespace

RankRoom::RankRoom(const PipelineShape& shape, Pass pass, double forward_share, double fixed,
                   std::int32_t max_slots)
    : fixed_(fixed), bubble_(shape, pass, forward_share, max_slots) {
  const double depth = shape.stages - 1;
  const double visits = shape.virtual_;
  lost_ = 4 * depth;
  transfers_ = shape.transfer_ns * (shape.stages - 1) * (pass == Pass::train ? 2 : 1);
  if (pass == Pass::forward) {
    // Down with the longest slot, which misses nothing.
    add({.slope = 0, .wait = depth / visits});
    return;
  }
  const double lesser = std::min(forward_share, 1 - forward_share);
  ends_ = depth / visits * lesser * fixed;
  add({.slope = 1 - lesser / visits, .wait = shape.stages - lesser / visits});
  if (shape.virtual_ > 1) {
    for (const RoomLine& line : long_slot_lines(shape, forward_share)) add(line);
    return;
  }
  add({.slope = 0, .wait = depth * (1 - 2 * lesser)});
  constexpr double least_share = 0.1;  // weights of very unequal passes do not end
  if (lesser < least_share) return;
  const double ratio = (1 - lesser) / lesser;
  const auto num_before = static_cast<std::size_t>(shape.stages - 1);
  for (const double behind : {1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0}) {
    const double sum_behind = sum_of_weights(behind, num_before, ratio, infinite);
    if (sum_behind == infinite) break;
    const double in_front = first_weight(ratio * sum_behind, num_before, 1 / ratio);
    const double slope = lesser / sum_behind;  // of both sides: their sums are as their costs
    add({.slope = slope, .wait = slope * (depth * (in_front / ratio + behind * ratio) + 1)});
  }
}

void RankRoom::add(const RoomLine& line) {
  // The first and the last slot are counted in the sums.
  lines_.push_back({.wait = line.wait,
                    .ends = line.slope == 0 ? ends_ : 0,
                    .work_per_time = line.slope < 1 ? 1 / (1 - line.slope) : 0});
}

double RankRoom::area(double time, double length, SlotRange num_slots) const {
  double work = time / (1 + bubble_.share(num_slots.most));
  for (const Line& line : lines_) {
    const double left = time - line.ends - line.wait * length;
    if (line.work_per_time > 0) {
      work = std::min(work, left * line.work_per_time);
    } else if (left < 0) {
      return 0;
    }
  }
  return work - fixed_ * num_slots.least;
}

double time_in_room(const Problem& problem, const RankRoom& room, Nanoseconds step) {
  const double share = problem.options().pass == Pass::train ? 1 : problem.model().forward_share;
  return static_cast<double>(step - room.transfers()) * problem.topology().pipeline.stages / share;
}

double wait_for_transfers(const Problem& problem) {
  const PipelineShape& shape = problem.topology().pipeline;
  if (problem.options().pass == Pass::forward) return 0;
  return static_cast<double>(shape.transfer_ns) * shape.stages;
}

RankRoom rank_room_of(const Problem& problem) {
  const PipelineShape& shape = problem.topology().pipeline;
  constexpr std::int32_t max_known = 512;
  const Pass pass = problem.options().pass;
  const double forward_share = problem.model().forward_share;
  const auto fixed = static_cast<double>(problem.microbatch());
  const std::int32_t max_slots = std::min(problem.num_items() + shape.group, max_known);
  // The steps of a run all ask for the same.
  using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t, Nanoseconds, Pass, double,
                         double, std::int32_t>;
  static Memo<Key, RankRoom> known(256);
  return known.of({shape.stages, shape.virtual_, shape.group, shape.transfer_ns, pass,
                   forward_share, fixed, max_slots},
                  [&] { return RankRoom(shape, pass, forward_share, fixed, max_slots); });
}

}  // namespace isochron
