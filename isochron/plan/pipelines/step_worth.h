#pragma once

#include <cstdint>

#include "isochron/plan/problem.h"

namespace isochron {

// What a step with stages is worth: how long planning it may take, and what may be saved.
class StepWorth {
 public:
  // No step is shorter than `bound`; the question gets `work`.
  StepWorth(const Problem& problem, Nanoseconds bound, std::int64_t work);

  // How many times a look at everything is about a hundredth of the step; infinite where somebody
  // asks for more effort.
  [[nodiscard]] double looks() const { return looks_; }
  // Whether it is not worth a look at everything, or hardly worth any.
  [[nodiscard]] bool is_hasty() const { return looks_ < 1; }
  [[nodiscard]] bool is_hardly() const { return looks_ < 0.12; }
  // Whether planning is to take a part of the step.
  [[nodiscard]] bool is_timed() const { return is_timed_; }

  // Nanoseconds that a search for cells may take; few take as much. Linear programs do, and long
  // items that no cells hold.
  [[nodiscard]] double time_for_cells() const;

  // Slots of groups of several sizes help where some items are too long for anything else.
  [[nodiscard]] Nanoseconds good_time() const { return bound_ + bound_ / 8; }
  [[nodiscard]] bool is_good(Nanoseconds time) const { return time <= good_time(); }
  // Grids that are so near are hardly behind cells of several sizes.
  [[nodiscard]] bool is_near_bound(Nanoseconds time) const { return time - bound_ <= bound_ / 20; }
  // So far that half of what is lost pays for a search of cells.
  [[nodiscard]] bool is_far(Nanoseconds time) const;
  // Whether a static size that takes at least `least` may save a few times what it takes to ask it,
  // where `best` is known.
  [[nodiscard]] bool is_worth_asking(Nanoseconds least, Nanoseconds best) const;
  // Whether a grid that takes roughly `time` is so much longer than what is known that making it
  // properly does not help.
  [[nodiscard]] bool is_hopeless(Nanoseconds time, Nanoseconds known) const;

 private:
  Nanoseconds bound_;
  std::int64_t num_items_;
  double looks_;
  bool is_timed_;
};

}  // namespace isochron
