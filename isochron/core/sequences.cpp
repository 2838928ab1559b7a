#include "isochron/core/sequences.h"

#include "isochron/core/require.h"

namespace isochron {

void check_costs(std::string_view where, std::span<const Nanoseconds> costs) {
  Nanoseconds total = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (costs[i] < 0) reject(where, "costs[{}] is {}, must be at least 0", i, costs[i]);
    if (costs[i] > max_total_cost - total) {
      reject(where, "the costs up to sequence {} add up to more than 2^62", i);
    }
    total += costs[i];
  }
}

void check_lengths(std::string_view where, std::span<const Tokens> lengths, std::size_t count) {
  require(lengths.size() == count, where, "{} lengths, must be {} as there are costs",
          lengths.size(), count);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 1 || lengths[i] > max_length) {
      reject(where, "lengths[{}] is {}, must be from 1 to {}", i, lengths[i], max_length);
    }
  }
}

void check_groups(std::string_view where, std::span<const PromptGroupId> groups,
                  std::size_t count) {
  require(groups.size() == count, where,
          "keep_groups needs a group for each of {} sequences, {} are given", count, groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].value() < 0 || groups[i].index() >= count) {
      reject(where, "groups[{}] is {}, must be from 0 to {}", i, groups[i].value(), count - 1);
    }
  }
}

}  // namespace isochron
