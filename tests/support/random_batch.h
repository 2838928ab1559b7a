#pragma once

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "isochron/core/batch.h"
#include "isochron/core/random.h"
#include "isochron/core/sequences.h"

namespace isochron {

struct BatchShape {
  std::size_t count = 8;
  Tokens longest = 10;
  std::size_t minibatch = 0;  // rows that share their groups; 0: all
};

struct RandomBatch {
  std::vector<Tokens> lengths;
  std::vector<Nanoseconds> costs;
  std::vector<PromptGroupId> groups;

  [[nodiscard]] Sequences view() const { return {lengths, costs, groups}; }
};

inline std::ostream& operator<<(std::ostream& out, const RandomBatch& batch) {
  const auto list = [&out](const char* name, const auto& values, auto number) {
    out << name << " [";
    for (const auto& value : values) out << (&value == values.data() ? "" : ",") << number(value);
    out << "] ";
  };
  list("lengths", batch.lengths, [](Tokens length) { return length; });
  list("costs", batch.costs, [](Nanoseconds cost) { return cost; });
  list("groups", batch.groups, [](PromptGroupId group) { return group.value(); });
  return out;
}

// Lengths that are uniform, long-tailed, of few values, powers of two, all equal, or close to a
// half, a third or the whole of `longest`.
inline std::vector<Tokens> random_lengths(Random& random, std::size_t count, Tokens longest) {
  const std::uint64_t kind = random.below(6);
  const Tokens first = random.between(1, longest);
  const Tokens second = random.between(1, longest);
  std::vector<Tokens> lengths;
  if (kind == 1) lengths = long_tailed_lengths(static_cast<std::int32_t>(count), random.next());
  while (lengths.size() < count) {
    switch (kind) {
      case 0:
        lengths.push_back(random.between(1, longest));
        break;
      case 2:
        lengths.push_back(random.below(3) == 0 ? first : second);
        break;
      case 3:
        lengths.push_back(Tokens{1} << random.below(20));
        break;
      case 4:
        lengths.push_back(first);
        break;
      default:
        lengths.push_back(longest / random.between(1, 3) + random.between(-1, 1));
        break;
    }
  }
  for (Tokens& length : lengths) length = std::clamp<Tokens>(length, 1, longest);
  return lengths;
}

// Costs that follow the lengths, their squares, or nothing at all; zeros and huge ones among them.
inline std::vector<Nanoseconds> random_costs(Random& random, const std::vector<Tokens>& lengths) {
  const std::uint64_t kind = random.below(6);
  std::vector<Nanoseconds> costs;
  for (const Tokens length : lengths) {
    switch (kind) {
      case 0:
        costs.push_back(length);
        break;
      case 1:
        costs.push_back(24576 * length + length * length);
        break;
      case 2:
        costs.push_back(random.between(0, 3));
        break;
      case 3:
        costs.push_back(random.between(0, 1'000'000));
        break;
      case 4:
        costs.push_back(
            random.between(0, max_total_cost / static_cast<Nanoseconds>(lengths.size())));
        break;
      default:
        costs.push_back(length * length);
        break;
    }
  }
  return costs;
}

// Lengths, costs, and groups that lie in one mini-batch each but need not be adjacent.
inline RandomBatch random_batch(std::uint64_t seed, const BatchShape& shape) {
  Random random(seed);
  RandomBatch batch;
  batch.lengths = random_lengths(random, shape.count, shape.longest);
  batch.costs = random_costs(random, batch.lengths);
  const std::size_t rows = shape.minibatch == 0 ? shape.count : shape.minibatch;
  for (std::size_t i = 0; i < shape.count; ++i) {
    const std::size_t first = i / rows * rows;
    const std::size_t last = std::min(shape.count, first + rows);
    batch.groups.emplace_back(static_cast<std::int32_t>(first + random.below(last - first)));
  }
  return batch;
}

// A batch with groups, which lie in one mini-batch each, and sometimes with extra costs.
inline Batch random_named_batch(Random& random, std::size_t count, Tokens longest,
                                std::size_t rows) {
  Batch batch;
  batch.lengths = random_lengths(random, count, longest);
  if (random.below(4) == 0) {
    for (std::size_t i = 0; i < count; ++i) {
      batch.extra_cost_ns.push_back(random.between(0, 100'000));
    }
  }
  const std::uint64_t groups_per_block = 1 + random.below(std::min(rows, count));
  std::vector<std::int32_t> number_of;  // of what was drawn, by first occurrence
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t drawn = i / rows * groups_per_block + random.below(groups_per_block);
    if (drawn >= number_of.size()) number_of.resize(drawn + 1, -1);
    if (number_of[drawn] < 0) {
      number_of[drawn] = static_cast<std::int32_t>(batch.group_names.size());
      batch.group_names.push_back("prompt " + std::to_string(drawn));
    }
    batch.groups.emplace_back(number_of[drawn]);
  }
  return batch;
}

}  // namespace isochron
