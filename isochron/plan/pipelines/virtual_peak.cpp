// A linear program: the most work for which no path through the operations is longer than the time.
// Paths come in one by one, the longest of what the program would do next. The long slot stands
// near the front of its block, where it is hidden best; the block is one in the middle.

#include "isochron/plan/pipelines/virtual_peak.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "isochron/plan/bounds/rise_program.h"
#include "isochron/schedule/known_schedule.h"

namespace isochron {

namespace {

class Operations {
 public:
  Operations(const PipelineShape& shape, double forward_share, std::int32_t num_slots)
      : num_slots_(static_cast<std::size_t>(num_slots)) {
    const auto schedule = known_schedule(shape, num_slots, Pass::train);
    std::vector<std::size_t> last_of_stage(schedule->stages.size(), none);
    std::vector<std::size_t> last_of_slot(num_slots_, none);
    for (const PipelineOperation& operation : schedule->operations) {
      const auto slot = static_cast<std::size_t>(operation.slot);
      std::size_t& on_stage =
          last_of_stage[static_cast<std::size_t>(operation.chunk % shape.stages)];
      const bool is_forward = operation.direction == Direction::forward;
      const double part = (is_forward ? forward_share : 1 - forward_share) / shape.virtual_;
      steps_.push_back(
          {.slot = slot, .part = part, .on_stage = on_stage, .of_slot = last_of_slot[slot]});
      on_stage = steps_.size() - 1;
      last_of_slot[slot] = on_stage;
    }
  }

  // What the longest path counts of each slot of these lengths; becomes as long as it is.
  std::vector<double> longest_path(std::span<const double> lengths, double& time) {
    ends_.resize(steps_.size());
    std::size_t last = 0;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      const double start = std::max(end_of(step.on_stage), end_of(step.of_slot));
      ends_[i] = start + step.part * lengths[step.slot];
      if (ends_[i] > ends_[last]) last = i;
    }
    time = ends_[last];
    std::vector<double> counted(num_slots_, 0);
    for (std::size_t i = last; i != none;) {
      const Step& step = steps_[i];
      counted[step.slot] += step.part;
      i = end_of(step.on_stage) >= end_of(step.of_slot) && step.on_stage != none ? step.on_stage
                                                                                 : step.of_slot;
    }
    return counted;
  }

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  struct Step {
    std::size_t slot;
    double part;           // of the passes of the slot on a stage
    std::size_t on_stage;  // the one before it
    std::size_t of_slot;
  };
  double end_of(std::size_t step) const { return step == none ? 0 : ends_[step]; }

  std::size_t num_slots_;
  std::vector<Step> steps_;  // in an order in which they can run
  std::vector<double> ends_;
};

std::vector<double> between(const std::vector<double>& from, const std::vector<double>& to,
                            double part) {
  std::vector<double> result = from;
  for (std::size_t i = 0; i < from.size(); ++i) result[i] += part * (to[i] - from[i]);
  return result;
}

// How far from lengths that take less than 1 to others it is as long as that, or all the way: times
// are convex, so it takes no more.
double part_within(double time_from, double time_to) {
  return time_to <= 1 ? 1 : (1 - time_from) / (time_to - time_from);
}

class Peaks {
 public:
  Peaks(const PipelineShape& shape, double forward_share, std::int32_t num_slots, double longest,
        double shortest)
      : operations_(shape, forward_share, num_slots),
        num_slots_(static_cast<std::size_t>(num_slots)),
        longest_(longest),
        shortest_(shortest) {}

  // With the long slot there; empty if there is no time for it. Between lengths that have time and
  // those that the paths so far allow, more paths are found.
  std::vector<double> at(std::size_t peak) {
    std::vector<double> least(num_slots_, shortest_);
    least[peak] = longest_;
    double time_of_least = 0;
    static_cast<void>(operations_.longest_path(least, time_of_least));
    if (time_of_least > 1) return {};
    std::vector<double> most(num_slots_, longest_ - shortest_);
    most[peak] = 0;
    RiseProgram program(most);
    for (const auto& path : paths_) add(path, least, program);
    std::vector<double> safe = least;
    double work = std::accumulate(safe.begin(), safe.end(), 0.0);
    const auto find_path = [&](const std::vector<double>& lengths) {
      double time = 0;
      std::vector<double> path = operations_.longest_path(lengths, time);
      const std::vector<double> kept = between(least, lengths, part_within(time_of_least, time));
      const double sum = std::accumulate(kept.begin(), kept.end(), 0.0);
      if (sum > work) {
        work = sum;
        safe = kept;
      }
      if (time <= 1) return false;
      add(path, least, program);
      paths_.push_back(std::move(path));
      return true;
    };
    constexpr int max_rounds = 40;
    constexpr int max_pivots = 500;
    constexpr double enough = 1.004;
    for (int round = 0; round < max_rounds; ++round) {
      program.solve(max_pivots);
      std::vector<double> lengths = least;
      for (std::size_t slot = 0; slot < num_slots_; ++slot) {
        lengths[slot] += std::clamp(program.values()[slot], 0.0, most[slot]);
      }
      if (std::accumulate(lengths.begin(), lengths.end(), 0.0) <= work * enough) break;
      if (!find_path(between(safe, lengths, 0.5))) static_cast<void>(find_path(lengths));
    }
    return safe;
  }

 private:
  static double length(const std::vector<double>& path, const std::vector<double>& lengths) {
    return std::inner_product(path.begin(), path.end(), lengths.begin(), 0.0);
  }

  // No more than is left of the time beside the least lengths.
  void add(const std::vector<double>& path, const std::vector<double>& least,
           RiseProgram& program) const {
    std::vector<RiseProgram::Part> parts;
    for (std::size_t slot = 0; slot < path.size(); ++slot) {
      if (path[slot] > 0) parts.push_back({.value = slot, .weight = path[slot]});
    }
    program.add(std::move(parts), std::max(0.0, 1 - length(path, least)));
  }

  Operations operations_;
  std::size_t num_slots_;
  double longest_;
  double shortest_;
  std::vector<std::vector<double>> paths_;  // all that were found
};

}  // namespace

std::vector<double> virtual_peak(const PipelineShape& shape, double forward_share,
                                 std::int32_t num_slots, double longest, double shortest) {
  // Slots far from the long one are as short as can be, before it and after it.
  const std::int32_t num_far = std::max(0, num_slots / shape.group - max_peak_blocks);
  const std::int32_t num_blocks = num_slots / shape.group - num_far;
  const double time = 1 - num_far * shape.group * shortest;
  if (time <= 0) return {};
  const std::int32_t place = std::min(shape.group - 1, std::max(1, shape.group / 4));
  Peaks peaks(shape, forward_share, num_blocks * shape.group, longest / time, shortest / time);
  std::vector<double> best;
  double most = 0;
  for (const std::int32_t block : std::set{num_blocks / 2, std::max(0, num_blocks / 2 - 1)}) {
    const std::int32_t slot = block * shape.group + place;
    std::vector<double> lengths = peaks.at(static_cast<std::size_t>(slot));
    const double work = std::accumulate(lengths.begin(), lengths.end(), 0.0);
    if (work <= most) continue;
    most = work;
    best = std::move(lengths);
  }
  if (best.empty() || num_far == 0) return best;
  for (double& length : best) length *= time;
  const auto count = static_cast<std::size_t>(shape.group);
  for (std::int32_t i = 0; i < num_far; ++i) {
    best.insert(i % 2 == 0 ? best.begin() : best.end(), count, shortest);
  }
  // They take a little longer among the others.
  std::vector<double> least(best.size(), shortest);
  const auto peak = std::max_element(best.begin(), best.end()) - best.begin();
  least[static_cast<std::size_t>(peak)] = longest;
  Operations operations(shape, forward_share, num_slots);
  double time_of_least = 0;
  double time_of_best = 0;
  static_cast<void>(operations.longest_path(least, time_of_least));
  static_cast<void>(operations.longest_path(best, time_of_best));
  if (time_of_least > 1) return {};
  return between(least, best, part_within(time_of_least, time_of_best));
}

}  // namespace isochron
