// The least time for which cells are found, for one number of slots after the other. The first is
// the one that is best if nothing is long; what differs more from it follows, and has to be faster
// than what there is to be looked at closely.

#include "isochron/plan/pipelines/cell_search.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "isochron/plan/pipelines/rank_room.h"

namespace isochron {

namespace {

constexpr std::int32_t max_slots = 128;

// How closely cells are looked for.
struct Closeness {
  std::int32_t count_part = 6;  // of a number of slots, by which the next is larger
  double about = 1.015;         // times of numbers of slots that are about as good
  double least_growth = 1.01;   // of a time that is too short
  double near = 1.002;          // times that are not told apart
  int num_halvings = 5;         // of what is between two times
  int max_idle = 5;             // numbers of slots that follow each other and are not better
  bool ends_above = false;      // more slots than a number that is not better are none either
};

Closeness closeness(CellCare care, Pass pass) {
  if (care == CellCare::fine) return {};
  // A forward pass of too long a time, or of too few slots, is hardly made up for later.
  if (pass == Pass::forward) {
    return {.count_part = 3, .near = 1.01, .num_halvings = 3, .max_idle = 3};
  }
  return {
      .count_part = 3, .about = 1.1, .least_growth = 1.03, .num_halvings = 3, .ends_above = true};
}

// Numbers of slots, the likely ones first. About as good with fewer is better: every slot has to
// hold something, and those beside a long one are long too.
std::vector<std::int32_t> slot_counts(const Problem& problem, const PipelineBubble& bubble,
                                      const Closeness& close) {
  double area = 0;
  for (ItemId item = 0; item < problem.num_items(); ++item) {
    const std::int32_t size = problem.sizes()[problem.smallest_place(item)];
    area += static_cast<double>(problem.least_cost(size, item)) * size;
  }
  const PipelineShape& shape = problem.topology().pipeline;
  const std::int32_t multiple = shape.group;
  const std::int32_t most = std::max(multiple, std::min(max_slots, problem.num_items()));
  std::vector<std::int32_t> counts;
  std::vector<double> times;
  for (std::int32_t count = multiple; count <= most;
       count += std::max(multiple, count / close.count_part / multiple * multiple)) {
    counts.push_back(count);
    const double fixed =
        count * (static_cast<double>(problem.microbatch()) + wait_for_transfers(problem));
    times.push_back((area / problem.total_speed() + fixed) * (1 + bubble.share(count)));
  }
  const double limit = *std::min_element(times.begin(), times.end()) * close.about;
  const auto likely =
      std::find_if(times.begin(), times.end(), [&](double time) { return time <= limit; }) -
      times.begin();
  std::vector<std::int32_t> likely_first = {counts[static_cast<std::size_t>(likely)]};
  const auto end = static_cast<std::ptrdiff_t>(counts.size());
  for (std::ptrdiff_t away = 1; away < end; ++away) {
    for (const std::ptrdiff_t place : {likely + away, likely - away}) {
      if (place < 0 || place >= end) continue;
      likely_first.push_back(counts[static_cast<std::size_t>(place)]);
    }
  }
  return likely_first;
}

}  // namespace

std::optional<FoundCells> search_cells(const Problem& problem, const RankRoom& room,
                                       SlotHeights& heights, const CellQuestion& question) {
  const double share = problem.options().pass == Pass::train ? 1 : problem.model().forward_share;
  const double least = std::max(1.0, static_cast<double>(question.bound)) *
                       problem.topology().pipeline.stages / share;
  const Closeness close = closeness(question.care, problem.options().pass);
  CellBuilder builder(problem, question.capacity, room, heights, question.rest,
                      question.nanoseconds);
  const std::optional<CellGuess>& guess = question.guess;
  std::optional<CellGuess> best;
  const std::vector<std::int32_t> counts =
      guess ? std::vector{guess->num_slots} : slot_counts(problem, room.bubble(), close);
  int num_idle = 0;
  std::int32_t too_many = max_slots + 1;
  for (const std::int32_t count : counts) {
    if (count > too_many) continue;
    if (builder.is_spent()) break;
    double low = least;
    double high = guess ? std::max(least, guess->time) : least;
    // Becomes one of them.
    const auto is_found = [&](double time) {
      if (!builder.builds_cells(count, time)) {
        // Ranks do hardly more than in proportion to the time.
        low = std::max(low, time * (1 + builder.part_left() / 3));
        return false;
      }
      high = std::min(time, builder.time());
      if (!best || builder.time() < best->time) {
        best = {.num_slots = count, .time = builder.time()};
        builder.keep();
      }
      return true;
    };
    if (!best) {
      constexpr double much_longer = 4;
      const double most = guess ? 1.03 : 1.15;
      while (!is_found(high) && high < much_longer * least) {
        high *= std::clamp(1 + builder.part_left(), close.least_growth, most);
      }
      if (!best) continue;
    } else {
      constexpr double worthwhile = 0.995;
      if (!is_found(best->time * worthwhile)) {
        if (close.ends_above && count > best->num_slots) too_many = count;
        if (++num_idle == close.max_idle) break;
        continue;
      }
    }
    num_idle = 0;
    for (int i = 0; i < close.num_halvings && high > low * close.near && !builder.is_spent(); ++i) {
      static_cast<void>(is_found((low + high) / 2));
    }
  }
  if (!best) return std::nullopt;
  return FoundCells{.draft = builder.kept_draft(), .found = *best};
}

}  // namespace isochron
