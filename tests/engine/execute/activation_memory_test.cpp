// What a plan says of memory against what an allocator counts, over random plans that no planner
// made, and models of all kinds.

#include "isochron/engine/model/activation_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "isochron/core/random.h"
#include "tests/engine/support/measured_training.h"
#include "tests/support/process_ranks.h"
#include "tests/support/random_plan.h"

namespace isochron {
namespace {

struct Setting {
  MeasuredModel model;
  Tokens chunk = 0;  // of the head
  bool exchanges_heads = false;

  [[nodiscard]] std::string mode() const {
    return (model.dtype == at::kBFloat16 ? "bf16 " : "fp32 ") +
           std::string(name_of(model.recompute));
  }
};

Setting random_setting(std::uint64_t seed) {
  Random random(seed);
  const auto pick = [&](std::initializer_list<std::int64_t> values) {
    return *(values.begin() + random.below(values.size()));
  };
  Setting setting;
  ModelShape& shape = setting.model.shape;
  shape.name = "random";
  shape.hidden = pick({64, 80});
  shape.layers = random.between(2, 4);
  shape.head_dim = 8;
  shape.kv_heads = pick({2, 3, 4});
  shape.heads = shape.kv_heads * pick({1, 2});
  shape.ffn = shape.hidden * pick({6, 7, 8}) / 2;
  shape.tied_head = random.below(2) == 0;
  shape.qk_norm = random.below(2) == 0;
  // The gradient of a tied weight waits for that of the embedding: a fixed size, kept small here.
  shape.vocabulary = shape.tied_head ? 128 : pick({64, 512, 2048});
  setting.model.dtype = seed % 2 == 0 ? at::kFloat : at::kBFloat16;
  setting.model.recompute = static_cast<Recompute>(seed / 2 % 3);
  setting.exchanges_heads = random.below(2) == 0;
  setting.chunk = pick({32, 256, 2048});
  return setting;
}

StepPlan random_plan_for(const Setting& setting, std::int32_t ranks, std::uint64_t seed) {
  const MeasuredModel& model = setting.model;
  CostModel cost;
  cost.linear_ns = 1;
  cost.activation_bytes_per_token =
      static_cast<double>(activation_bytes(model.shape, {.recompute = model.recompute,
                                                         .element_bytes = model.element_bytes(),
                                                         .in_groups = ranks > 1})
                              .peak());
  const ContextLink link = {.max_ranks = 64, .gb_per_s = 1};
  cost.context = {{.kind = ContextKind::all_gather_kv, .bytes_per_token = 2, .links = {link}}};
  if (setting.exchanges_heads) {
    cost.context.push_back({.kind = ContextKind::all_to_all,
                            .bytes_per_token = 1,
                            .divides = model.shape.kv_heads,
                            .links = {link}});
  }
  return random_plan(seed, {.ranks = ranks,
                            .context = "dynamic:any",
                            .pass = Pass::train,
                            .keep_groups = KeepGroups::none,
                            .short_ = Short::empty,
                            .tensor_parallel = 1,
                            .stages = 1,
                            .virtual_ = 1,
                            .capacity = 3600,
                            .longest = 640,
                            .cost = cost,
                            .num_sequences = 24 * ranks});
}

// Fewer tokens show what does not grow with them.
constexpr Tokens enough_tokens = 1000;

// "seed mode ratio" of each plan whose micro-batches on this rank are large enough.
std::string compared_plans(World& world, std::uint64_t first_seed, std::uint64_t num_plans) {
  std::ostringstream ratios;
  for (std::uint64_t seed = first_seed; seed < first_seed + num_plans; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Setting setting = random_setting(seed);
    const StepPlan plan = random_plan_for(setting, world.place().size, seed);
    // Keys and values of one head at a time: what is gathered for more does not grow with the
    // tokens.
    MeasuredTraining training(world, setting.model,
                              {.head = {.chunk = setting.chunk}, .context = {.gather_bytes = 1}});
    const StepMemory measured = training.step(plan);
    const auto predicted = plan.peak_activation_bytes[static_cast<std::size_t>(world.place().rank)];
    const Tokens tokens =
        predicted / static_cast<std::int64_t>(plan.cost.activation_bytes_per_token);
    if (tokens < enough_tokens) continue;
    EXPECT_GE(predicted + head_bytes(setting.model.shape, std::min(tokens, setting.chunk),
                                     setting.model.element_bytes()),
              measured.all)
        << setting.mode() << ", " << tokens << " tokens";
    const double ratio = static_cast<double>(predicted) / static_cast<double>(measured.activations);
    EXPECT_GE(ratio, 1.0) << setting.mode() << ", " << tokens << " tokens";
    EXPECT_LE(ratio, 1.3) << setting.mode() << ", " << tokens << " tokens";
    ratios << seed << ' ' << setting.mode() << ' ' << ratio << '\n';
  }
  return ratios.str();
}

// Plans on as many ranks, of which so many, in so many of the six modes, are large enough to tell.
struct Compared {
  std::size_t plans = 0;
  std::size_t modes = 0;
};

void expect_predicted_peaks(std::int32_t ranks, std::uint64_t first_seed, std::uint64_t num_plans,
                            Compared least) {
  const auto texts =
      run_ranks(ranks, [&](World& world) { return compared_plans(world, first_seed, num_plans); },
                {.limit = std::chrono::seconds{500}});
  std::map<std::string, std::vector<double>> ratios_of;
  std::set<std::string> compared;
  for (const std::string& text : texts) {
    std::istringstream lines(text);
    for (std::string plan, dtype, recompute, ratio; lines >> plan >> dtype >> recompute >> ratio;) {
      compared.insert(plan);
      ratios_of[dtype + " " + recompute].push_back(std::stod(ratio));
    }
  }
  EXPECT_GE(ratios_of.size(), least.modes);
  EXPECT_GE(compared.size(), least.plans);
  for (auto& [mode, ratios] : ratios_of) {
    std::ranges::sort(ratios);
    std::cout << mode << ": predicted over measured " << ratios.front() << " to " << ratios.back()
              << ", median " << ratios[ratios.size() / 2] << " of " << ratios.size() << '\n';
  }
}

TEST(ActivationMemory, APlanPredictsThePeakOfOneRank) {
  expect_predicted_peaks(1, 0, 36, {.plans = 25, .modes = 6});
}

TEST(ActivationMemory, APlanPredictsThePeakOfTwoRanks) {
  expect_predicted_peaks(2, 36, 12, {.plans = 6, .modes = 4});
}

TEST(ActivationMemory, APlanPredictsThePeakOfThreeRanks) {
  expect_predicted_peaks(3, 48, 6, {.plans = 3, .modes = 3});
}

TEST(ActivationMemory, APlanPredictsThePeakOfFourRanks) {
  expect_predicted_peaks(4, 60, 6, {.plans = 3, .modes = 3});
}

}  // namespace
}  // namespace isochron
