#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "isochron/core/enum_names.h"
#include "isochron/core/ids.h"

namespace isochron {

// How many items the parts of a partition hold.
enum class PartSizes {
  equal,  // each as many; the number of parts divides the number of items
  free,   // each at least one
};

template <>
struct EnumNames<PartSizes> {
  static constexpr std::array<std::pair<PartSizes, std::string_view>, 2> values = {
      {{PartSizes::equal, "equal"}, {PartSizes::free, "free"}}};
};

// Divides the items 0, 1, .. into `parts` sets of about equal sums by largest differencing
// (Karmarkar and Karp, 1982), bit for bit as verl and slime do. The sets come in descending order
// of (sum, number of items, first item); items in the order in which the method joined them. Sums
// are formed in the type of the values, so that rounding decides as it does there.
//
// Throws std::invalid_argument if `parts` is below 1 or above the number of values, does not divide
// it (PartSizes::equal), a value is negative or not finite, or the values add up to more than 2^62
// (integers) or half the largest number of their type. O(n log n) time where sums are exact (whole
// numbers), otherwise one more addition for each item that moves; O(n) memory.
[[nodiscard]] std::vector<std::vector<SequenceId>> karmarkar_karp(
    std::span<const std::int64_t> values, std::int32_t parts, PartSizes sizes);
[[nodiscard]] std::vector<std::vector<SequenceId>> karmarkar_karp(std::span<const float> values,
                                                                  std::int32_t parts,
                                                                  PartSizes sizes);
[[nodiscard]] std::vector<std::vector<SequenceId>> karmarkar_karp(std::span<const double> values,
                                                                  std::int32_t parts,
                                                                  PartSizes sizes);

// The same sets in the same order, the items of each ascending: verl's
// get_seqlen_balanced_partitions.
[[nodiscard]] std::vector<std::vector<SequenceId>> balanced_partitions(
    std::span<const std::int64_t> values, std::int32_t parts, PartSizes sizes);
[[nodiscard]] std::vector<std::vector<SequenceId>> balanced_partitions(
    std::span<const float> values, std::int32_t parts, PartSizes sizes);
[[nodiscard]] std::vector<std::vector<SequenceId>> balanced_partitions(
    std::span<const double> values, std::int32_t parts, PartSizes sizes);

}  // namespace isochron
