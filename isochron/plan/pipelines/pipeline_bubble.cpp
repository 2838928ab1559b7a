// A path goes down with some slot and up with that or a later one (simulate/order_bound.cpp). In a
// mean of such paths, with weight a_k for going down with k and b_j for going up with j, a slot i
// counts once, less what is missed, and more where it takes the path along:
//
//   1 + f (d a_i - b_i-1 - .. - b_i-d) + (1 - f) (d b_i - a_i+1 - .. - a_i+d)
//
// Around a middle slot, before which nothing goes up and behind which nothing goes down, the least
// weights that make this 1 + e follow one after the other: in front of it from a alone, behind it
// from b alone. They are multiples of e, and each kind adds up to 1: the better the middle, the
// larger e.
//
// With virtual stages the same holds for the blocks of slots that run together (block_turn.cpp).

#include "isochron/plan/pipelines/pipeline_bubble.h"

#include <algorithm>
#include <limits>

namespace isochron {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

// Sums of the least weights, from the middle on: of one block, of two, ..
std::vector<double> sums_of_weights(const BlockTurn& turn, double first, double gained,
                                    double missed, std::size_t count) {
  std::vector<double> weights(count, first);
  std::vector<double> sums(count, first);
  const double per_gain = gained > 0 ? 1 / (gained * turn.gain) : infinite;
  constexpr double too_many = 1e12;  // for a share that anybody notices
  for (std::size_t i = 1; i < count; ++i) {
    if (sums[i - 1] > too_many) {
      std::fill(sums.begin() + static_cast<std::ptrdiff_t>(i), sums.end(), infinite);
      break;
    }
    double needed = 1;
    for (std::size_t back = 0; back < std::min(turn.missed.size(), i); ++back) {
      needed += missed * turn.missed[back] * weights[i - 1 - back];
    }
    weights[i] = needed * per_gain;
    sums[i] = sums[i - 1] + weights[i];
  }
  return sums;
}

}  // namespace

PipelineBubble::PipelineBubble(const PipelineShape& shape, Pass pass, double forward_share,
                               std::int32_t max_slots)
    : PipelineBubble(block_turn(shape), pass, forward_share, max_slots) {}

PipelineBubble::PipelineBubble(const BlockTurn& turn, Pass pass, double forward_share,
                               std::int32_t max_slots)
    : slots_per_block_(turn.slots_per_block) {
  const std::int32_t num_blocks = (max_slots + slots_per_block_ - 1) / slots_per_block_;
  share_of_.assign(static_cast<std::size_t>(num_blocks), 0);
  if (pass == Pass::forward) {
    // Nothing is missed: in the mean over all slots each takes the path along as often.
    for (std::int32_t i = 0; i < num_blocks; ++i) {
      share_of_[static_cast<std::size_t>(i)] = turn.gain / (i + 1);
    }
    return;
  }
  const double backward_share = 1 - forward_share;
  constexpr int num_parts = 16;
  for (int i = 0; i <= num_parts + 1; ++i) {
    // What going down with the middle counts; of one slot alone as much as its forward.
    const double part = i > num_parts ? forward_share : static_cast<double>(i) / num_parts;
    const auto first = [&](double counted, double share) {
      if (counted == 0) return 0.0;
      return share > 0 ? counted / (share * turn.gain) : infinite;
    };
    offer(sums_of_weights(turn, first(part, forward_share), forward_share, backward_share,
                          share_of_.size()),
          sums_of_weights(turn, first(1 - part, backward_share), backward_share, forward_share,
                          share_of_.size()));
  }
}

void PipelineBubble::offer(const std::vector<double>& down, const std::vector<double>& up) {
  // The further behind the middle is, the more goes down before it and the less up behind it: the
  // best is where they meet, which is not further in front if there are more blocks.
  std::size_t middle = 0;
  for (std::size_t last = 0; last < share_of_.size(); ++last) {
    while (middle < last && down[middle] < up[last - middle]) ++middle;
    double most = std::max(down[middle], up[last - middle]);
    if (middle > 0) most = std::min(most, up[last - middle + 1]);
    if (most > 0) share_of_[last] = std::max(share_of_[last], 1 / most);
  }
}

double PipelineBubble::share(std::int32_t num_slots) const {
  const std::int32_t num_blocks = (num_slots + slots_per_block_ - 1) / slots_per_block_;
  if (num_blocks > static_cast<std::int32_t>(share_of_.size())) return 0;
  return share_of_[static_cast<std::size_t>(std::max(1, num_blocks) - 1)];
}

}  // namespace isochron
