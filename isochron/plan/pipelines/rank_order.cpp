#include "isochron/plan/pipelines/rank_order.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace isochron {

RankOrder::RankOrder(const Problem& problem) {
  if (!problem.has_speeds()) return;
  const std::vector<double>& speeds = problem.topology().rank_speed;
  fastest_ = *std::max_element(speeds.begin(), speeds.end());
  slowest_ = *std::min_element(speeds.begin(), speeds.end());
  const std::int64_t num_ranks = problem.num_ranks();
  for (std::int64_t first = 0; problem.is_aligned() && first < num_ranks;) {
    const auto left = static_cast<std::uint64_t>(num_ranks - first);
    const Block block{.first = first, .size = static_cast<std::int64_t>(std::bit_floor(left))};
    add(problem, block);
    first += block.size;
  }
  speed_before_ = {0};
  for (std::int64_t place = 0; place < num_ranks; ++place) {
    const auto rank = static_cast<std::size_t>(find_ranks(place, 1)->first);
    speed_before_.push_back(speed_before_.back() + speeds[rank]);
  }
}

double RankOrder::part_unused(const Problem& problem, const Block& block) const {
  const auto first = problem.topology().rank_speed.begin() + block.first;
  const auto end = first + block.size;
  const double all = std::accumulate(first, end, 0.0);
  return 1 - *std::min_element(first, end) * static_cast<double>(block.size) / all;
}

void RankOrder::add(const Problem& problem, const Block& block) {
  if (block.size == 1) {
    rank_at_.push_back(block.first);
    return;
  }
  const Block low{.first = block.first, .size = block.size / 2};
  const Block high{.first = block.first + low.size, .size = low.size};
  const bool is_low_first = part_unused(problem, low) <= part_unused(problem, high);
  add(problem, is_low_first ? low : high);
  add(problem, is_low_first ? high : low);
}

std::optional<RankRange> RankOrder::find_ranks(std::int64_t first_place, std::int32_t size) const {
  if (rank_at_.empty()) return RankRange{.first = first_place, .size = size};
  const auto begin = rank_at_.begin() + first_place;
  const auto [low, high] = std::minmax_element(begin, begin + size);
  if (*high - *low != size - 1) return std::nullopt;
  return RankRange{.first = *low, .size = size};
}

double RankOrder::speed(std::int64_t first_place, std::int64_t end) const {
  if (speed_before_.empty()) return static_cast<double>(end - first_place);
  return speed_before_[static_cast<std::size_t>(end)] -
         speed_before_[static_cast<std::size_t>(first_place)];
}

}  // namespace isochron
