#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "isochron/plan/bundles/cover_basis.h"

namespace isochron {

// The linear program that covers each of a few elements, at most 255, once by parts of sets, at the
// least cost, and its dual: prices of the elements.
class SetProgram {
 public:
  static constexpr std::size_t max_members = 5;
  struct Set {
    Set(std::size_t num_elements, double its_cost) : cost(its_cost) {
      members.fill(static_cast<std::uint8_t>(num_elements));
    }
    std::array<std::uint8_t, max_members> members;  // the number of elements where there are fewer
    double cost;
  };

  // What no set covers costs `alone` for each element.
  SetProgram(std::size_t num_elements, double alone, std::span<const Set> sets);

  // Prices whose sum is as large as it gets while none of the first `count` sets costs less than
  // its elements, and none is above `alone`. So no cover by these sets costs less than the sum.
  // Begins where it ended last.
  [[nodiscard]] std::span<const double> prices(std::size_t count);

  // How much of each of the first `count` sets the cover of the last prices has.
  [[nodiscard]] std::vector<double> uses(std::size_t count) const;

 private:
  void begin(std::size_t end);
  [[nodiscard]] double saving(const Set& set) const;
  std::size_t find_entering(std::size_t end);
  bool enter(std::size_t set);
  void lower(std::size_t end);

  double alone_;
  std::vector<Set> sets_;            // elements alone come first
  std::vector<std::size_t> set_of_;  // in each row of the basis
  CoverBasis basis_;
  std::size_t next_ = 0;  // set to look at
};

}  // namespace isochron
