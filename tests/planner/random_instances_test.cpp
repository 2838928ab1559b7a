// Random batches under every combination of options, through the independent checker.
//
// ISOCHRON_RANDOM_FACTOR multiplies the number of instances; a failure shows seed and document.

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "isochron/balance/balance.h"
#include "isochron/balance/balance_json.h"
#include "isochron/check/check.h"
#include "isochron/cost/cost_model.h"
#include "isochron/pack/pack.h"
#include "isochron/pack/pack_json.h"
#include "tests/support/num_instances.h"
#include "tests/support/random_batch.h"

namespace isochron {
namespace {

std::int32_t random_number(Random& random, std::int64_t low, std::int64_t high) {
  return static_cast<std::int32_t>(random.between(low, high));
}

// Mostly a handful of sequences, where all the corners are; now and then many.
std::size_t random_count(Random& random) {
  const std::uint64_t kind = random.below(100);
  return 1 + random.below(kind == 0 ? 1000 : kind < 20 ? 120 : 16);
}

CostModel random_cost_model(Random& random) {
  switch (random.below(4)) {
    case 0:
      return cost_preset("verl");
    case 1:
      return {.name = "tokens", .linear_ns = 1};
    case 2:
      return {.name = "squares", .quadratic_ns = 3, .microbatch_ns = 1000};
    default:
      return {.name = "rounded", .quadratic_ns = 0.37, .linear_ns = 12.9};
  }
}

Tokens total_tokens(const Batch& batch) {
  Tokens total = 0;
  for (const Tokens length : batch.lengths) total += length;
  return total;
}

std::string shown(const std::optional<std::string>& violation) {
  return violation.value_or("none");
}

TEST(RandomInstances, BalancePassesTheChecker) {
  std::uint64_t num_answered = 0;
  const std::uint64_t count = num_instances(60'000);
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    Random random(seed);
    const std::size_t num_sequences = random_count(random);
    BalanceOptions options;
    options.equal_count = seed % 2 == 1;
    if (seed / 2 % 2 == 1) options.keep_groups = KeepGroups::rank;
    if (seed / 4 % 2 == 1) {
      options.minibatch = random_number(random, 1, static_cast<std::int64_t>(num_sequences));
    }
    if (seed / 16 % 2 == 1) options.order = Order::small_ends;
    if (random.below(4) == 0) options.max_work = random.between(0, 5000);
    const auto ranks = random_number(random, 1, random.below(10) == 0 ? 100 : 9);
    const std::size_t rows =
        options.minibatch == 0 ? num_sequences : static_cast<std::size_t>(options.minibatch);
    const Batch batch =
        random_named_batch(random, num_sequences, Tokens{1} << random.below(17), rows);
    if (seed / 8 % 2 == 1) {  // around what the ranks need
      options.capacity = 1 + total_tokens(batch) / ranks * random.between(80, 200) / 100 +
                         random.between(0, batch.lengths[0]);
    }
    const CostModel cost = random_cost_model(random);
    const std::vector<Nanoseconds> costs = sequence_costs(cost, batch);
    const Balance result = balance({batch.lengths, costs, batch.groups}, ranks, options);
    const std::string document = to_json(result, ranks, options, cost, batch);
    const auto violation = find_violation(document, &batch);
    ASSERT_FALSE(violation) << "seed " << seed << ": " << shown(violation) << "\n" << document;
    num_answered += result.sequences_of_rank.empty() ? 0 : 1;
  }
  EXPECT_GT(num_answered, count / 2);
}

TEST(RandomInstances, PackPassesTheChecker) {
  std::uint64_t num_answered = 0;
  const std::uint64_t count = num_instances(60'000);
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    Random random(seed);
    const std::size_t num_sequences = random_count(random);
    const Tokens longest = Tokens{1} << random.below(17);
    const Batch batch = random_named_batch(random, num_sequences, longest, num_sequences);
    PackOptions options;
    options.short_ = std::array{Short::empty, Short::error, Short::drop}[seed % 3];
    if (seed / 3 % 2 == 1) options.oversize = Oversize::alone;
    if (seed / 6 % 2 == 1) options.keep_groups = KeepGroups::microbatch;
    if (seed / 12 % 2 == 1) options.max_sequences = random_number(random, 1, 8);
    if (seed / 24 % 2 == 1) options.order = Order::small_ends;
    if (random.below(4) == 0) options.max_work = random.between(0, 5000);
    if (random.below(2) == 0) options.multiple = random_number(random, 1, 8);
    if (random.below(2) == 0) options.min_count = random_number(random, 0, 20);
    options.capacity = random.below(3) == 0 ? random.between(1, 4 * longest)
                                            : random.between(longest, 4 * longest);
    if (random.below(4) == 0) {  // what is needed, or a little more or less
      const std::int32_t needed =
          microbatch_count(batch.lengths, options.capacity) + random_number(random, -1, 4);
      const std::int32_t least = std::max({needed, options.min_count, 1});
      options.count = (least + options.multiple - 1) / options.multiple * options.multiple;
    }
    const CostModel cost = random_cost_model(random);
    const std::vector<Nanoseconds> costs = sequence_costs(cost, batch);
    const Packing packing = pack({batch.lengths, costs, batch.groups}, options);
    const std::string document = to_json(packing, options, cost, batch);
    const auto violation = find_violation(document, &batch);
    ASSERT_FALSE(violation) << "seed " << seed << ": " << shown(violation) << "\n" << document;
    num_answered += packing.microbatches.empty() ? 0 : 1;
  }
  EXPECT_GT(num_answered, count / 2);
}

}  // namespace
}  // namespace isochron
