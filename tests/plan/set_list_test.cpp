// Sets of up to three bundles beside all that there are.

#include "isochron/plan/bundles/set_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "isochron/core/random.h"
#include "tests/plan/drawn_bundles.h"
#include "tests/support/num_instances.h"

namespace isochron {
namespace {

constexpr std::int32_t num_ranks = 8;

Drawn drawn_prompts(std::uint64_t seed) {
  Random random(seed);
  std::vector<std::vector<Tokens>> prompts(static_cast<std::size_t>(random.between(1, 14)));
  for (auto& prompt : prompts) {
    for (int i = 0; i < 3; ++i) prompt.push_back(random.between(1000, 40'000));
  }
  Drawn drawn = plain_bundles(prompts);
  drawn.topology = {.ranks = num_ranks, .capacity = seed % 2 == 0 ? 1 << 20 : 90'000};
  drawn.options = resolved({.context = "dynamic", .keep_groups = KeepGroups::rank}, drawn.topology);
  drawn.cost.microbatch_ns = 1500;
  return drawn;
}

using Members = std::vector<BundleId>;

// How often each set was listed, its members sorted.
std::map<Members, int> counted(const std::vector<PricedSet>& sets) {
  std::map<Members, int> counts;
  for (const PricedSet& set : sets) {
    Members members(set.members().begin(), set.members().end());
    std::sort(members.begin(), members.end());
    ++counts[members];
  }
  return counts;
}

// All sets of up to three bundles.
template <class See>
void each_set(std::int32_t count, See see) {
  for (BundleId a = 0; a < count; ++a) {
    see(Members{a});
    for (BundleId b = a + 1; b < count; ++b) {
      see(Members{a, b});
      for (BundleId c = b + 1; c < count; ++c) see(Members{a, b, c});
    }
  }
}

struct Listed {
  explicit Listed(std::uint64_t seed)
      : drawn(drawn_prompts(seed)),
        problem(drawn.work, drawn.topology, drawn.cost, drawn.options),
        table(problem) {
    Random random(seed + 1);
    time = random.between(90'000, 180'000);
    for (BundleId bundle = 0; bundle < table.num_bundles(); ++bundle) {
      bundles.push_back(bundle);
      const double cost =
          static_cast<double>(table.use(1, bundle).cost) / static_cast<double>(time);
      fluid.push_back(2 * cost);
      prices.push_back(2 * cost * (0.9 + 0.2 * random.unit()));
    }
  }
  SetList list(std::int32_t level) const {
    return {table, level, level == 0 ? 1.0 : 2.0, bundles, prices, fluid, time};
  }
  Nanoseconds time_of(std::int32_t level, const Members& members) const {
    BlockUse all;
    for (const BundleId bundle : members) {
      const BlockUse& use = table.use(level, bundle);
      all.cost += use.cost;
      all.tokens += use.tokens;
      all.sequences += use.sequences;
    }
    return table.time(level, all);
  }
  double worth_of(std::int32_t level, const Members& members) const {
    double worth = 0;
    for (const BundleId bundle : members) {
      const auto b = static_cast<std::size_t>(bundle);
      worth += std::min(prices[b] / table.size(level), fluid[b] / (level == 0 ? 1 : 2));
    }
    return worth;
  }
  bool all_fit(std::int32_t level, const Members& members) const {
    return std::all_of(members.begin(), members.end(),
                       [&](BundleId bundle) { return table.fits(level, bundle); });
  }

  Drawn drawn;
  Problem problem;
  BundleTable table;
  Nanoseconds time = 0;
  std::vector<BundleId> bundles;
  std::vector<double> prices;
  std::vector<double> fluid;
};

TEST(SetList, EverySetThatIsWorthItIsListedOnce) {
  std::int64_t num_listed = 0;
  for (std::uint64_t seed = 0; seed < num_asked(200); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Listed asked(seed);
    const std::int32_t level = seed % 3 == 0 ? 1 : 0;
    const SetList list = asked.list(level);
    constexpr double least = 0.93;
    std::vector<PricedSet> sets;
    for (const BundleId bundle : asked.bundles) {
      if (list.has(bundle)) list.add_of_dearest(bundle, least, sets);
    }
    auto counts = counted(sets);
    each_set(asked.table.num_bundles(), [&](const Members& members) {
      const double worth = asked.worth_of(level, members);
      if (std::abs(worth - least) < 1e-9) return;
      const bool is_asked = asked.all_fit(level, members) && worth > least &&
                            asked.time_of(level, members) <= asked.time;
      EXPECT_EQ(counts[members], is_asked ? 1 : 0);
      num_listed += is_asked ? 1 : 0;
    });
    for (const PricedSet& set : sets) {
      EXPECT_EQ(set.is_wide(), level == 1);
      const Members members(set.members().begin(), set.members().end());
      EXPECT_NEAR(static_cast<double>(set.worth), asked.worth_of(level, members), 1e-5);
      double fluid = 0;
      for (const BundleId bundle : members) fluid += asked.fluid[static_cast<std::size_t>(bundle)];
      EXPECT_NEAR(static_cast<double>(set.fluid), fluid, 1e-5);
      const PricedSet same = list.set_of(members);
      EXPECT_EQ(same.bundles, set.bundles);
      EXPECT_EQ(same.worth, set.worth);
    }
  }
  if (!is_sampled) {
    EXPECT_GT(num_listed, 500);
  }
}

TEST(SetList, SetsWithABundleAreThoseThatAreWorthLess) {
  std::int64_t num_listed = 0;
  for (std::uint64_t seed = 0; seed < num_asked(200); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Listed asked(seed);
    const SetList list = asked.list(0);
    constexpr double least = 0.85;
    constexpr double most = 0.95;
    const BundleId bundle = 0;
    if (!list.has(bundle)) continue;
    std::vector<PricedSet> sets;
    list.add_with(bundle, least, most, sets);
    auto counts = counted(sets);
    each_set(asked.table.num_bundles(), [&](const Members& members) {
      const double worth = asked.worth_of(0, members);
      if (std::abs(worth - least) < 1e-9 || std::abs(worth - most) < 1e-9) return;
      const bool is_asked = members[0] == bundle && asked.all_fit(0, members) && worth > least &&
                            worth < most && asked.time_of(0, members) <= asked.time;
      EXPECT_EQ(counts[members], is_asked ? 1 : 0);
      num_listed += is_asked ? 1 : 0;
    });
  }
  if (!is_sampled) {
    EXPECT_GT(num_listed, 100);
  }
}

}  // namespace
}  // namespace isochron
