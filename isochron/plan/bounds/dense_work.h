#pragma once

#include <cstdint>
#include <span>

namespace isochron {

// How much ranks with few micro-batches can do: these hold few shares, so what they run must be
// dense, with much work for its share of a micro-batch.

// The work of something, and what it takes of micro-batches. Both count once for every rank.
struct WorkShare {
  double work = 0;
  double share = 0;
};

// The most work that ranks do within `time`, if `dense` is the sum over all work of what exceeds
// `density` times its share, and every micro-batch costs its rank `fixed` besides.
[[nodiscard]] double most_work(double ranks, double time, double fixed, double density,
                               double dense);

// The density for which most_work() is about least, if most ranks run `few` micro-batches or one
// more.
[[nodiscard]] double critical_density(std::span<const WorkShare> loads, std::int32_t few,
                                      double time, double fixed);

}  // namespace isochron
