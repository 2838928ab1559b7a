// A rank with k micro-batches works time - k * fixed at most, and density * k plus what it has of
// the dense work. So with its dense work rising from none, the best k falls one by one: to `few`
// after what it lacks then, and by one more after every density + fixed. Each of these steps gains
// less for its dense work than the first, and nothing before its end. So dense work goes to as many
// ranks as it takes to `few`, then to any for the next step, and what is left is on one rank.

#include "isochron/plan/bounds/dense_work.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace isochron {

double most_work(double ranks, double time, double fixed, double density, double dense) {
  const double step = density + fixed;
  const double limit = ranks * std::max(0.0, time - fixed);  // with one micro-batch each
  if (step <= 0 || time < step) return limit;
  const double few = std::floor(time / step);
  const double need = time - few * step;  // for `few`: the next one less needs a step more
  const double usual = std::max(few * density, time - (few + 1) * fixed);
  const double gain = time - few * fixed - usual;
  if (dense < ranks * need) {
    const double rest = std::fmod(dense, need);
    return ranks * usual + (dense - rest) / need * gain + std::max(0.0, rest - (need - gain));
  }
  const double more = dense - ranks * need;
  const double rest = std::fmod(more, step);
  return std::min(
      limit, ranks * (usual + gain) + (more - rest) / step * fixed + std::max(0.0, rest - density));
}

// As a function of the density, dense work over what a rank lacks falls and rises again. It turns
// where few * dense = (share of what is as dense) * (what a rank lacks): a selection finds it.
double critical_density(std::span<const WorkShare> loads, std::int32_t few, double time,
                        double fixed) {
  const double highest = std::max(0.0, time / few - fixed);
  const double lowest = std::max(0.0, time / (few + 1) - fixed);
  struct Part {
    double density;
    double work;
    double share;
  };
  std::vector<Part> parts;  // among which the critical one is
  double work = 0;          // of what is denser than they are
  double share = 0;
  for (const WorkShare& load : loads) {
    if (load.work < lowest * load.share) continue;
    if (load.share <= 0 || load.work > highest * load.share) {
      work += load.work;
      share += load.share;
    } else {
      parts.push_back({load.work / load.share, load.work, load.share});
    }
  }
  double best = lowest;
  std::vector<Part> denser;
  std::vector<Part> others;
  while (!parts.empty()) {  // halves, as in a selection
    const double density = parts[parts.size() / 2].density;
    Part above{density, work, share};
    Part equal{density, 0, 0};
    denser.clear();
    others.clear();
    for (const Part& part : parts) {
      Part& sum = part.density > density ? above : equal;
      if (part.density > density) denser.push_back(part);
      if (part.density < density) {
        others.push_back(part);
        continue;
      }
      sum.work += part.work;
      sum.share += part.share;
    }
    const double need = time - few * (density + fixed);
    if (few * (above.work - density * above.share) < (above.share + equal.share) * need) {
      best = std::max(best, density);
      parts.swap(denser);
    } else {
      work = above.work + equal.work;
      share = above.share + equal.share;
      parts.swap(others);
    }
  }
  return best;
}

}  // namespace isochron
