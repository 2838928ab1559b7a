#include "isochron/balance/unit_table.h"

#include <algorithm>
#include <unordered_map>

#include "isochron/core/require.h"

namespace isochron {

UnitTable::UnitTable(const Sequences& sequences, std::size_t first, std::size_t last, UnitKind kind)
    : first_(first), num_rows_(last - first) {
  const auto costs = sequences.costs.subspan(first, num_rows_);
  const bool has_lengths = !sequences.lengths.empty();
  const auto lengths =
      has_lengths ? sequences.lengths.subspan(first, num_rows_) : std::span<const Tokens>();
  if (kind == UnitKind::sequence) {
    units_ = {.costs = costs, .tokens = lengths};
    return;
  }
  std::unordered_map<std::int32_t, std::int32_t> unit_of_group;
  unit_of_row_.reserve(num_rows_);
  for (std::size_t row = 0; row < num_rows_; ++row) {
    const auto [entry, is_new] = unit_of_group.try_emplace(
        sequences.groups[first + row].value(), static_cast<std::int32_t>(costs_.size()));
    if (is_new) {
      costs_.push_back(0);
      sizes_.push_back(0);
      if (has_lengths) tokens_.push_back(0);
    }
    const auto unit = static_cast<std::size_t>(entry->second);
    unit_of_row_.push_back(entry->second);
    costs_[unit] += costs[row];
    sizes_[unit] += 1;
    if (has_lengths) tokens_[unit] += lengths[row];
  }
  units_ = {.costs = costs_, .tokens = tokens_, .sizes = sizes_};
}

std::string UnitTable::name_of_unit(std::size_t unit) const {
  if (unit_of_row_.empty()) return fmt::format("sequence {}", sequence(unit).value());
  const auto row =
      std::find(unit_of_row_.begin(), unit_of_row_.end(), static_cast<std::int32_t>(unit)) -
      unit_of_row_.begin();
  return fmt::format("the group of sequence {}", sequence(static_cast<std::size_t>(row)).value());
}

}  // namespace isochron
