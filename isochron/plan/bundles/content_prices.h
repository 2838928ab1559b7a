#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "isochron/plan/bundles/rank_contents.h"

namespace isochron {

// Contents of ranks that are known, and prices of bundles at which none of them is worth much more
// than its limit, which is about 1.
class ContentPrices {
 public:
  explicit ContentPrices(std::size_t num_bundles) : num_bundles_(num_bundles) {}

  // A content, if it is not known yet, that may be worth `limit`: from now on, if it is.
  void add(std::span<const ContentPart> content, double limit);
  // Forgets what stays below its limit where no price rises by more than `reach`, unless it
  // keeps prices down at the moment.
  void forget_cheap(std::span<const double> prices, double reach);

  // Prices whose sum is large beside the most that a known content is worth of its limit:
  // `num_steps` of a method that goes on from where it ended last. None is below 0, none rises by
  // more than `reach`, since contents that are not known yet get dearer; one falls further only if
  // a content with its bundle is worth more than its limit, and not by more than 1.5 times that.
  [[nodiscard]] std::vector<double> improved(std::span<const double> prices, double reach,
                                             int num_steps);

  // Looks at parts of contents so far: about a nanosecond each.
  [[nodiscard]] std::int64_t work() const { return work_; }

 private:
  struct Part {
    std::uint32_t bundle = 0;
    float part = 0;  // of it
  };
  [[nodiscard]] std::size_t size() const { return weights_.size(); }
  [[nodiscard]] std::span<const Part> parts(std::size_t i) const {
    return std::span(parts_).subspan(begin_[i], begin_[i + 1] - begin_[i]);
  }

  std::size_t num_bundles_;
  std::vector<std::size_t> begin_ = {0};
  std::vector<Part> parts_;
  std::vector<float> weights_;  // how often each is used
  std::vector<float> limits_;
  std::vector<std::uint64_t> keys_;
  std::unordered_map<std::uint64_t, std::size_t> known_;  // by key
  std::int64_t work_ = 0;
};

}  // namespace isochron
