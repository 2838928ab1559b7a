// What the bound and the search of pipelines know of many sequences without a look at each.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "isochron/core/random.h"
#include "isochron/plan/default_effort.h"
#include "isochron/plan/pipelines/bundle_choices.h"
#include "isochron/plan/pipelines/pipeline_bound.h"
#include "isochron/plan/pipelines/sample.h"
#include "isochron/plan/pipelines/scout.h"
#include "isochron/plan/pipelines/slot_heights.h"
#include "isochron/plan/plan.h"
#include "tests/plan/singles.h"
#include "tests/plan/tiny_question.h"
#include "tests/support/num_instances.h"

namespace isochron {
namespace {

std::vector<Tokens> lognormal_lengths(Random& random, std::size_t count, double spread) {
  std::vector<Tokens> lengths;
  for (std::size_t i = 0; i < count; ++i) {
    double normal = -6;
    for (int k = 0; k < 12; ++k) normal += random.unit();
    lengths.push_back(std::clamp<Tokens>(std::llround(1000 * std::exp(spread * normal)), 1, 60000));
  }
  return lengths;
}

Problem pipeline_problem(const std::vector<Tokens>& lengths, std::int32_t ranks,
                         const PlanOptions& options = {.context = "dynamic"}) {
  const Topology topology{.ranks = ranks, .capacity = 16384, .pipeline = {.stages = 4}};
  return {singles(lengths), topology, cost_7b_h100(), resolved(options, topology)};
}

// The least that all choices weigh, by a weight that does not fall with the time.
double weight(double time, double longest, double power) {
  return 1 + std::pow(time / longest, power);
}
double weighed(const BundleChoices& bundles, double power) {
  double sum = 0;
  for (const auto& choices : bundles.classes) {
    double least = std::numeric_limits<double>::infinity();
    for (const Choice& choice : choices) {
      double of_parts = 0;
      for (const Choice::Part& part : choice.all()) {
        of_parts += part.area * weight(part.time, bundles.longest, power);
      }
      least = std::min(least, of_parts);
    }
    sum += least;
  }
  return sum;
}

// The same by every item of every bundle.
double weighed_by_items(const Problem& problem, double longest, double power) {
  double sum = 0;
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    double least = std::numeric_limits<double>::infinity();
    for (const std::int32_t size : problem.sizes()) {
      if (!problem.fits(size, bundle)) continue;
      double of_items = 0;
      for (const ItemId item : problem.items_of(bundle)) {
        const auto cost = static_cast<double>(problem.least_item_cost(size, item));
        const auto fixed = static_cast<double>(problem.least_fixed(size));
        of_items += cost * size * weight(cost + fixed, longest, power);
      }
      least = std::min(least, of_items);
    }
    sum += least;
  }
  return sum;
}

// Consecutive lengths, up to `most` of them, share their ranks.
Work bundles_of(const std::vector<Tokens>& lengths, std::int64_t most, Random& random) {
  Work work = singles(lengths);
  work.bundles = {};
  for (ItemId item = 0; item < static_cast<ItemId>(lengths.size());) {
    work.bundles.push_back({});
    const auto end = std::min<std::int64_t>(std::ssize(lengths), item + random.between(1, most));
    while (item < end) work.bundles.extend(item++);
  }
  return work;
}

TEST(BundleChoices, WeighNoMoreThanTheItemsOfEachBundle) {
  for (const std::int64_t most : {1, 3, 16}) {
    double sum = 0;
    int num_asked = 0;
    for (std::uint64_t seed = 0; seed < num_instances(40); ++seed) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", up to " << most << " in a bundle");
      Random random(seed);
      const auto lengths =
          lognormal_lengths(random, static_cast<std::size_t>(random.between(1, 300)), 2);
      const Topology topology{.ranks = 16, .capacity = 16384, .pipeline = {.stages = 4}};
      const Problem problem(bundles_of(lengths, most, random), topology, cost_7b_h100(),
                            resolved({.context = "dynamic"}, topology));
      const BundleChoices choices = bundle_choices(problem, problem.sizes());
      const double area = weighed_by_items(problem, choices.longest, 0) / 2;
      EXPECT_NEAR(choices.area, area, area * 1e-9);
      for (const double power : {0.0, 0.5, 1.0, 3.0, 20.0}) {
        const double exact = weighed_by_items(problem, choices.longest, power);
        const double of_classes = weighed(choices, power);
        EXPECT_LE(of_classes, exact * (1 + 1e-9));
        sum += of_classes / exact;
        ++num_asked;
      }
    }
    EXPECT_GT(sum / num_asked, 0.995);
  }
}

TEST(BundleChoices, WeighNoMoreThanTheItemsOnVeryManySizes) {
  for (std::uint64_t seed = 0; seed < num_instances(10); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const auto lengths =
        lognormal_lengths(random, static_cast<std::size_t>(random.between(1, 300)), 2);
    const Problem problem = pipeline_problem(lengths, 100, {.context = "dynamic:any"});
    const BundleChoices choices = bundle_choices(problem, problem.sizes());
    for (const double power : {0.0, 1.0, 20.0}) {
      EXPECT_LE(weighed(choices, power),
                weighed_by_items(problem, choices.longest, power) * (1 + 1e-9));
    }
  }
}

TEST(BundleChoices, TellTheLongestItemsOfABundleFromTheRest) {
  Work work = singles({100, 9000, 300, 200, 400, 500, 8000});
  work.bundles = {{0, 1, 2, 3, 4, 5, 6}};
  const Topology topology{.ranks = 1, .capacity = 16384, .pipeline = {.stages = 4}};
  CostModel cost;
  cost.linear_ns = 1000;
  cost.microbatch_ns = 7;
  const Problem problem(work, topology, cost, resolved({}, topology));
  const BundleChoices choices = bundle_choices(problem, problem.sizes());
  ASSERT_EQ(choices.classes.size(), 1u);
  ASSERT_EQ(choices.classes.front().size(), 1u);
  const Choice& choice = choices.classes.front().front();
  EXPECT_EQ(choice.area, 18'500'000);
  EXPECT_EQ(choices.longest, 9'000'007);
  ASSERT_EQ(choice.num_parts, 5u);
  const double areas[] = {9e6, 8e6, 5e5, 4e5, 6e5};
  const double times[] = {9'000'007, 8'000'007, 500'007, 400'007, 7};
  for (std::size_t k = 0; k < choice.num_parts; ++k) {
    EXPECT_EQ(choice.parts[k].area, areas[k]);
    EXPECT_EQ(choice.parts[k].time, times[k]);
  }
}

TEST(BundleChoices, BeginWithTheLongestByItself) {
  const Problem problem = pipeline_problem({100, 9000, 300, 9000, 9000, 200}, 8);
  const BundleChoices choices = bundle_choices(problem, problem.sizes());
  const Problem alone = pipeline_problem({9000}, 8);
  const BundleChoices expected = bundle_choices(alone, alone.sizes());
  EXPECT_EQ(choices.longest, expected.longest);
  ASSERT_FALSE(choices.classes.empty());
  ASSERT_EQ(choices.classes.front().size(), expected.classes.front().size());
  for (std::size_t i = 0; i < expected.classes.front().size(); ++i) {
    EXPECT_EQ(choices.classes.front()[i].area, expected.classes.front()[i].area);
  }
}

TEST(Sample, HasItsPartOfEverything) {
  Random random(3);
  const std::vector<Tokens> lengths = lognormal_lengths(random, 1024, 0.5);
  const Problem problem = pipeline_problem(lengths, 64);
  const std::unique_ptr<Problem> sample = sample_of(problem);
  ASSERT_NE(sample, nullptr);
  EXPECT_EQ(sample->num_ranks(), 16);
  EXPECT_EQ(sample->num_items(), 256);
  const Nanoseconds bound = pipeline_bound(problem, rank_room_of(problem));
  const Nanoseconds of_sample = pipeline_bound(*sample, rank_room_of(*sample));
  EXPECT_NEAR(static_cast<double>(of_sample) / static_cast<double>(bound), 1, 0.02);
}

TEST(Sample, IsNotTakenOfWhatHasNoAlikePart) {
  const std::vector<Tokens> lengths(400, 500);
  EXPECT_EQ(sample_of(pipeline_problem(lengths, 16)), nullptr);  // small enough
  EXPECT_EQ(sample_of(pipeline_problem(lengths, 61)), nullptr);  // does not divide
  EXPECT_EQ(sample_of(pipeline_problem(lengths, 64, {.context = "static:64"})), nullptr);
  EXPECT_NE(sample_of(pipeline_problem(lengths, 64, {.context = "static:8"})), nullptr);
  const PlanOptions wide{.context = "dynamic", .min_context_size = 32};
  EXPECT_EQ(sample_of(pipeline_problem(lengths, 64, wide)), nullptr);
}

// The second half of every block of eight is slow, but in one block.
TEST(Sample, HasWholeBlocksOfSlowRanks) {
  Topology topology{.ranks = 256, .capacity = 16384, .pipeline = {.stages = 4}};
  for (int rank = 0; rank < 256; ++rank) {
    topology.rank_speed.push_back(rank % 8 < 4 || rank < 8 ? 1 : 0.5);
  }
  const auto sample = [&](Sync sync) {
    const PlanOptions options = resolved({.context = "dynamic", .sync = sync}, topology);
    const std::vector<Tokens> lengths(1024, 500);
    return sample_of(Problem(singles(lengths), topology, cost_7b_h100(), options));
  };
  const auto part = sample(Sync::step);
  ASSERT_NE(part, nullptr);
  ASSERT_EQ(part->num_ranks(), 16);
  const std::vector<double>& speeds = part->topology().rank_speed;
  ASSERT_EQ(speeds.size(), 16u);
  for (std::size_t rank = 0; rank < 16; ++rank) EXPECT_EQ(speeds[rank], rank % 8 < 4 ? 1 : 0.5);
  EXPECT_EQ(sample(Sync::microbatch), nullptr);
}

TEST(Sample, KeepsTogetherWhatIsKeptTogether) {
  Random random(4);
  Work kept = singles(lognormal_lengths(random, 1024, 0.5));
  kept.bundles = {};
  for (ItemId item = 0; item < 1024; item += 4) {
    kept.bundles.push_back({item, item + 1, item + 2, item + 3});
  }
  const Topology topology{.ranks = 64, .capacity = 16384, .pipeline = {.stages = 4}};
  const PlanOptions options = resolved({.context = "dynamic"}, topology);
  const Problem problem(std::move(kept), topology, cost_7b_h100(), options);
  const std::unique_ptr<Problem> sample = sample_of(problem);
  ASSERT_NE(sample, nullptr);
  ASSERT_EQ(sample->num_bundles(), 64);
  EXPECT_EQ(sample->num_items(), 256);
  const auto lengths_of = [](const Problem& asked, BundleId bundle) {
    std::vector<Tokens> lengths;
    for (const ItemId item : asked.items_of(bundle)) lengths.push_back(asked.tokens(1, item));
    return lengths;
  };
  std::set<std::vector<Tokens>> all;
  for (BundleId bundle = 0; bundle < 256; ++bundle) all.insert(lengths_of(problem, bundle));
  for (BundleId bundle = 0; bundle < 64; ++bundle) {
    EXPECT_TRUE(all.contains(lengths_of(*sample, bundle)));
  }
}

// One unit of effort more, and everything is looked at: another plan comes of it, while one less
// changes nothing.
TEST(Haste, EndsAboveTwiceTheDefaultEffort) {
  int num_changed_above = 0;
  int num_changed_below = 0;
  constexpr int num_questions = 8;
  for (std::uint64_t seed = 0; seed < num_questions; ++seed) {
    Random random(seed);
    Batch batch;
    batch.lengths = lognormal_lengths(random, 512, 0.5 + 0.1 * static_cast<double>(seed));
    const Topology topology{.ranks = 32, .capacity = 16384, .pipeline = {.stages = 4}};
    const auto time_for = [&](std::int64_t effort) {
      const PlanOptions options{.context = "dynamic", .effort = effort};
      return plan_step(batch, topology, cost_7b_h100(), options).predicted_step_ns;
    };
    const std::int64_t most = 2 * default_effort(pipeline_problem(batch.lengths, 32));
    num_changed_above += time_for(most + 1) != time_for(most) ? 1 : 0;
    num_changed_below += time_for(most - 1) != time_for(most) ? 1 : 0;
  }
  EXPECT_GE(num_changed_above, num_questions / 2);
  EXPECT_LE(num_changed_below, num_questions / 4);
}

// A scout in haste, of a question of its own.
struct HastyScout {
  HastyScout(const std::vector<Tokens>& lengths, Pass pass)
      : problem(pipeline_problem(lengths, 32, {.context = "dynamic", .pass = pass})),
        room(rank_room_of(problem)),
        heights(problem.topology().pipeline, problem.options().pass, problem.model().forward_share),
        scout(problem, room, heights, problem.capacity(), pipeline_bound(problem, room), 100'000,
              true) {}

  Problem problem;
  RankRoom room;
  SlotHeights heights;
  Scout scout;
};

TEST(Scout, ExpectsAForwardPassToWaitForLongItems) {
  std::vector<Tokens> lengths(512, 1000);
  for (std::size_t i = 0; i < lengths.size(); i += 16) lengths[i] = 12000;
  const HastyScout haste(lengths, Pass::forward);
  // One on every rank: their stages wait three quarters of what it is longer than others. On wider
  // groups they are shorter.
  const Nanoseconds on_one = haste.scout.likely_time(1) - haste.scout.least_time(1);
  const Nanoseconds on_four = haste.scout.likely_time(4) - haste.scout.least_time(4);
  EXPECT_GT(on_one, haste.scout.least_time(1) / 4);
  EXPECT_LT(on_four, on_one / 2);
  EXPECT_LT(haste.scout.likely_time(4), haste.scout.likely_time(1));
  const HastyScout training(lengths, Pass::train);
  EXPECT_EQ(training.scout.likely_time(1), training.scout.least_time(1));
}

TEST(Scout, FindsTheFastestGridsOfASize) {
  Random random(6);
  const std::vector<Tokens> lengths = lognormal_lengths(random, 512, 0.8);
  for (const Pass pass : {Pass::train, Pass::forward}) {
    HastyScout haste(lengths, pass);
    for (const std::int32_t size : {4, 8}) {
      const auto all = haste.scout.find_grids(size, max_total_cost, 100);
      const auto two = haste.scout.find_grids(size, max_total_cost, 2);
      ASSERT_GE(all.size(), 2U);
      EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
      EXPECT_EQ(two, std::vector(all.begin(), all.begin() + 2));
      EXPECT_GE(all.front().time, haste.scout.least_time(size));
      EXPECT_TRUE(haste.scout.find_grids(size, haste.scout.least_time(size), 2).empty());
    }
  }
}

// What is decided on a sample serves the whole: no static size that is asked for itself is much
// faster, and the step is near its bound.
TEST(Sample, ServesTheWhole) {
  for (const Pass pass : {Pass::train, Pass::forward}) {
    double sum = 0;
    constexpr int num_questions = 6;
    for (std::uint64_t seed = 0; seed < num_questions; ++seed) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", pass " << static_cast<int>(pass));
      Random random(seed);
      Batch batch;
      batch.lengths = lognormal_lengths(random, 1024, 0.5 + 0.1 * static_cast<double>(seed));
      const Topology topology{.ranks = 64, .capacity = 16384, .pipeline = {.stages = 4}};
      const auto plan_for = [&](const std::string& context) {
        return plan_step(batch, topology, cost_7b_h100(), {.context = context, .pass = pass});
      };
      const StepPlan plan = plan_for("dynamic");
      for (const std::int32_t size : {1, 2, 4, 8}) {
        const StepPlan fixed = plan_for("static:" + std::to_string(size));
        if (fixed.microbatches.empty()) continue;
        EXPECT_LE(static_cast<double>(plan.predicted_step_ns),
                  1.01 * static_cast<double>(fixed.predicted_step_ns))
            << "static:" << size;
      }
      sum += static_cast<double>(plan.predicted_step_ns) / static_cast<double>(plan.lower_bound_ns);
    }
    EXPECT_LT(sum / num_questions, 1.08);
  }
}

}  // namespace
}  // namespace isochron
