#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace isochron {

// The basis of a linear program that covers elements by columns, and the exchange of the simplex
// method. There are as many rows as elements, and a column in each.
class CoverBasis {
 public:
  // Row i has a column that covers so much of element i alone: more than nothing. Prices are 0.
  void begin(std::span<const double> parts);

  [[nodiscard]] std::size_t size() const { return size_; }
  // How much of the column of each row the cover has.
  [[nodiscard]] std::span<const double> uses() const { return use_; }
  // Of the elements, and a 0 behind them. They are the caller's to begin with.
  [[nodiscard]] std::span<double> prices() { return price_; }
  [[nodiscard]] std::span<const double> prices() const { return price_; }
  // What a unit of an element is in terms of the rows.
  [[nodiscard]] std::span<const double> inverse(std::size_t element) const {
    return std::span(inverse_).subspan(element * size_, size_);
  }

  // At the beginning, of two columns that cover one element each whole, at a cost of 1: that of
  // `first` covers both from now on, the other is not used.
  void join(std::size_t first, std::size_t other);

  // The column that is to enter, part by part.
  void begin_column();
  void add(std::size_t element, double part);
  // Lets it enter, where it is worth `gain` more than it costs, and changes the prices. The row
  // that it has then; none if nothing limits it.
  std::optional<std::size_t> exchange(double gain);

 private:
  std::size_t size_ = 0;
  std::vector<double> price_;
  std::vector<double> inverse_;  // by element, then by row
  std::vector<double> use_;
  std::vector<double> change_;  // what enters, in terms of the rows
};

}  // namespace isochron
