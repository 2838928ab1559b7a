// What a plan says of memory against what an allocator counts, over random plans that no planner
// made, and models of all kinds.

#include "isochron/engine/model/activation_memory.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "isochron/core/random.h"
#include "isochron/engine/execute/engine.h"
#include "tests/engine/support/cpu_memory.h"
#include "tests/engine/support/random_decoder.h"
#include "tests/engine/support/random_rows.h"
#include "tests/support/process_ranks.h"
#include "tests/support/random_plan.h"

namespace isochron {
namespace {

struct Setting {
  ModelShape shape;
  at::ScalarType dtype = at::kFloat;
  Recompute recompute = Recompute::none;
  HeadOptions head = {};

  [[nodiscard]] std::int64_t element_bytes() const { return dtype == at::kBFloat16 ? 2 : 4; }
  [[nodiscard]] std::string mode() const {
    return (dtype == at::kBFloat16 ? "bf16 " : "fp32 ") + std::string(name_of(recompute));
  }
};

Setting random_setting(std::uint64_t seed) {
  Random random(seed);
  const auto pick = [&](std::initializer_list<std::int64_t> values) {
    return *(values.begin() + random.below(values.size()));
  };
  Setting setting;
  ModelShape& shape = setting.shape;
  shape.name = "random";
  shape.hidden = pick({64, 80});
  shape.layers = random.between(1, 4);
  shape.head_dim = pick({8, 16});
  shape.kv_heads = pick({2, 3, 4});
  shape.heads = shape.kv_heads * pick({1, 2});
  shape.ffn = shape.hidden * pick({5, 6, 8}) / 2;
  shape.tied_head = random.below(2) == 0;
  shape.qk_norm = random.below(2) == 0;
  // The gradient of a tied weight waits for that of the embedding: a fixed size, kept small here.
  shape.vocabulary = shape.tied_head ? 128 : pick({64, 512, 2048});
  setting.dtype = seed % 2 == 0 ? at::kFloat : at::kBFloat16;
  setting.recompute = static_cast<Recompute>(seed / 2 % 3);
  setting.head.chunk = pick({32, 256, 2048});
  return setting;
}

// Calls something when the backward gets to a node.
class OnBackward final : public torch::autograd::FunctionPreHook {
 public:
  explicit OnBackward(std::function<void()> call) : call_(std::move(call)) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& grads) override {
    call_();
    return grads;
  }

 private:
  std::function<void()> call_;
};

struct Measured {
  std::int64_t activations = 0;  // at most, in the backward of the layers: there are no logits
  std::int64_t all = 0;          // at most, from the first forward to the optimizer
};

// The memory of one step beside what was there before it.
Measured measured_step(World& world, const Setting& setting, const StepPlan& plan) {
  ModelConfig config;
  config.model_type = "qwen3";
  config.shape = setting.shape;
  Decoder model(config, {.dtype = setting.dtype, .recompute = setting.recompute});
  randomise(model, 1);
  ShardedAdamW optimizer(model.parameters(), world.all(), AdamWOptions{});
  Tracer tracer;
  Engine engine(world, model, &optimizer, plan.cost, tracer, {.head = setting.head});
  const TokenRows rows = random_rows(plan.batch.lengths, setting.shape.vocabulary, 1);

  Measured measured;
  CpuMemory memory;
  const auto note = [&](std::int64_t& peak) { peak = std::max(peak, memory.peak()); };
  const TokenLoss loss = [&](const TokenOutputs& outputs) {
    auto node = outputs.log_prob_T.grad_fn()->next_edge(0).function;  // the norm before the head
    node->add_pre_hook(std::make_unique<OnBackward>([&] {
      note(measured.all);
      memory.restart_peak();
    }));
    while (node->name() != "EmbeddingBackward0") node = node->next_edge(0).function;
    node->add_pre_hook(std::make_unique<OnBackward>([&] { note(measured.activations); }));
    return -outputs.log_prob_T;
  };
  (void)engine.train(1, plan, {rows.view(), loss}, 1e-3);
  note(measured.all);
  measured.all = std::max(measured.all, measured.activations);
  return measured;
}

StepPlan random_plan_for(const Setting& setting, std::int32_t ranks, std::uint64_t seed) {
  CostModel cost;
  cost.linear_ns = 1;
  cost.activation_bytes_per_token = static_cast<double>(
      activation_bytes(setting.shape, setting.recompute, setting.element_bytes()).peak());
  return random_plan(seed, {.ranks = ranks,
                            .context = "static:1",
                            .pass = Pass::train,
                            .keep_groups = KeepGroups::none,
                            .oversize = Oversize::error,
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
    const Measured measured = measured_step(world, setting, plan);
    const auto predicted = plan.peak_activation_bytes[static_cast<std::size_t>(world.place().rank)];
    const Tokens tokens =
        predicted / static_cast<std::int64_t>(plan.cost.activation_bytes_per_token);
    if (tokens < enough_tokens) continue;
    EXPECT_GE(predicted + head_bytes(setting.shape, std::min(tokens, setting.head.chunk),
                                     setting.element_bytes()),
              measured.all)
        << setting.mode() << ", " << tokens << " tokens";
    const double ratio = static_cast<double>(predicted) / static_cast<double>(measured.activations);
    EXPECT_GE(ratio, 1.0) << setting.mode() << ", " << tokens << " tokens";
    EXPECT_LE(ratio, 1.3) << setting.mode() << ", " << tokens << " tokens";
    ratios << seed << ' ' << setting.mode() << ' ' << ratio << '\n';
  }
  return ratios.str();
}

TEST(ActivationMemory, APlanPredictsItsPeak) {
  std::map<std::string, std::vector<double>> ratios_of;
  std::set<std::string> compared;
  std::uint64_t seed = 0;
  for (const std::int32_t ranks : {1, 2, 3, 4}) {
    const std::uint64_t num_plans = ranks == 1 ? 24 : 12;
    const auto texts =
        run_ranks(ranks, [&](World& world) { return compared_plans(world, seed, num_plans); });
    for (const std::string& text : texts) {
      std::istringstream lines(text);
      for (std::string plan, dtype, recompute, ratio;
           lines >> plan >> dtype >> recompute >> ratio;) {
        compared.insert(plan);
        ratios_of[dtype + " " + recompute].push_back(std::stod(ratio));
      }
    }
    seed += num_plans;
  }
  EXPECT_EQ(ratios_of.size(), 6u);
  EXPECT_GE(compared.size(), 50u);
  for (auto& [mode, ratios] : ratios_of) {
    std::ranges::sort(ratios);
    std::cout << mode << ": predicted over measured " << ratios.front() << " to " << ratios.back()
              << ", median " << ratios[ratios.size() / 2] << " of " << ratios.size() << '\n';
  }
}

}  // namespace
}  // namespace isochron
