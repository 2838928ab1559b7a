#pragma once

#include <vector>

#include "isochron/plan/problem.h"

namespace isochron {

// A micro-batch on several cells, while a step is built.
struct WideGroup {
  RankRange ranks;
  std::vector<ItemId> items = {};
  Tokens tokens = 0;
  std::int32_t num_sequences = 0;
  Nanoseconds start = 0;  // when it runs, where groups are placed in time
  Nanoseconds end = 0;
};

// The wide groups of a step, and when they leave each rank free.
struct WideGroups {
  std::vector<WideGroup> groups;
  std::vector<Nanoseconds> height;  // of each rank
  Nanoseconds top = 0;              // of all ranks

  void reset(std::int32_t num_ranks);
  void raise(RankRange ranks, Nanoseconds height_of_all);
};

// How much wider than asked a group may become to keep a target.
enum class Reach { near, far };

[[nodiscard]] bool has_room(const Problem& problem, const WideGroup& group, ItemId item);

// Whether a bundle is one item that the group has room for.
[[nodiscard]] bool can_join(const Problem& problem, const WideGroup& group, BundleId bundle);

void add_item(const Problem& problem, ItemId item, WideGroup& group);

// Micro-batches for a bundle: one, or several if it has many items; first fit. How many there are.
std::int32_t open_groups(const Problem& problem, BundleId bundle, RankRange ranks,
                         std::vector<WideGroup>& groups);

}  // namespace isochron
