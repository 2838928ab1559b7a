// A random walk from equal slots: one of the blocks near an end gets longer or shorter, and stays
// so if a pipeline of the same work is not slower. What is far from both ends stays full. With
// virtual stages the slots of a group run together, so they are a block; without them each is its
// own.

#include "isochron/plan/slots/slot_profile.h"

#include <algorithm>

#include "isochron/core/int128.h"
#include "isochron/core/random.h"
#include "isochron/simulate/pipeline_time.h"

namespace isochron {

namespace {

constexpr std::int64_t full = 1000;
constexpr std::int64_t max_operations = 250'000;  // of all trials: about half a millisecond
constexpr std::int32_t max_trials = 800;

// The time of a pipeline whose slots share a fixed amount of work like this.
class ProfileTime {
 public:
  ProfileTime(const PipelineShape& shape, std::int32_t num_slots, double forward_share)
      : time_(shape, num_slots, Pass::train), forward_share_(forward_share) {}

  Nanoseconds operator()(const std::vector<std::int64_t>& weights) {
    constexpr Nanoseconds work = 1'000'000'000'000;
    std::int64_t sum = 0;
    for (const std::int64_t weight : weights) sum += weight;
    costs_.clear();
    for (const std::int64_t weight : weights) {
      costs_.push_back(
          split_cost(static_cast<Nanoseconds>(Int128{work} * weight / sum), forward_share_));
    }
    return time_.makespan(costs_);
  }

 private:
  PipelineTime time_;
  double forward_share_;
  std::vector<PassCost> costs_;
};

}  // namespace

std::vector<std::int64_t> slot_profile(const PipelineShape& shape, std::int32_t num_slots,
                                       Pass pass, double forward_share) {
  const auto count = static_cast<std::size_t>(num_slots);
  std::vector<std::int64_t> profile(count, full);
  if (pass == Pass::forward || shape.stages == 1 || num_slots < 2) return profile;
  // The ends of a long profile are those of a shorter one.
  const auto width = static_cast<std::size_t>(shape.virtual_ > 1 ? shape.group : 1);
  const std::size_t reach = static_cast<std::size_t>(shape.stages) * (width > 1 ? 2 * width : 2);
  const std::size_t num_tried = std::min(count, 2 * reach);
  ProfileTime time(shape, static_cast<std::int32_t>(num_tried), forward_share);
  std::vector<std::int64_t> weights(num_tried, full);
  Nanoseconds least = time(weights);
  const std::int64_t operations =
      2 * static_cast<std::int64_t>(num_tried) * static_cast<std::int64_t>(shape.num_chunks());
  const std::int64_t num_trials =
      std::min<std::int64_t>(max_trials, std::max<std::int64_t>(50, max_operations / operations));
  Random random(0);
  std::vector<std::int64_t> changed;
  for (std::int64_t trial = 0; trial < num_trials; ++trial) {
    changed = weights;
    const std::size_t first = static_cast<std::size_t>(random.below(num_tried / width)) * width;
    const std::int64_t widest = trial < num_trials / 2 ? full / 3 : full / 16;
    const std::int64_t change = random.between(-widest, widest);
    for (std::size_t i = first; i < first + width; ++i) {
      changed[i] = std::clamp<std::int64_t>(changed[i] + change, 1, full);
    }
    const Nanoseconds changed_time = time(changed);
    if (changed_time > least) continue;
    least = changed_time;
    weights.swap(changed);
  }
  const auto middle = static_cast<std::ptrdiff_t>(num_tried / 2 / width * width);
  std::copy(weights.begin(), weights.begin() + middle, profile.begin());
  std::copy(weights.begin() + middle, weights.end(),
            profile.end() - (static_cast<std::ptrdiff_t>(num_tried) - middle));
  return profile;
}

}  // namespace isochron
