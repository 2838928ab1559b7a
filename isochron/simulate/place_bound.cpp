// Orders against walks: a game of two players.
//
// A path through the operations of 1F1B is a walk over stages. Where e stages are behind, wave w is
// the forward of place w and the backward of place w - e. To go down after that forward is to run
// it once more and to miss the backward; to go up after the backward of place n is to run that once
// more and to miss the forward of place n + e + 1. So a walk takes the work of a stage and a sum of
// sizes, weighted by place, and an order takes as long as its best walk.
//
// No order takes less than a mean of walks. That is a weighted sum too, and the least if the
// largest size has the least weight. Both players answer the mean of what the other one did, the
// later the more (fictitious play; Brown, 1951), and the mean of the walks approaches the best one.
//
// A mean of orders spreads the largest slots, which no order can. So these get places, largest
// first: of the open questions, each with places for the largest few, the one with the least bound
// plays on, and if that leads no further asks for each place of the next slot. The least of their
// bounds holds for all orders.

#include "isochron/simulate/place_bound.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace isochron {

namespace {

using Sizes = std::vector<double>;

constexpr double infinite = std::numeric_limits<double>::infinity();

// A walk, or a mean of walks: how much it takes beyond the work of a stage.
struct Walk {
  double transfers = 0;
  Sizes weights;  // of the size at each place
};

class Walks {
 public:
  // A slot of size 1 takes 1 forward and `ratio` backward.
  Walks(std::size_t num_places, std::size_t stages, double ratio, double transfer)
      : num_places_(num_places),
        depth_(stages - 1),
        ratio_(ratio),
        transfer_(transfer),
        sizes_(num_places + 2 * depth_ + 1, 0),
        ends_(stages),
        ends_before_(stages),
        is_down_((num_places + depth_ + 1) * stages),
        is_up_((num_places + depth_ + 1) * stages) {
    best_.weights.resize(num_places);
  }

  // The best for the sizes at each place, and how much that is.
  double find_best(const Sizes& sizes) {
    std::copy(sizes.begin(), sizes.end(), sizes_.begin() + place(1));
    std::fill(ends_.begin(), ends_.end(), -infinite);
    ends_[depth_] = 0;
    for (std::size_t wave = 1; wave <= num_places_ + depth_; ++wave) run(wave);
    trace();
    return ends_[depth_];
  }
  [[nodiscard]] const Walk& best() const { return best_; }

 private:
  // Places count from 1; there is nothing before the first and after the last.
  [[nodiscard]] std::ptrdiff_t place(std::size_t number, std::size_t behind = 0) const {
    return static_cast<std::ptrdiff_t>(number + depth_ - behind);
  }
  [[nodiscard]] double size(std::size_t number, std::size_t behind = 0) const {
    return sizes_[static_cast<std::size_t>(place(number, behind))];
  }
  [[nodiscard]] std::size_t index(std::size_t wave, std::size_t behind) const {
    return wave * (depth_ + 1) + behind;
  }
  void run(std::size_t wave) {
    ends_before_ = ends_;
    const double forward = size(wave);
    for (std::size_t behind = wave <= num_places_ ? depth_ : 0; behind-- > 0;) {
      const double end = ends_[behind + 1] + forward - ratio_ * size(wave, behind + 1) + transfer_;
      is_down_[index(wave, behind)] = end > ends_[behind] ? 1 : 0;
      ends_[behind] = std::max(ends_[behind], end);
    }
    const std::size_t first = wave <= num_places_ + 1 ? 1 : wave - num_places_;
    for (std::size_t behind = first; behind <= std::min(depth_, wave - 1); ++behind) {
      const double end =
          ends_before_[behind - 1] + ratio_ * size(wave, behind) - forward + transfer_;
      is_up_[index(wave, behind)] = end > ends_[behind] ? 1 : 0;
      ends_[behind] = std::max(ends_[behind], end);
    }
  }

  void trace() {
    best_.transfers = 0;
    std::fill(best_.weights.begin(), best_.weights.end(), 0.0);
    const auto add = [&](std::size_t wave, std::size_t behind, double weight) {
      const bool is_place = wave > behind && wave <= num_places_ + behind;
      if (is_place) best_.weights[wave - behind - 1] += weight;
    };
    std::size_t behind = depth_;
    for (std::size_t wave = num_places_ + depth_; wave > 0; --wave) {
      if (is_up_[index(wave, behind)]) {
        add(wave, behind, ratio_);
        add(wave, 0, -1);
        best_.transfers += transfer_;
        --behind;
        continue;
      }
      for (; is_down_[index(wave, behind)]; ++behind) {
        add(wave, 0, 1);
        add(wave, behind + 1, -ratio_);
        best_.transfers += transfer_;
      }
    }
  }

  std::size_t num_places_;
  std::size_t depth_;
  double ratio_;
  double transfer_;
  Sizes sizes_;        // at each place, with nothing around them
  Sizes ends_;         // of the best walks so far, by how many stages are behind
  Sizes ends_before_;  // the same one wave earlier
  std::vector<char> is_down_;
  std::vector<char> is_up_;
  Walk best_;
};

// Orders in which the largest slots have these places.
struct Question {
  double bound = 0;
  double most = infinite;  // about as far as means of walks can raise it
  std::int64_t number = 0;
  std::vector<std::size_t> places = {};  // of the largest slots, largest first
  std::int64_t num_rounds = 0;           // played so far
  Walk walk = {};                        // mean of the walks so far
  Sizes sizes = {};                      // at each place, mean of the orders so far
};

class PlaceSearch {
 public:
  PlaceSearch(Sizes largest_first, std::size_t stages, double ratio, double transfer)
      : sizes_(std::move(largest_first)),
        walks_(sizes_.size(), stages, ratio, transfer),
        order_(sizes_.size()),
        work_per_round_(static_cast<std::int64_t>(4 * (sizes_.size() + stages) * stages +
                                                  32 * sizes_.size())) {}

  double least_gain(std::int64_t max_work) {
    const auto is_later = [](const Question& a, const Question& b) {
      return a.bound != b.bound ? a.bound > b.bound : a.number > b.number;
    };
    std::vector<Question> open;
    const auto push = [&](Question question) {
      open.push_back(std::move(question));
      std::push_heap(open.begin(), open.end(), is_later);
    };
    const auto num_places = static_cast<std::int64_t>(sizes_.size());
    if (max_work < num_places * rounds_per_play * work_per_round_) return 0;  // not each plays once
    for (std::size_t place = 0; place < sizes_.size(); ++place) push(first_question(place));
    while (work_ < max_work) {
      std::pop_heap(open.begin(), open.end(), is_later);
      Question least = std::move(open.back());
      open.pop_back();
      const bool is_answered = least.bound >= least.most * (1 - tolerance);
      if (is_answered && least.places.size() == sizes_.size()) return least.bound;
      if (!is_answered) {
        play(least);
        push(std::move(least));
        continue;
      }
      for (std::size_t place = 0; place < sizes_.size(); ++place) {
        const auto& taken = least.places;
        if (std::find(taken.begin(), taken.end(), place) == taken.end()) push(next(least, place));
      }
    }
    return open.front().bound;
  }

 private:
  static constexpr double tolerance = 1.0 / 64;        // placing one more slot gains about that
  static constexpr std::int64_t rounds_per_play = 16;  // longer ones play where few would do
  static constexpr std::int64_t rounds_kept = 16;      // the weight of what was played one slot ago

  // Starts with an order that falls off on both sides.
  Question first_question(std::size_t place) {
    Question question = {.number = num_questions_++, .places = {place}};
    question.walk.weights.resize(sizes_.size());
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      question.walk.weights[i] = static_cast<double>(i < place ? place - i : i - place);
    }
    find_free(question);
    answer(question);
    question.sizes = order_;
    return question;
  }

  Question next(const Question& question, std::size_t place) {
    Question result = question;
    result.number = num_questions_++;
    result.places.push_back(place);
    result.most = infinite;
    result.num_rounds = std::min(question.num_rounds, rounds_kept);
    find_free(result);
    result.bound = std::max(question.bound, answer(result));
    result.sizes[place] = order_[place];
    work_ += static_cast<std::int64_t>(64 * sizes_.size());
    return result;
  }

  void play(Question& question) {
    const auto mix = [](double share, double part, double& mean) { mean += share * (part - mean); };
    find_free(question);
    order_ = question.sizes;
    for (std::int64_t round = 0; round < rounds_per_play; ++round) {
      ++question.num_rounds;
      const double share = 2.0 / static_cast<double>(question.num_rounds + 1);
      // The last order counts twice: it is the best guess of the next one.
      for (std::size_t i = 0; i < sizes_.size(); ++i) mix(1 - share, question.sizes[i], order_[i]);
      question.most = std::min(question.most, walks_.find_best(order_));
      const Walk& best = walks_.best();
      mix(share, best.transfers, question.walk.transfers);
      for (std::size_t i = 0; i < sizes_.size(); ++i) {
        mix(share, best.weights[i], question.walk.weights[i]);
      }
      question.bound = std::max(question.bound, answer(question));
      for (std::size_t i = 0; i < sizes_.size(); ++i) mix(share, order_[i], question.sizes[i]);
    }
    work_ += rounds_per_play * work_per_round_;
  }

  void find_free(const Question& question) {
    free_.resize(sizes_.size());
    std::iota(free_.begin(), free_.end(), std::size_t{0});
    for (const std::size_t place : question.places) {
      free_.erase(std::find(free_.begin(), free_.end(), place));
    }
  }

  // The order with the least weighted sum, and that sum. Sorts the free places, which changes
  // little from one round to the next.
  double answer(const Question& question) {
    const Sizes& weights = question.walk.weights;
    for (std::size_t i = 1; i < free_.size(); ++i) {
      const std::size_t place = free_[i];
      std::size_t to = i;
      for (; to > 0 && weights[free_[to - 1]] > weights[place]; --to) free_[to] = free_[to - 1];
      free_[to] = place;
    }
    const std::size_t num_placed = question.places.size();
    for (std::size_t i = 0; i < num_placed; ++i) order_[question.places[i]] = sizes_[i];
    for (std::size_t i = 0; i < free_.size(); ++i) order_[free_[i]] = sizes_[num_placed + i];
    return std::inner_product(weights.begin(), weights.end(), order_.begin(),
                              question.walk.transfers);
  }

  Sizes sizes_;  // largest first
  Walks walks_;
  Sizes order_;  // the size at each place
  std::vector<std::size_t> free_;
  std::int64_t work_per_round_;
  std::int64_t work_ = 0;
  std::int64_t num_questions_ = 0;
};

}  // namespace

Nanoseconds place_bound(const ChunkCosts& costs, const PipelineShape& shape,
                        std::int64_t max_work) {
  std::vector<PassCost> slots;  // on one stage
  double forwards = 0;
  double backwards = 0;
  for (std::size_t slot = 0; slot < costs.num_rows(); ++slot) {
    const auto row = costs.row(slot);
    slots.push_back({row[costs.column(0, false)], row[costs.column(0, true)]});
    forwards += static_cast<double>(slots.back().forward);
    backwards += static_cast<double>(slots.back().backward);
  }
  if (forwards <= 0 || backwards <= 0) return 0;

  // Nothing takes longer with smaller slots: these have one ratio.
  const double ratio = backwards / forwards;
  Sizes sizes;
  for (const PassCost& slot : slots) {
    sizes.push_back(
        std::min(static_cast<double>(slot.forward), static_cast<double>(slot.backward) / ratio));
  }
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  const double work = (1 + ratio) * std::accumulate(sizes.begin(), sizes.end(), 0.0);
  const double bound = work + PlaceSearch(sizes, static_cast<std::size_t>(shape.stages), ratio,
                                          static_cast<double>(shape.transfer_ns))
                                  .least_gain(max_work);
  // Weights are at most twice the stages times a slot, and means of up to a million rounds.
  const double rounding = 1e-10 * shape.stages;
  return static_cast<Nanoseconds>(
      std::min(std::ceil(bound * (1 - rounding)), static_cast<double>(max_total_cost)));
}

}  // namespace isochron
