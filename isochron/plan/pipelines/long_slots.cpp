// Around the longest slot k a path through the operations goes along the first stage or the last
// one, and between them down or up with k, chunk by chunk. What it counts of another slot depends
// on how their visits follow each other. On a stage a forward is before a backward if its number
// among the forwards is at most the number of the other among the backwards plus the warm-up: that
// depends on how far apart they are, not on how many slots there are. So what a path counts of the
// slots that exist is the same in every step, and far away it counts every slot once.
//
// A mean of paths that counts k as often as c, and each other slot at least 1 - slope times, is the
// line with wait = c - (1 - slope); what it counts of a slot too little costs as much of k, than
// which no slot is longer. Any mean will do. Good ones are the prices of a linear program: the most
// work beside k, no slot longer than it, if no path is longer than some time; the longest path
// comes in until none is. The line has to hold wherever in its block k is.

#include "isochron/plan/pipelines/long_slots.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <tuple>

#include "isochron/core/memo.h"
#include "isochron/plan/bounds/rise_program.h"
#include "isochron/schedule/pipeline_schedule.h"

namespace isochron {

namespace {

// What is counted: of the longest slot, and of those around it.
struct Count {
  double longest = 0;
  std::vector<double> others;
};

// Of several paths.
struct Mean {
  Count count;
  double slope = 0;  // 1 - slope is about what it counts of the others
};

// The paths around one slot.
class LongSlot {
 public:
  LongSlot(const PipelineSchedule& schedule, const PipelineShape& shape, double forward_share,
           std::int32_t slot)
      : shape_(shape), forward_(forward_share), slot_(slot) {
    const std::array<std::size_t, 2> stages = {0, schedule.size() - 1};
    for (std::size_t side = 0; side < 2; ++side) {
      for (const PipelineOperation& operation : schedule[stages[side]]) {
        visits_[side].push_back({.slot = operation.slot, .part = part(operation.direction)});
      }
    }
    for (const Direction direction : {Direction::forward, Direction::backward}) {
      const bool is_down = direction == Direction::forward;
      for (std::int32_t i = 0; i < 2 * shape.virtual_; ++i) {
        const std::int32_t turn = is_down ? i : 2 * shape.virtual_ - 1 - i;
        const std::size_t side = turn % 2 == 0 ? 0 : 1;
        const auto chunk = turn / 2 * shape.stages + static_cast<std::int32_t>(stages[side]);
        const auto& operations = schedule[stages[side]];
        const auto found =
            std::find(operations.begin(), operations.end(),
                      PipelineOperation{.slot = slot, .chunk = chunk, .direction = direction});
        // A way down, or up, leads past all stages but the first of it.
        const bool is_way = !stops_.empty() && stops_.back().side != side &&
                            stops_.back().direction == direction && i % 2 == 1;
        stops_.push_back({.side = side,
                          .place = static_cast<std::size_t>(found - operations.begin()),
                          .direction = direction,
                          .cost = part(direction) * (is_way ? shape.stages - 1 : 1)});
      }
    }
    find_others();
  }

  // Means of paths with which as much work as can be is done beside the slot in each of the times.
  std::vector<Mean> means(const std::vector<double>& times) {
    std::vector<Mean> result;
    for (const double time : times) {
      if (auto mean = mean_for(time)) result.push_back(*std::move(mean));
    }
    return result;
  }

 private:
  struct Visit {
    std::int32_t slot;
    double part;  // of the passes of the slot on a stage
  };
  // The slot on the first or the last stage, in the order in which it gets there.
  struct Stop {
    std::size_t side;
    std::size_t place;  // among the visits
    Direction direction;
    double cost;  // of the way from the stop before
  };

  double part(Direction direction) const {
    return (direction == Direction::forward ? forward_ : 1 - forward_) / shape_.virtual_;
  }

  // Slots of which not all visits are before all stops, or behind them.
  void find_others() {
    std::array<std::size_t, 2> first = {visits_[0].size(), visits_[1].size()};
    std::array<std::size_t, 2> last = {0, 0};
    for (const Stop& stop : stops_) {
      first[stop.side] = std::min(first[stop.side], stop.place);
      last[stop.side] = std::max(last[stop.side], stop.place);
    }
    struct Where {
      bool is_before = true;
      bool is_behind = true;
    };
    std::map<std::int32_t, Where> where;
    for (std::size_t side = 0; side < 2; ++side) {
      for (std::size_t place = 0; place < visits_[side].size(); ++place) {
        Where& slot = where[visits_[side][place].slot];
        slot.is_before = slot.is_before && place < first[side];
        slot.is_behind = slot.is_behind && place > last[side];
      }
    }
    index_of_.assign(where.size(), none);
    for (const auto& [slot, around] : where) {
      if (slot == slot_ || around.is_before || around.is_behind) continue;
      index_of_[static_cast<std::size_t>(slot)] = num_others_++;
    }
  }

  // Adds the visits of a side from one place to before another.
  void count(std::size_t side, std::size_t from, std::size_t to, Count& counted) const {
    for (std::size_t place = from; place < to; ++place) {
      const auto& [slot, part] = visits_[side][place];
      const std::size_t other = index_of_[static_cast<std::size_t>(slot)];
      if (slot == slot_) counted.longest += part;
      if (other != none) counted.others[other] += part;
    }
  }

  // The longest path, where the other slots have these heights and the longest one has 1.
  Count longest_path(std::span<const double> heights, double& length) const {
    std::array<std::vector<double>, 2> until;  // before each place
    for (std::size_t side = 0; side < 2; ++side) {
      until[side] = {0};
      for (const auto& [slot, part] : visits_[side]) {
        const std::size_t other = index_of_[static_cast<std::size_t>(slot)];
        const double height = slot == slot_ ? 1 : other != none ? heights[other] : 0;
        until[side].push_back(until[side].back() + part * height);
      }
    }
    struct Best {
      double length = 0;
      std::size_t from = none;  // the stop before; none: along the stage from the start
      bool is_along = true;     // the stage, not with the slot
    };
    std::vector<Best> best;
    Best last{.length = -1};  // from: the last stop
    for (std::size_t i = 0; i < stops_.size(); ++i) {
      const Stop& stop = stops_[i];
      Best here{.length = until[stop.side][stop.place + 1]};
      const auto offer = [&](const Best& other) {
        if (other.length > here.length) here = other;
      };
      if (i > 0) {
        offer({.length = best[i - 1].length + stop.cost, .from = i - 1, .is_along = false});
      }
      for (std::size_t from = 0; from < i; ++from) {
        if (stops_[from].side != stop.side) continue;
        offer({.length = best[from].length + until[stop.side][stop.place + 1] -
                         until[stop.side][stops_[from].place + 1],
               .from = from});
      }
      best.push_back(here);
      const double all = here.length + until[stop.side].back() - until[stop.side][stop.place + 1];
      if (all > last.length) last = {.length = all, .from = i};
    }
    length = last.length;
    Count counted{.longest = 0, .others = std::vector<double>(num_others_, 0)};
    count(stops_[last.from].side, stops_[last.from].place + 1,
          visits_[stops_[last.from].side].size(), counted);
    for (std::size_t i = last.from; i != none; i = best[i].from) {
      const auto& [side, place, direction, cost] = stops_[i];
      if (best[i].is_along) {
        const std::size_t from = best[i].from == none ? 0 : stops_[best[i].from].place + 1;
        count(side, from, place + 1, counted);
      } else {
        counted.longest += cost;
      }
    }
    return counted;
  }

  void add(const Count& path, double time, RiseProgram& program) const {
    std::vector<RiseProgram::Part> parts;
    for (std::size_t i = 0; i < num_others_; ++i) {
      if (path.others[i] > 0) parts.push_back({.value = i, .weight = path.others[i]});
    }
    program.add(std::move(parts), std::max(0.0, time - path.longest));
  }

  // None if nothing keeps the work down.
  std::optional<Mean> mean_for(double time) {
    RiseProgram program(std::vector<double>(num_others_, 1));
    for (const Count& path : paths_) add(path, time, program);
    constexpr int max_paths = 40;
    constexpr int max_pivots = 400;
    for (int i = 0; i < max_paths; ++i) {
      program.solve(max_pivots);
      std::vector<double> heights;
      for (const double value : program.values()) heights.push_back(std::clamp(value, 0.0, 1.0));
      double length = 0;
      Count path = longest_path(heights, length);
      if (length <= time * (1 + 1e-6)) break;
      add(path, time, program);
      paths_.push_back(std::move(path));
    }
    const std::vector<double> prices = program.prices();
    double sum = 0;
    for (const double price : prices) sum += std::max(0.0, price);
    if (sum <= 0) return std::nullopt;
    Count mean{.longest = 0, .others = std::vector<double>(num_others_, 0)};
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      const double weight = std::max(0.0, prices[i]) / sum;
      mean.longest += weight * paths_[i].longest;
      for (std::size_t j = 0; j < num_others_; ++j) {
        mean.others[j] += weight * paths_[i].others[j];
      }
    }
    return Mean{.count = std::move(mean), .slope = std::max(0.0, 1 - 1 / sum)};
  }

  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  const PipelineShape& shape_;
  double forward_;
  std::int32_t slot_;
  std::array<std::vector<Visit>, 2> visits_;  // of the first stage and the last one
  std::vector<Stop> stops_;
  std::vector<std::size_t> index_of_;  // by slot, among the others
  std::size_t num_others_ = 0;
  std::vector<Count> paths_;  // all that were found
};

// What every other slot is counted at least is 1 - slope.
double wait_of(const Count& mean, double slope) {
  double wait = mean.longest - (1 - slope);
  for (const double other : mean.others) wait -= std::max(0.0, 1 - slope - other);
  return wait;
}

// Of these means, which belong to shorter and longer times, and of what is between two of them.
double most_wait(const std::vector<Mean>& means, double slope) {
  double most = 0;
  for (std::size_t i = 0; i < means.size(); ++i) {
    most = std::max(most, wait_of(means[i].count, slope));
    if (i == 0) continue;
    for (const double part : {0.2, 0.4, 0.6, 0.8}) {
      Count between = means[i].count;
      const Count& before = means[i - 1].count;
      between.longest += part * (before.longest - between.longest);
      for (std::size_t j = 0; j < between.others.size(); ++j) {
        between.others[j] += part * (before.others[j] - between.others[j]);
      }
      most = std::max(most, wait_of(between, slope));
    }
  }
  return most;
}

std::vector<RoomLine> find_lines(const PipelineShape& shape, double forward_share) {
  const std::int32_t per_block = shape.group * shape.virtual_;
  const auto warmup = static_cast<std::int32_t>(num_warmup_visits(shape, 0));
  const std::int32_t reach = (warmup + per_block - 1) / per_block + 2;  // in blocks
  const std::int32_t num_slots = (2 * reach + 1) * shape.group;
  // A program for every place of a block: beyond these sizes they take seconds, and no lines are
  // true lines.
  constexpr std::int32_t max_places = 32;
  constexpr std::int64_t max_visits = 1 << 16;
  if (shape.group > max_places || std::int64_t{num_slots} * shape.num_chunks() > max_visits) {
    return {};
  }
  const PipelineSchedule schedule = pipeline_schedule(shape, num_slots, Pass::train);
  std::vector<double> times;
  for (const double part : {1.05, 1.2, 1.4, 1.7, 2.1, 3.0}) times.push_back(part * shape.stages);
  std::vector<std::vector<Mean>> means;  // by place in the block
  for (std::int32_t place = 0; place < shape.group; ++place) {
    LongSlot slot(schedule, shape, forward_share, reach * shape.group + place);
    means.push_back(slot.means(times));
    if (means.back().empty()) return {};
  }
  std::vector<double> slopes;
  for (const auto& of_place : means) {
    for (const Mean& mean : of_place) slopes.push_back(mean.slope);
  }
  std::sort(slopes.begin(), slopes.end());
  std::vector<RoomLine> lines;
  for (const double slope : slopes) {
    constexpr double apart = 0.02;
    if (!lines.empty() && slope < lines.back().slope + apart) continue;
    double least = std::numeric_limits<double>::infinity();
    for (const auto& of_place : means) least = std::min(least, most_wait(of_place, slope));
    constexpr double little = 1e-3;
    if (slope > little && least > little) lines.push_back({.slope = slope, .wait = least});
  }
  return lines;
}

}  // namespace

std::vector<RoomLine> long_slot_lines(const PipelineShape& shape, double forward_share) {
  using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t, double>;
  static Memo<Key, std::vector<RoomLine>> known(64);
  return known.of({shape.stages, shape.virtual_, shape.group, forward_share},
                  [&] { return find_lines(shape, forward_share); });
}

}  // namespace isochron
