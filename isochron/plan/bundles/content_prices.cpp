// The linear program of covers, by a first order method.
//
// Prices p of bundles are to be large in sum while no content of a rank is above its limit; the
// dual says how often each content is used so that all bundles are run once. Both take turns
// (Chambolle and Pock, 2011): a content that is worth more is used more, what is run too
// seldom gets dearer, each with a step by how many the other side has of it. Few steps get near,
// and near is enough: whatever prices come out, a bound is proved anew for them.

#include "isochron/plan/bundles/content_prices.h"

#include <algorithm>

namespace isochron {

namespace {

std::uint64_t mixed(std::uint64_t x) {
  x *= 0x9e3779b97f4a7c15ULL;
  x ^= x >> 29;
  return x * 0xbf58476d1ce4e5b9ULL;
}

std::uint64_t key_of(std::span<const ContentPart> parts) {
  std::uint64_t key = 0;
  for (const ContentPart& part : parts) {
    key += mixed((static_cast<std::uint64_t>(part.bundle) << 32) +
                 static_cast<std::uint64_t>(part.size));
  }
  return key;
}

}  // namespace

void ContentPrices::add(std::span<const ContentPart> content, double limit) {
  const std::uint64_t key = key_of(content);
  const auto [known, is_new] = known_.try_emplace(key, size());
  if (!is_new) {
    limits_[known->second] = static_cast<float>(limit);
    return;
  }
  for (const ContentPart& part : content) {
    parts_.push_back({.bundle = static_cast<std::uint32_t>(part.bundle),
                      .part = 1 / static_cast<float>(part.size)});
  }
  begin_.push_back(parts_.size());
  weights_.push_back(0);
  limits_.push_back(static_cast<float>(limit));
  keys_.push_back(key);
}

void ContentPrices::forget_cheap(std::span<const double> prices, double reach) {
  std::size_t count = 0;
  std::size_t end = 0;
  for (std::size_t i = 0; i < size(); ++i) {
    double worth = 0;
    for (const Part& part : parts(i)) {
      worth += static_cast<double>(part.part) * (prices[part.bundle] + reach);
    }
    if (weights_[i] == 0 && worth < static_cast<double>(limits_[i])) {
      known_.erase(keys_[i]);
      continue;
    }
    const std::size_t first = begin_[i];
    const std::size_t last = begin_[i + 1];
    begin_[count] = end;
    for (std::size_t k = first; k < last; ++k) parts_[end++] = parts_[k];
    weights_[count] = weights_[i];
    limits_[count] = limits_[i];
    keys_[count] = keys_[i];
    known_[keys_[i]] = count;
    ++count;
  }
  begin_.resize(count + 1);
  begin_[count] = end;
  parts_.resize(end);
  weights_.resize(count);
  limits_.resize(count);
  keys_.resize(count);
}

std::vector<double> ContentPrices::improved(std::span<const double> prices, double reach,
                                            int num_steps) {
  const float pace = 7 * static_cast<float>(reach);  // how far a price moves for a use
  std::vector<float> use_step(size());
  std::vector<float> price_step(num_bundles_, 0);
  for (std::size_t i = 0; i < size(); ++i) {
    float sum = 0;
    for (const Part& part : parts(i)) {
      price_step[part.bundle] += part.part;
      sum += part.part;
    }
    use_step[i] = 1 / (pace * sum);
  }
  struct Moving {
    float now = 0;
    float ahead = 0;  // as far again as the last step
    float low = 0;
    float high = 0;
  };
  // A share of what contents are worth too much, and some more for those that stay up.
  std::vector<double> fall(num_bundles_, reach);
  for (std::size_t i = 0; i < size(); ++i) {
    double excess = -static_cast<double>(limits_[i]);
    for (const Part& part : parts(i))
      excess += static_cast<double>(part.part) * prices[part.bundle];
    const double share = 1.5 * excess / static_cast<double>(parts(i).size());
    for (const Part& part : parts(i)) fall[part.bundle] = std::max(fall[part.bundle], share);
  }
  std::vector<Moving> state(num_bundles_);
  for (std::size_t b = 0; b < num_bundles_; ++b) {
    price_step[b] = pace / std::max(1.0F, price_step[b]);
    state[b].now = state[b].ahead = static_cast<float>(prices[b]);
    state[b].low = static_cast<float>(std::max(0.0, prices[b] - fall[b]));
    state[b].high = static_cast<float>(prices[b] + reach);
  }
  std::vector<double> best(prices.begin(), prices.end());
  double best_ratio = 0;
  std::vector<float> run(num_bundles_);  // how often each bundle is
  for (int k = 0; k < num_steps; ++k) {
    std::fill(run.begin(), run.end(), 0.0F);
    float dearest = 0;
    for (std::size_t i = 0; i < size(); ++i) {
      float worth = 0;
      for (const Part& part : parts(i)) worth += part.part * state[part.bundle].ahead;
      const float excess = worth - limits_[i];
      dearest = std::max(dearest, worth / limits_[i]);
      weights_[i] = std::max(0.0F, weights_[i] + use_step[i] * excess);
      if (weights_[i] == 0) continue;
      for (const Part& part : parts(i)) run[part.bundle] += part.part * weights_[i];
    }
    double sum = 0;
    for (const Moving& price : state) sum += static_cast<double>(price.ahead);
    if (sum > best_ratio * static_cast<double>(dearest)) {
      best_ratio = sum / static_cast<double>(dearest);
      for (std::size_t b = 0; b < num_bundles_; ++b) {
        best[b] = static_cast<double>(state[b].ahead);
      }
    }
    for (std::size_t b = 0; b < num_bundles_; ++b) {
      Moving& price = state[b];
      const float next =
          std::clamp(price.now + price_step[b] * (1 - run[b]), price.low, price.high);
      price.ahead = std::clamp(2 * next - price.now, price.low, price.high);
      price.now = next;
    }
  }
  work_ += static_cast<std::int64_t>(2 * parts_.size()) * (num_steps + 1);
  return best;
}

}  // namespace isochron
