#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "isochron/balance/assignment.h"
#include "isochron/core/sequences.h"

namespace isochron {

enum class UnitKind {
  sequence,  // each row is a unit
  group,     // all rows of a group are one
};

// The units of a range of rows, numbered by first occurrence, and the rows behind them. Keeps views
// of the sequences. Rows are counted from the first one of the range.
class UnitTable {
 public:
  UnitTable(const Sequences& sequences, std::size_t first, std::size_t last, UnitKind kind);
  UnitTable(const UnitTable&) = delete;  // units() points into the table
  UnitTable& operator=(const UnitTable&) = delete;

  [[nodiscard]] const Units& units() const { return units_; }
  [[nodiscard]] std::size_t num_rows() const { return num_rows_; }
  [[nodiscard]] std::size_t unit_of_row(std::size_t row) const {
    return unit_of_row_.empty() ? row : static_cast<std::size_t>(unit_of_row_[row]);
  }
  [[nodiscard]] SequenceId sequence(std::size_t row) const {
    return SequenceId(static_cast<std::int32_t>(first_ + row));
  }
  // "sequence 7", or "the group of sequence 7" for its first row.
  [[nodiscard]] std::string name_of_unit(std::size_t unit) const;

 private:
  std::size_t first_;
  std::size_t num_rows_;
  std::vector<Nanoseconds> costs_;         // of groups
  std::vector<Tokens> tokens_;             // of groups
  std::vector<std::int32_t> sizes_;        // of groups
  std::vector<std::int32_t> unit_of_row_;  // empty: row i is unit i
  Units units_;
};

}  // namespace isochron
