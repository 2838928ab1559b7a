// A step takes what its slots do, and what a path gains that goes down with some slot and up with
// another (simulate/order_bound.cpp). Where no way down gains more than `rise` the slots in front
// grow from one to the next, each by what those before it make the path miss; where no way up gains
// more than `fall`, those behind shrink likewise. Between them all are as long as the longest.
//
// Rises are those with which the longest is reached at some slot exactly: the later, the less is
// gained and the less work is done in front. Falls likewise, or such that all time is used.

#include "isochron/plan/pipelines/slot_heights.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "isochron/core/memo.h"
#include "isochron/plan/pipelines/block_turn.h"
#include "isochron/plan/pipelines/virtual_peak.h"
#include "isochron/simulate/pipeline_time.h"

namespace isochron {

namespace {

class Heights {
 public:
  Heights(const PipelineShape& shape, double forward_share, std::int32_t num_slots)
      : turn_(block_turn(shape)),
        forward_(forward_share),
        width_(turn_.slots_per_block),
        num_blocks_(static_cast<std::size_t>(num_slots / turn_.slots_per_block)) {}

  // Lengths of blocks from the front, or the back, if a path gains 1 there.
  std::vector<double> rising() const {
    std::vector<double> blocks(num_blocks_);
    climb(forward_, blocks);
    return blocks;
  }
  std::vector<double> falling() const {
    std::vector<double> blocks(num_blocks_);
    climb(1 - forward_, blocks);
    return blocks;
  }

  double width() const { return width_; }
  std::size_t num_blocks() const { return num_blocks_; }

  std::vector<double> of_slots(const std::vector<double>& blocks, double scale) const {
    std::vector<double> heights;
    for (const double block : blocks) {
      heights.insert(heights.end(), static_cast<std::size_t>(turn_.slots_per_block), block * scale);
    }
    return heights;
  }

 private:
  // `taken` is the part of a pass that takes a path along; the other is missed. None is shorter
  // than the one before it.
  void climb(double taken, std::vector<double>& blocks) const {
    const double per_length = 1 / (taken * turn_.gain * width_);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      double allowed = 1;
      for (std::size_t back = 0; back < std::min(turn_.missed.size(), i); ++back) {
        allowed += (1 - taken) * turn_.missed[back] * width_ * blocks[i - 1 - back];
      }
      blocks[i] = allowed * per_length;
    }
  }

  BlockTurn turn_;
  double forward_;
  double width_;
  std::size_t num_blocks_;
};

// Blocks near the ends longer or shorter, if that makes more of the time: paths that turn more than
// twice are not in the sums. As long as the time allows.
std::vector<double> polished(const PipelineShape& shape, double forward_share,
                             const Heights& heights, std::vector<double> blocks, double time) {
  constexpr double unit = 1e9;  // nanoseconds of a height of 1
  const std::size_t num_blocks = blocks.size();
  const auto width = static_cast<std::size_t>(heights.width());
  PipelineTime pipeline(shape, static_cast<std::int32_t>(num_blocks * width), Pass::train);
  ChunkCosts rows(shape);
  std::vector<std::int32_t> order(num_blocks * width);
  std::iota(order.begin(), order.end(), 0);
  const auto cost_of = [&](std::size_t block) {
    return split_cost(std::llround(blocks[block] * unit), forward_share);
  };
  for (std::size_t slot = 0; slot < order.size(); ++slot) rows.add(cost_of(slot / width));
  const Nanoseconds transfers = 2 * shape.transfer_ns * (shape.stages - 1);
  const auto time_per_work = [&] {
    const double work = std::accumulate(blocks.begin(), blocks.end(), 0.0) * heights.width() * unit;
    return static_cast<double>(pipeline.makespan(rows, order) - transfers) * shape.stages / work;
  };
  double least = time_per_work();
  const auto set_block = [&](std::size_t block, double height) {
    blocks[block] = height;
    for (std::size_t i = 0; i < width; ++i) rows.set(block * width + i, cost_of(block));
  };
  const std::size_t reach =
      std::min((num_blocks + 1) / 2, 2 * static_cast<std::size_t>(shape.stages));
  const auto try_factor = [&](double factor) {
    for (std::size_t i = 0; i < 2 * reach; ++i) {
      const std::size_t block = i % 2 == 0 ? i / 2 : num_blocks - 1 - i / 2;
      const double before = blocks[block];
      set_block(block, before * factor);
      const double changed = time_per_work();
      if (changed < least) {
        least = changed;
      } else {
        set_block(block, before);
      }
    }
  };
  // Blocks of several slots are few, and further from the best.
  if (shape.virtual_ > 1) {
    for (const double factor : {1.4, 0.7, 1.2, 0.8, 1.1, 0.9}) try_factor(factor);
  }
  for (const double factor : {1.1, 0.9, 1.04, 0.96}) try_factor(factor);
  const double work = std::accumulate(blocks.begin(), blocks.end(), 0.0) * heights.width();
  return heights.of_slots(blocks, time / (least * work));
}

// As many blocks in front, of which the last is 1 long, and the same behind, with all that is
// between.
struct Ramp {
  std::size_t num_front = 1;
  std::size_t num_back = 1;
};

// What the slowest stage takes of a slot, in parts of an equal stage.
double unevenness(const PipelineShape& shape) {
  if (shape.shares.empty()) return 1;
  std::vector<double> parts(static_cast<std::size_t>(shape.stages), 0);
  for (std::size_t chunk = 0; chunk < shape.shares.size(); ++chunk) {
    parts[chunk % parts.size()] += shape.shares[chunk];
  }
  return shape.stages * *std::max_element(parts.begin(), parts.end());
}

// How many slots a path counts that goes down once, beside those of the slowest stage.
double depth_of(const PipelineShape& shape) {
  return (shape.stages - unevenness(shape)) / shape.virtual_;
}

std::vector<double> equal_heights(const PipelineShape& shape, std::int32_t num_slots, double time) {
  const double counted = unevenness(shape) * num_slots + depth_of(shape);
  return std::vector<double>(static_cast<std::size_t>(num_slots), time / counted);
}

}  // namespace

std::vector<double> slot_heights(const PipelineShape& shape, Pass pass, double forward_share,
                                 std::int32_t num_slots, double time) {
  const bool is_flat =
      pass == Pass::forward || shape.stages == 1 || forward_share <= 0 || forward_share >= 1;
  if (is_flat) return equal_heights(shape, num_slots, time);
  const Heights heights(shape, forward_share, num_slots);
  const std::vector<double> rising = heights.rising();
  const std::vector<double> falling = heights.falling();
  const std::size_t num_blocks = heights.num_blocks();
  double best = 0;  // work in a unit of time
  Ramp ramp;
  double front = 0;
  for (std::size_t i = 0; i < num_blocks; ++i) {
    front += rising[i];
    double back = 0;
    for (std::size_t j = 0; i + j < num_blocks; ++j) {
      back += falling[j];
      const auto between = static_cast<double>(num_blocks - i - j) - 2;  // -1: the same block
      const double work = heights.width() * (front / rising[i] + back / falling[j] + between);
      const double needed = work + 1 / rising[i] + 1 / falling[j];
      if (work / needed <= best) continue;
      best = work / needed;
      ramp = {.num_front = i, .num_back = j};
    }
  }
  std::vector<double> blocks(num_blocks, 1);
  for (std::size_t i = 0; i < num_blocks; ++i) {
    if (i < ramp.num_front) blocks[i] = rising[i] / rising[ramp.num_front];
    if (i < ramp.num_back) blocks[num_blocks - 1 - i] = falling[i] / falling[ramp.num_back];
  }
  return polished(shape, forward_share, heights, std::move(blocks), time);
}

const std::vector<double>& SlotHeights::of(std::int32_t num_slots) {
  using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t, Nanoseconds, std::vector<double>,
                         Pass, double, std::int32_t>;
  static Memo<Key, std::vector<double>> known_of_process(4096);
  const auto [found, is_new] = known_.try_emplace(num_slots);
  if (is_new) {
    found->second = known_of_process.of(
        {shape_.stages, shape_.virtual_, shape_.group, shape_.transfer_ns, shape_.shares, pass_,
         forward_share_, num_slots},
        [&] { return slot_heights(shape_, pass_, forward_share_, num_slots, 1); });
  }
  return found->second;
}

namespace {

// What virtual_peak() says in a time of 1, for a longest slot of up to a fiftieth more and a
// shortest of up to twice as much: it takes much longer than to look it up.
std::vector<double> known_virtual_peak(const PipelineShape& shape, double forward_share,
                                       std::int32_t num_slots, double longest, double shortest) {
  using Key =
      std::tuple<std::int32_t, std::int32_t, std::int32_t, double, std::int32_t, double, double>;
  static Memo<Key, std::vector<double>> known(4096);
  const auto rounded_up = [](double value, double per_doubling) {
    return value > 0 ? std::exp2(std::ceil(per_doubling * std::log2(value)) / per_doubling) : 0;
  };
  const double most = std::max(longest, std::min(rounded_up(longest, 32), 1.0 / shape.stages));
  const double least = std::min(most, rounded_up(shortest, 1));
  return known.of(
      {shape.stages, shape.virtual_, shape.group, forward_share, num_slots, most, least},
      [&] { return virtual_peak(shape, forward_share, num_slots, most, least); });
}

}  // namespace

std::vector<double> peak_heights(const PipelineShape& shape, Pass pass, double forward_share,
                                 std::int32_t num_slots, double time, double longest,
                                 double shortest, PeakCare care) {
  if (pass == Pass::forward || shape.stages == 1 || forward_share <= 0 || forward_share >= 1) {
    // Whatever is beside the longest slot, it goes down once: as many as it as there is time for.
    std::vector<double> heights(static_cast<std::size_t>(num_slots), shortest);
    double left = (time - depth_of(shape) * longest) / unevenness(shape) - shortest * num_slots;
    for (double& height : heights) {
      const double more = std::clamp(left, 0.0, longest - shortest);
      height += more;
      left -= more;
    }
    return heights.front() < longest ? std::vector<double>{} : heights;
  }
  if (shape.virtual_ > 1 && care == PeakCare::proper) {
    auto peak =
        known_virtual_peak(shape, forward_share, num_slots, longest / time, shortest / time);
    for (double& height : peak) height *= time;
    return peak;
  }
  const Heights heights(shape, forward_share, num_slots);
  const std::vector<double> rising = heights.rising();
  const std::vector<double> falling = heights.falling();
  const std::size_t num_blocks = heights.num_blocks();
  std::vector<double> sums = {0};  // of the first, the first two, .. from the back
  for (const double block : falling) sums.push_back(sums.back() + block);
  // So many from the back, none outside the limits.
  const auto sum_behind = [&](double fall, std::size_t count) {
    const auto end = falling.begin() + static_cast<std::ptrdiff_t>(count);
    const auto place_of = [&](double height) {
      return static_cast<std::size_t>(std::lower_bound(falling.begin(), end, height / fall) -
                                      falling.begin());
    };
    const std::size_t low = place_of(shortest);
    const std::size_t high = std::max(low, place_of(longest));
    return static_cast<double>(low) * shortest + (sums[high] - sums[low]) * fall +
           static_cast<double>(count - high) * longest;
  };
  struct Peak {
    std::size_t place = 0;
    std::size_t num_behind = 0;
    double fall = 0;
  };
  Peak best;
  double most_work = -1;
  constexpr std::size_t max_front = 10;  // rises are geometric
  for (std::size_t peak = std::min(max_front, num_blocks); peak-- > 0;) {
    const double rise = longest / rising[peak];
    double front = 0;
    for (std::size_t i = 0; i <= peak; ++i) front += std::max(shortest, rising[i] * rise);
    // Some blocks behind it, the more the less is gained; the rest is as short as can be.
    const std::size_t most_behind = num_blocks - 1 - peak;
    for (std::size_t skipped = 0, next = 0; skipped <= most_behind; skipped = next) {
      next = skipped + 1 + skipped / 6;
      if (skipped < most_behind) next = std::min(next, most_behind);
      const std::size_t behind = most_behind - skipped;
      const double least_fall = longest / falling[behind];
      if (time - rise - least_fall <= most_work) break;
      const double rest = front + static_cast<double>(skipped) * shortest;
      const auto work_for = [&](double fall) {
        return heights.width() * (rest + sum_behind(fall, behind));
      };
      if (work_for(least_fall) + rise + least_fall > time) continue;
      double low = least_fall;
      double high = time;
      constexpr int num_halvings = 8;
      for (int i = 0; i < num_halvings; ++i) {
        const double middle = (low + high) / 2;
        (work_for(middle) + rise + middle <= time ? low : high) = middle;
      }
      const double work = work_for(low);
      if (work <= most_work) continue;
      most_work = work;
      best = {.place = peak, .num_behind = behind, .fall = low};
    }
  }
  if (most_work < 0) return {};
  std::vector<double> blocks(num_blocks, shortest);
  const double rise = longest / rising[best.place];
  for (std::size_t i = 0; i < best.place; ++i) blocks[i] = std::max(shortest, rising[i] * rise);
  blocks[best.place] = longest;
  for (std::size_t i = 0; i < best.num_behind; ++i) {
    blocks[best.place + best.num_behind - i] =
        std::clamp(falling[i] * best.fall, shortest, std::max(shortest, longest));
  }
  return heights.of_slots(blocks, 1);
}

double time_of_peak(const PipelineShape& shape, Pass pass, std::int32_t num_slots) {
  constexpr double of_blocks = 2e3;
  if (shape.virtual_ == 1 || pass == Pass::forward) return of_blocks;
  const double count = std::min(num_slots, max_peak_blocks * shape.group);
  return of_blocks + 100 * count * count * count;
}

}  // namespace isochron
