// The same on a GPU as on the CPU, which is what everything else is tested against. Skipped where
// there is none.

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include "isochron/engine/execute/engine.h"
#include "tests/engine/support/random_rows.h"
#include "tests/engine/support/tiny_model.h"

namespace isochron {
namespace {

TokenLoss negative_log_prob() {
  return [](const TokenOutputs& outputs) { return -outputs.log_prob_T; };
}

struct Trained {
  std::vector<double> losses;
  std::vector<double> norms;
  std::vector<at::Tensor> weights;  // on the cpu, fp32
};

// Three updates on one rank.
Trained train(const TinyModel& which, const TokenRows& rows, double dropout = 0) {
  World world({}, {.device = which.device});
  Decoder model = make_tiny_model(which);
  ShardedAdamW optimizer(model.parameters(), world.all(), {.epsilon = 1e-2, .bucket_bytes = 4000});
  Tracer tracer;
  Engine engine(world, model, &optimizer, CostModel{}, tracer,
                {.capacity = 400, .head = {.chunk = 50}, .dropout = dropout, .seed = 42});
  const Update update = {rows.view(), negative_log_prob()};
  const StepPlan plan = engine.plan(update.rows.batch, Pass::train);
  Trained trained;
  for (int step = 0; step < 3; ++step) {
    const StepResult result = engine.train(step, plan, update, 1e-3);
    trained.losses.push_back(result.loss);
    trained.norms.push_back(result.grad_norm);
  }
  for (const Parameter& parameter : model.parameters()) {
    trained.weights.push_back(parameter.value.detach().to(at::kCPU, at::kFloat));
  }
  return trained;
}

class Cuda : public testing::TestWithParam<Recompute> {
 protected:
  void SetUp() override {
    if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no GPU";
  }

  void expect_close(at::ScalarType dtype, double tolerance, double dropout = 0) {
    const TokenRows rows = random_rows({300, 1, 2, 65, 128, 129, 64, 17}, tiny_vocabulary, 3);
    const TinyModel cpu = {.recompute = GetParam(), .head_dim = 32};
    TinyModel gpu = cpu;
    gpu.device = at::Device(at::kCUDA, 0);
    gpu.dtype = dtype;
    const Trained expected = train(cpu, rows, dropout);
    const Trained actual = train(gpu, rows, dropout);
    for (std::size_t step = 0; step < expected.losses.size(); ++step) {
      EXPECT_NEAR(actual.losses[step], expected.losses[step], tolerance * expected.losses[step]);
      EXPECT_NEAR(actual.norms[step], expected.norms[step], 5 * tolerance * expected.norms[step]);
    }
    for (std::size_t i = 0; i < expected.weights.size(); ++i) {
      const at::Tensor difference = actual.weights[i] - expected.weights[i];
      EXPECT_LE(difference.abs().max().item<double>(), tolerance);
    }
  }
};

TEST_P(Cuda, TrainsAsTheCpuDoesInFp32) { expect_close(at::kFloat, 1e-4); }
TEST_P(Cuda, TrainsAsTheCpuDoesInBf16ToItsRounding) { expect_close(at::kBFloat16, 2e-2); }

TEST_P(Cuda, TrainsAsTheCpuDoesWithDropout) { expect_close(at::kFloat, 1e-4, 0.1); }

TEST_P(Cuda, GivesEqualBitsForEqualStepsOnDeterministicKernels) {
  at::globalContext().setDeterministicAlgorithms(true, false);
  const TokenRows rows = random_rows({300, 1, 65, 128}, tiny_vocabulary, 3);
  const TinyModel gpu = {.dtype = at::kBFloat16,
                         .recompute = GetParam(),
                         .head_dim = 32,
                         .device = at::Device(at::kCUDA, 0)};
  const Trained first = train(gpu, rows);
  const Trained second = train(gpu, rows);
  at::globalContext().setDeterministicAlgorithms(false, false);
  EXPECT_EQ(first.losses, second.losses);
  for (std::size_t i = 0; i < first.weights.size(); ++i) {
    EXPECT_TRUE(at::equal(first.weights[i], second.weights[i]));
  }
}

TEST(CudaDropout, MasksAreThoseOfTheCpuBitByBit) {
  if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no GPU";
  const at::Device gpu(at::kCUDA, 0);
  const at::Tensor positions_T = at::arange(300);
  const at::Tensor rows_T = positions_T.div(7, "floor") + (std::int64_t{1} << 40);
  for (const double probability : {0.1, 0.5, 0.999}) {
    const Dropout dropout = {.probability = probability, .seed = -5, .step = 1'000'000};
    const TokenMasks on_cpu(dropout, rows_T, positions_T);
    const TokenMasks on_gpu(dropout, rows_T.to(gpu), positions_T.to(gpu));
    for (const std::int64_t width : {1, 2, 33, 4096}) {
      for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
        SCOPED_TRACE(testing::Message() << probability << ", " << width << ", " << dtype);
        const at::Tensor x_TD = at::randn({300, width}).to(dtype);
        const at::Tensor actual = on_gpu.of_layer(3).down.apply(x_TD.to(gpu));
        EXPECT_TRUE(at::equal(actual.cpu(), on_cpu.of_layer(3).down.apply(x_TD)));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Recomputing, Cuda,
                         testing::Values(Recompute::none, Recompute::selective, Recompute::full),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace isochron
