// Bounds on every order, as lengths of paths that every schedule contains.
//
// Slot: a slot visits all chunks, down and up. Stage: a stage runs everything, after the first slot
// has come down to it and before the last one has gone up.
//
// Journey (virtual stages): journey_bound.cpp. Turn (1F1B without virtual stages): a path stays on
// stage s up to the forward of slot k, goes down with it to the last stage, d stages below, stays
// there to the backward of a slot j at or after k, goes up with that to s and stays. It meets every
// forward but those of the d slots after j, and every backward but those of the d slots before k:
//
//   stage s   F F F B F B [k]           . . . .  [j] F B F B B
//   last                    k B F B F B F  j
//
// In any order let k be the first slot whose way down is at least some length, and j the last whose
// way up is at least another. Before k are only slots with shorter ways down, after j only shorter
// ways up, so the d dearest of those are the most that the path can miss, and no slot is missed
// twice, since k is not after j. Where the largest slots are few, this is what makes 1F1B wait.
// A rise at one k and a fall at one j count for all such paths, so that weighted means of them
// bound the longest. What is missed before k and what after j cannot be the same slots:
// split_bound.cpp. The ends of an order, and paths that turn more than twice: place_bound.cpp.

#include "isochron/simulate/order_bound.h"

#include <algorithm>
#include <numeric>

#include "isochron/core/int128.h"
#include "isochron/simulate/journey_bound.h"
#include "isochron/simulate/largest_sum.h"
#include "isochron/simulate/place_bound.h"
#include "isochron/simulate/split_bound.h"

namespace isochron {

namespace {

using Sizes = std::vector<Nanoseconds>;
using Index = std::vector<std::size_t>;

// Costs by micro-batch and chunk.
class ChunkTable {
 public:
  ChunkTable(std::span<const PassCost> costs, const PipelineShape& shape) : costs_(shape) {
    for (const PassCost& cost : costs) costs_.add(cost);
  }
  [[nodiscard]] std::size_t num_slots() const { return costs_.num_rows(); }
  [[nodiscard]] Nanoseconds forward(std::size_t slot, std::int32_t chunk) const {
    return costs_.row(slot)[costs_.column(chunk, false)];
  }
  [[nodiscard]] Nanoseconds backward(std::size_t slot, std::int32_t chunk) const {
    return costs_.row(slot)[costs_.column(chunk, true)];
  }
  [[nodiscard]] const ChunkCosts& rows() const { return costs_; }

 private:
  ChunkCosts costs_;
};

// Sums over chunks do not exceed the cost of a slot by more than the rounding, so they fit 64 bits;
// sums over slots may not.
Nanoseconds clamped(Int128 time) {
  return static_cast<Nanoseconds>(std::min<Int128>(time, Int128{max_total_cost} + 1));
}

Int128 sum(const Sizes& sizes) { return std::accumulate(sizes.begin(), sizes.end(), Int128{0}); }

// The least head of one slot and tail of another; of the same one if there is no other.
Int128 min_ends(const Sizes& heads, const Sizes& tails) {
  if (heads.size() == 1) return Int128{heads[0]} + tails[0];
  const auto first =
      static_cast<std::size_t>(std::min_element(heads.begin(), heads.end()) - heads.begin());
  Int128 least = -1;
  const auto offer = [&](std::size_t i, std::size_t j) {
    const Int128 ends = Int128{heads[i]} + tails[j];
    if (i != j && (least < 0 || ends < least)) least = ends;
  };
  // Either the least head is taken, or its slot is the tail.
  for (std::size_t i = 0; i < heads.size(); ++i) {
    offer(first, i);
    offer(i, first);
  }
  return least;
}

Int128 slot_bound(const ChunkTable& table, const PipelineShape& shape, Pass pass) {
  const std::int32_t num_chunks = shape.num_chunks();
  Int128 longest = 0;
  for (std::size_t slot = 0; slot < table.num_slots(); ++slot) {
    Int128 time = 0;
    for (std::int32_t chunk = 0; chunk < num_chunks; ++chunk) {
      time += table.forward(slot, chunk) + table.backward(slot, chunk);
    }
    longest = std::max(longest, time);
  }
  const std::int32_t num_ways = pass == Pass::train ? 2 : 1;
  return longest + Int128{shape.transfer_ns} * num_ways * (num_chunks - 1);
}

// `heads` and `tails` are the ways to the stage and from it, without transfers.
Int128 stage_bound(const ChunkTable& table, const PipelineShape& shape, std::int32_t stage,
                   const Sizes& heads, const Sizes& tails, std::int32_t num_transfers) {
  Int128 work = 0;
  for (std::size_t slot = 0; slot < table.num_slots(); ++slot) {
    for (std::int32_t chunk = stage; chunk < shape.num_chunks(); chunk += shape.stages) {
      work += table.forward(slot, chunk) + table.backward(slot, chunk);
    }
  }
  return work + min_ends(heads, tails) + Int128{shape.transfer_ns} * num_transfers;
}

Int128 stages_bound(const ChunkTable& table, const PipelineShape& shape, Pass pass) {
  const std::size_t num_slots = table.num_slots();
  Sizes heads(num_slots, 0);
  Sizes tails(num_slots, 0);
  const bool is_train = pass == Pass::train;
  const std::int32_t last_layer = shape.num_chunks() - shape.stages;
  if (!is_train) {
    for (std::size_t slot = 0; slot < num_slots; ++slot) {
      for (std::int32_t stage = 1; stage < shape.stages; ++stage) {
        tails[slot] += table.forward(slot, last_layer + stage);
      }
    }
  }
  Int128 bound = 0;
  for (std::int32_t stage = 0; stage < shape.stages; ++stage) {
    bound = std::max(bound, stage_bound(table, shape, stage, heads, tails,
                                        is_train ? 2 * stage : shape.stages - 1));
    for (std::size_t slot = 0; slot < num_slots; ++slot) {
      heads[slot] += table.forward(slot, stage);
      if (is_train) {
        tails[slot] += table.backward(slot, stage);
      } else if (stage + 1 < shape.stages) {
        tails[slot] -= table.forward(slot, last_layer + stage + 1);
      }
    }
  }
  return bound;
}

// Forwards alone without virtual stages: the first stage before a slot, that slot down, the last
// stage after it.
Int128 forward_bound(const ChunkTable& table, const PipelineShape& shape) {
  const std::int32_t last = shape.stages - 1;
  Int128 work = 0;
  Int128 longest = 0;
  for (std::size_t slot = 0; slot < table.num_slots(); ++slot) {
    const Nanoseconds least = std::min(table.forward(slot, 0), table.forward(slot, last));
    Int128 way = -Int128{least};
    for (std::int32_t stage = 0; stage < shape.stages; ++stage) way += table.forward(slot, stage);
    work += least;
    longest = std::max(longest, way);
  }
  return work + longest + Int128{shape.transfer_ns} * last;
}

// One side of a turn, down or up.
struct Side {
  explicit Side(std::size_t num_slots) : ways(num_slots), missed(num_slots), by_way(num_slots) {
    std::iota(by_way.begin(), by_way.end(), std::size_t{0});
  }

  // Equal stages need it once.
  void sort() {
    const auto is_shorter = [&](std::size_t a, std::size_t b) {
      return ways[a] != ways[b] ? ways[a] < ways[b] : a < b;
    };
    if (!std::is_sorted(by_way.begin(), by_way.end(), is_shorter)) {
      std::sort(by_way.begin(), by_way.end(), is_shorter);
    }
  }

  Sizes ways;    // what the turning slot adds to the path
  Sizes missed;  // what the path loses if it misses a slot
  Index by_way;  // shortest first, once sorted
};

// What a slot's way adds, less the most that can be missed among slots with shorter ways.
std::vector<Int128> gains(const Side& side, std::size_t depth) {
  const Index& by_way = side.by_way;
  std::vector<Int128> result(side.ways.size());
  LargestSum<Int128> largest(depth);
  std::size_t num_shorter = 0;
  for (const std::size_t slot : by_way) {
    for (; side.ways[by_way[num_shorter]] < side.ways[slot]; ++num_shorter) {
      largest.add(side.missed[by_way[num_shorter]]);
    }
    result[slot] = side.ways[slot] - largest.sum();
  }
  return result;
}

// For each slot the best gain on one side that some path has together with the slot's way on the
// other side: up to the longest way of the slots whose way on the other side is as long.
std::vector<Int128> best_partners(const std::vector<Int128>& gain_of, const Index& by_way,
                                  const Side& other) {
  const Index& by_other_way = other.by_way;
  std::vector<Int128> best_up_to(by_way.size());  // in the order of by_way
  for (std::size_t i = 0; i < by_way.size(); ++i) {
    best_up_to[i] = i == 0 ? gain_of[by_way[i]] : std::max(best_up_to[i - 1], gain_of[by_way[i]]);
  }
  std::vector<std::size_t> place_of(by_way.size());
  for (std::size_t i = 0; i < by_way.size(); ++i) place_of[by_way[i]] = i;

  std::vector<Int128> result(by_way.size());
  std::size_t furthest = 0;  // in by_way, of the slots whose other way is as long
  std::size_t next = by_other_way.size();
  for (std::size_t i = by_other_way.size(); i-- > 0;) {
    const std::size_t slot = by_other_way[i];
    for (; next > 0 && other.ways[by_other_way[next - 1]] >= other.ways[slot]; --next) {
      furthest = std::max(furthest, place_of[by_other_way[next - 1]]);
    }
    result[slot] = best_up_to[furthest];
  }
  return result;
}

// Weights of the two sides in a mean.
struct Weights {
  Int128 down = 1;
  Int128 up = 1;
};

// The weighted sum of the gains of a slot on both sides, where no other slot is missed on both. Of
// the slots sorted by the difference of what they lose, those missed before are best taken from one
// end and those missed after from the other.
Int128 joint_gain(const Side& down, const Side& up, std::size_t slot, std::size_t depth,
                  Weights weights) {
  struct Missed {
    Int128 before;
    Int128 after;
  };
  std::vector<Missed> others;
  for (std::size_t i = 0; i < down.ways.size(); ++i) {
    const bool is_before = down.ways[i] < down.ways[slot];
    const bool is_after = up.ways[i] < up.ways[slot];
    if (!is_before && !is_after) continue;
    others.push_back({is_before ? weights.down * down.missed[i] : Int128{0},
                      is_after ? weights.up * up.missed[i] : Int128{0}});
  }
  std::stable_sort(others.begin(), others.end(), [](const Missed& a, const Missed& b) {
    return a.before - a.after > b.before - b.after;
  });
  std::vector<Int128> before_sums = {0};
  LargestSum<Int128> before(depth);
  for (const Missed& other : others) {
    before.add(other.before);
    before_sums.push_back(before.sum());
  }
  Int128 most = before_sums.back();
  LargestSum<Int128> after(depth);
  for (std::size_t i = others.size(); i-- > 0;) {
    after.add(others[i].after);
    most = std::max(most, before_sums[i] + after.sum());
  }
  return weights.down * down.ways[slot] + weights.up * up.ways[slot] - most;
}

Int128 rounded_up(Int128 value, Int128 divisor) {
  return value <= 0 ? 0 : (value + divisor - 1) / divisor;
}

// At which weights a slot loses as much on one side as on the other, in sixteenths, and as many.
std::vector<Weights> mean_weights(const Side& down, const Side& up) {
  constexpr Int128 parts = 16;
  const Int128 lost_down = std::max<Int128>(1, sum(down.missed));
  const Int128 lost_up = std::max<Int128>(1, sum(up.missed));
  const bool is_up_less = lost_up < lost_down;
  const Int128 less = std::min(lost_down, lost_up) * parts / std::max(lost_down, lost_up);
  if (less == 0 || less == parts) return {{}};
  return {{}, is_up_less ? Weights{less, parts} : Weights{parts, less}};
}

// The most that a turn at one depth adds to the work of a stage, whatever the order.
//
// With G the longest path, G >= rise + fall for every pair that a path has. For one slot r and
// weights d <= u, u G >= d (rise_r + fall_r) + (u - d) (rise + fall_r) with the best rise beside r:
// the first two parts are the joint gain of r.
Int128 turn_gain(const Side& down, const Side& up, std::size_t depth, bool is_joint) {
  const auto rises = gains(down, depth);
  const auto falls = gains(up, depth);
  const auto rise_beside = best_partners(rises, down.by_way, up);
  Int128 best = 0;
  for (std::size_t slot = 0; slot < falls.size(); ++slot) {
    best = std::max(best, rise_beside[slot] + falls[slot]);
  }
  if (!is_joint) return best;

  const auto fall_beside = best_partners(falls, up.by_way, down);
  Index slots(rises.size());
  std::iota(slots.begin(), slots.end(), std::size_t{0});
  constexpr std::size_t max_slots = 32;  // joint gains take O(slots) each; the top ones decide
  for (const Weights& weights : mean_weights(down, up)) {
    const auto estimate = [&](std::size_t slot) {
      return weights.down * rises[slot] + weights.up * falls[slot];
    };
    std::stable_sort(slots.begin(), slots.end(),
                     [&](std::size_t a, std::size_t b) { return estimate(a) > estimate(b); });
    for (std::size_t i = 0; i < std::min(max_slots, slots.size()); ++i) {
      const std::size_t slot = slots[i];
      const Int128 joint = joint_gain(down, up, slot, depth, weights);
      best = std::max(
          best,
          weights.down <= weights.up
              ? rounded_up(joint + (weights.up - weights.down) * rise_beside[slot], weights.up)
              : rounded_up(joint + (weights.down - weights.up) * fall_beside[slot], weights.down));
    }
  }
  return best;
}

// Joint gains, of the deepest turn, take the longest.
Int128 turn_bound(const ChunkTable& table, const PipelineShape& shape, bool is_joint) {
  const std::size_t num_slots = table.num_slots();
  const std::int32_t last = shape.stages - 1;
  Sizes heads(num_slots, 0), tails(num_slots, 0);
  Sizes down(num_slots, 0), up(num_slots, 0);  // through the stages from `stage` to the last
  for (std::size_t slot = 0; slot < num_slots; ++slot) {
    for (std::int32_t stage = 0; stage < last; ++stage) {
      heads[slot] += table.forward(slot, stage);
      tails[slot] += table.backward(slot, stage);
    }
    down[slot] = table.forward(slot, last);
    up[slot] = table.backward(slot, last);
  }
  // Going down, the path misses backwards, going up, forwards.
  Side turn_down(num_slots);
  Side turn_up(num_slots);
  Int128 bound = 0;
  for (std::int32_t stage = last; stage-- > 0;) {
    for (std::size_t slot = 0; slot < num_slots; ++slot) {
      const Nanoseconds forward = table.forward(slot, stage);
      const Nanoseconds backward = table.backward(slot, stage);
      heads[slot] -= forward;
      tails[slot] -= backward;
      down[slot] += forward;
      up[slot] += backward;
      // The path meets a slot on this stage or on the last one.
      turn_up.missed[slot] = std::min(forward, table.forward(slot, last));
      turn_down.missed[slot] = std::min(backward, table.backward(slot, last));
      turn_down.ways[slot] = down[slot] - turn_up.missed[slot];
      turn_up.ways[slot] = up[slot] - turn_down.missed[slot];
    }
    // Deeper than there are slots nothing more is missed: only the deepest matters.
    const auto depth = static_cast<std::size_t>(last - stage);
    if (depth > num_slots && stage > 0) continue;
    turn_down.sort();
    turn_up.sort();
    bound = std::max(bound, sum(turn_up.missed) + sum(turn_down.missed) + min_ends(heads, tails) +
                                turn_gain(turn_down, turn_up, depth, is_joint && stage == 0));
  }
  return bound + Int128{shape.transfer_ns} * 2 * last;
}

Int128 bound_of(const ChunkTable& table, const PipelineShape& shape, Pass pass, bool is_joint) {
  const Int128 bound = std::max(slot_bound(table, shape, pass), stages_bound(table, shape, pass));
  if (shape.stages == 1) return bound;
  if (shape.virtual_ > 1) {
    return pass == Pass::train ? std::max(bound, journey_bound(table.rows(), shape)) : bound;
  }
  return std::max(bound, pass == Pass::train ? turn_bound(table, shape, is_joint)
                                             : forward_bound(table, shape));
}

}  // namespace

Nanoseconds order_bound(std::span<const PassCost> costs, const PipelineShape& shape, Pass pass,
                        std::int64_t max_work) {
  if (costs.empty()) return 0;
  const ChunkTable table(costs, shape);
  Int128 bound = bound_of(table, shape, pass, true);
  const bool can_split = pass == Pass::train && shape.virtual_ == 1 && shape.shares.empty();
  if (can_split && shape.stages > 1 && max_work > 0) {
    const std::int64_t split_work = max_work / 8;  // enough for most; more of it gains little
    bound = std::max<Int128>(bound, split_bound(table.rows(), shape, split_work));
    bound = std::max<Int128>(bound, place_bound(table.rows(), shape, max_work - split_work));
  }
  return clamped(bound);
}

Nanoseconds quick_order_bound(std::span<const PassCost> costs, const PipelineShape& shape,
                              Pass pass) {
  return costs.empty() ? 0 : clamped(bound_of(ChunkTable(costs, shape), shape, pass, false));
}

}  // namespace isochron
