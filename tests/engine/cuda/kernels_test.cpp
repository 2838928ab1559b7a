// The kernels against what the CPU computes in fp64 from the same numbers. Skipped where there is
// no GPU, or the engine was built without nvcc.

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "isochron/engine/loss/cuda_softmax.h"
#include "isochron/engine/model/cpu_kernels.h"
#include "isochron/engine/model/cuda_kernels.h"
#include "isochron/engine/optim/cuda_update.h"
#include "tests/engine/support/closeness.h"

namespace isochron {
namespace {

constexpr double epsilon = 1e-3;

class CudaKernels : public testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override {
    if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no GPU";
    const at::Tensor row = on_gpu(at::zeros({1, 8}));
    if (!cuda::has_norm(row, row[0])) GTEST_SKIP() << "built without nvcc";
  }

  [[nodiscard]] static at::Tensor on_gpu(const at::Tensor& values,
                                         at::ScalarType dtype = GetParam()) {
    return values.to(at::Device(at::kCUDA, 0), dtype);
  }

  // Numbers that are exact in the dtype, in fp64 on the CPU.
  [[nodiscard]] static at::Tensor random_tensor(at::IntArrayRef sizes, std::uint64_t seed) {
    return at::randn(sizes, at::detail::createCPUGenerator(seed), at::kDouble)
        .to(GetParam())
        .to(at::kDouble);
  }

  [[nodiscard]] static RopeTable random_table(std::int64_t tokens, std::int64_t half) {
    const at::Tensor angles = at::randn({tokens, half}, at::detail::createCPUGenerator(9));
    return {.cos_TR = (angles.cos() * 1.3).to(at::kDouble),
            .sin_TR = (angles.sin() * 1.3).to(at::kDouble)};
  }

  [[nodiscard]] static RopeTable on_gpu(const RopeTable& table) {
    return {.cos_TR = on_gpu(table.cos_TR, at::kFloat), .sin_TR = on_gpu(table.sin_TR, at::kFloat)};
  }

  // One rounding to the dtype, or sums in fp32.
  static void expect_close(const at::Tensor& actual, const at::Tensor& expected) {
    const double tolerance = GetParam() == at::kFloat  ? 5e-6
                             : GetParam() == at::kHalf ? 1e-3
                                                       : 5e-3;
    EXPECT_LT(relative_difference(actual.cpu(), expected), tolerance);
  }
};

// Widths of one and several warps; rows below and beyond the partial sums of a gradient.
constexpr std::array<std::pair<std::int64_t, std::int64_t>, 6> shapes = {
    {{1, 8}, {3, 264}, {70, 1024}, {3000, 40}, {5, 8192}, {0, 16}}};

TEST_P(CudaKernels, NormAndItsGradientEqualTheCpu) {
  for (const auto& [rows, width] : shapes) {
    SCOPED_TRACE(testing::Message() << rows << " x " << width);
    const at::Tensor x = random_tensor({rows, width}, 1);
    const at::Tensor weight = random_tensor({width}, 2);
    const at::Tensor grad = random_tensor({rows, width}, 3);
    const at::Tensor residual = random_tensor({rows, width}, 4);
    const RmsNormOutput expected = cpu::rms_norm(x, weight, epsilon);
    const RmsNormOutput output = cuda::rms_norm(on_gpu(x), on_gpu(weight), epsilon);
    expect_close(output.y_RD, expected.y_RD);
    expect_close(output.rstd_R, expected.rstd_R);
    EXPECT_TRUE(
        at::equal(cuda::rms_norm_again(on_gpu(x), output.rstd_R, on_gpu(weight)), output.y_RD));
    for (const bool has_residual : {false, true}) {
      const RmsNormGradient want = cpu::rms_norm_backward(grad, x, expected.rstd_R, weight,
                                                          has_residual ? residual : at::Tensor());
      const RmsNormGradient have =
          cuda::rms_norm_backward(on_gpu(grad), on_gpu(x), output.rstd_R, on_gpu(weight),
                                  has_residual ? on_gpu(residual) : at::Tensor());
      expect_close(have.x_RD, want.x_RD);
      expect_close(have.weight_D, want.weight_D);
    }
  }
}

TEST_P(CudaKernels, NormedAndRotatedHeadsAndTheirGradientEqualTheCpu) {
  for (const std::int64_t head_dim : {16, 48, 128, 256, 512}) {
    for (const std::int64_t tokens : {1, 77, 5000}) {
      if (tokens * head_dim > 700'000) continue;
      SCOPED_TRACE(testing::Message() << tokens << " tokens, head dim " << head_dim);
      constexpr std::int64_t query_heads = 3;
      constexpr std::int64_t heads = 5;
      const RopeTable table = random_table(tokens, head_dim / 2);
      const at::Tensor all = random_tensor({tokens, heads + 2, head_dim}, 1);  // values behind
      const at::Tensor grads = random_tensor({tokens, heads + 2, head_dim}, 4);
      const HeadNorm norm = {.q_H = random_tensor({head_dim}, 2),
                             .k_H = random_tensor({head_dim}, 3),
                             .epsilon = epsilon};
      const HeadNorm gpu_norm = {
          .q_H = on_gpu(norm.q_H), .k_H = on_gpu(norm.k_H), .epsilon = epsilon};
      const at::Tensor gpu_all = on_gpu(all);
      const at::Tensor gpu_grads = on_gpu(grads);
      const auto slice = [&](const at::Tensor& of) { return of.narrow(1, 0, heads); };
      expect_close(
          cuda::norm_and_rotate_heads(slice(gpu_all), query_heads, gpu_norm, on_gpu(table)),
          cpu::norm_and_rotate_heads(slice(all), query_heads, norm, table));
      const HeadNormGradient have = cuda::norm_and_rotate_heads_backward_(
          slice(gpu_grads), slice(gpu_all), query_heads, gpu_norm, on_gpu(table));
      const HeadNormGradient want =
          cpu::norm_and_rotate_heads_backward_(slice(grads), slice(all), query_heads, norm, table);
      expect_close(gpu_grads, grads);  // with what lies behind
      expect_close(have.q_H, want.q_H);
      expect_close(have.k_H, want.k_H);
      for (const Turn turn : {Turn::forward, Turn::back}) {
        cpu::rotate_heads_(slice(all), table, turn);
        cuda::rotate_heads_(slice(gpu_all), on_gpu(table), turn);
        expect_close(gpu_all, all);
      }
    }
  }
}

TEST_P(CudaKernels, SwigluAndItsGradientEqualTheCpu) {
  for (const auto& [rows, width] : shapes) {
    SCOPED_TRACE(testing::Message() << rows << " x " << width);
    const at::Tensor gate_up = random_tensor({rows, 2 * width}, 1) * 4;
    const at::Tensor grad = random_tensor({rows, width}, 2);
    expect_close(cuda::swiglu_TF(on_gpu(gate_up)), cpu::swiglu_TF(gate_up));
    expect_close(cuda::swiglu_backward_T2F(on_gpu(grad), on_gpu(gate_up)),
                 cpu::swiglu_backward_T2F(grad, gate_up));
  }
}

TEST_P(CudaKernels, SoftmaxOfRowsAndItsGradientEqualTheCpu) {
  for (const std::int64_t vocabulary : {1, 29, 4096, 151'936}) {
    SCOPED_TRACE(testing::Message() << "vocabulary " << vocabulary);
    constexpr std::int64_t rows = 9;
    const auto random = [](at::IntArrayRef sizes, std::uint64_t seed) {
      return at::randn(sizes, at::detail::createCPUGenerator(seed)).to(at::kDouble);
    };
    const at::Tensor logits = random({rows, vocabulary}, 1) * 5;
    const at::Tensor gpu_logits = on_gpu(logits, at::kFloat);
    const at::Tensor labels =
        at::randint(vocabulary, {rows}, at::detail::createCPUGenerator(2), at::kLong);
    const SoftmaxOutputs want = softmax_rows(logits, labels, true);
    const SoftmaxOutputs have = cuda::softmax_rows(gpu_logits, labels.cuda(), true);
    EXPECT_LT(relative_difference(have.lse_C.cpu(), want.lse_C), 1e-6);
    EXPECT_LT(relative_difference(have.log_prob_C.cpu(), want.log_prob_C), 2e-6);
    EXPECT_LT(relative_difference(have.entropy_C.cpu(), want.entropy_C), 1e-5);
    EXPECT_FALSE(cuda::softmax_rows(gpu_logits, labels.cuda(), false).entropy_C.defined());
    for (const auto& [use_log_prob, use_entropy] :
         {std::pair{true, true}, {true, false}, {false, true}}) {
      const SoftmaxGradients rows_of_cpu = {
          .labels_C = labels,
          .lse_C = want.lse_C,
          .entropy_C = want.entropy_C,
          .grad_log_prob_C = use_log_prob ? random({rows}, 3) : at::Tensor(),
          .grad_entropy_C = use_entropy ? random({rows}, 4) : at::Tensor()};
      const auto floats = [](const at::Tensor& values) {
        return values.defined() ? on_gpu(values, at::kFloat) : values;
      };
      const SoftmaxGradients rows_of_gpu = {.labels_C = labels.cuda(),
                                            .lse_C = have.lse_C,
                                            .entropy_C = have.entropy_C,
                                            .grad_log_prob_C = floats(rows_of_cpu.grad_log_prob_C),
                                            .grad_entropy_C = floats(rows_of_cpu.grad_entropy_C)};
      const at::Tensor actual =
          cuda::softmax_rows_backward(gpu_logits.clone(), rows_of_gpu, GetParam());
      EXPECT_EQ(actual.scalar_type(), GetParam());
      expect_close(actual, softmax_rows_backward(logits.clone(), rows_of_cpu, at::kDouble));
    }
  }
}

TEST_P(CudaKernels, FlatUpdatesEqualTheCpu) {
  for (const std::int64_t count : {8, 4104, 3'000'000}) {
    SCOPED_TRACE(testing::Message() << count << " numbers");
    const at::Tensor gradient = random_tensor({count}, 1);
    const at::Tensor sum = on_gpu(random_tensor({count}, 2), at::kFloat);
    const at::Tensor expected_sum = sum.cpu().to(at::kDouble) + gradient;
    cuda::accumulate_(sum, on_gpu(gradient), Onto::sum);
    EXPECT_LT(relative_difference(sum.cpu(), expected_sum), 1e-6);
    const at::Tensor first = at::full_like(sum, std::numeric_limits<double>::quiet_NaN());
    cuda::accumulate_(first, on_gpu(gradient), Onto::zero);
    EXPECT_TRUE(at::equal(first.cpu(), gradient.to(at::kFloat)));

    const at::Tensor total = on_gpu(at::full({1}, 3.0), at::kDouble);
    cuda::add_squares_(total, sum);
    EXPECT_NEAR(total.item<double>(), 3 + sum.to(at::kDouble).square().sum().item<double>(),
                1e-9 * static_cast<double>(count));

    const auto memory_of = [&](at::Device device) {
      const auto values = [&](std::uint64_t seed) {
        return random_tensor({count}, seed).to(device, at::kFloat);
      };
      AdamWMemory memory = {.master = values(3),
                            .exp_avg = values(4),
                            .exp_avg_sq = values(5).square(),
                            .gradient = values(6),
                            .weights = {}};
      memory.weights = GetParam() == at::kFloat ? memory.master : memory.master.to(GetParam());
      return memory;
    };
    const AdamWMemory want = memory_of(at::kCPU);
    const AdamWMemory have = memory_of(at::Device(at::kCUDA, 0));
    const AdamWStep step = {.num_updates = 7,
                            .lr = 1e-2,
                            .beta1 = 0.9,
                            .beta2 = 0.999,
                            .epsilon = 1e-8,
                            .weight_decay = 0.1,
                            .gradient_factor = 0.7};
    adamw_(want, step);
    cuda::adamw_(have, step);
    EXPECT_LT(relative_difference(have.master.cpu(), want.master), 1e-5);
    EXPECT_LT(relative_difference(have.exp_avg.cpu(), want.exp_avg), 1e-6);
    EXPECT_LT(relative_difference(have.exp_avg_sq.cpu(), want.exp_avg_sq), 1e-6);
    EXPECT_TRUE(at::equal(have.weights, have.master.to(GetParam())));
  }
}

TEST_P(CudaKernels, TwoRunsGiveEqualBits) {
  const at::Tensor x = on_gpu(random_tensor({5000, 512}, 1));
  const at::Tensor grad = on_gpu(random_tensor({5000, 512}, 2));
  const at::Tensor weight = on_gpu(random_tensor({512}, 3));
  const at::Tensor rstd = cuda::rms_norm(x, weight, epsilon).rstd_R;
  const RmsNormGradient first = cuda::rms_norm_backward(grad, x, rstd, weight, {});
  const RmsNormGradient second = cuda::rms_norm_backward(grad, x, rstd, weight, {});
  EXPECT_TRUE(at::equal(first.x_RD, second.x_RD));
  EXPECT_TRUE(at::equal(first.weight_D, second.weight_D));
}

TEST_P(CudaKernels, TakeNoRowsThatAreNotWholeEights) {
  const at::Tensor narrow = on_gpu(at::zeros({2, 12}));
  EXPECT_FALSE(cuda::has_norm(narrow, narrow[0]));
  EXPECT_FALSE(cuda::has_swiglu(on_gpu(at::zeros({2, 24}))));
  EXPECT_FALSE(cuda::has_rotation(on_gpu(at::zeros({2, 3, 24}))));
  const at::Tensor shifted = on_gpu(at::zeros({17}));
  EXPECT_FALSE(cuda::has_update(on_gpu(at::zeros({16}), at::kFloat), shifted.slice(0, 1)));
}

INSTANTIATE_TEST_SUITE_P(Dtypes, CudaKernels, testing::Values(at::kFloat, at::kBFloat16, at::kHalf),
                         [](const auto& test) { return std::string(c10::toString(test.param)); });

}  // namespace
}  // namespace isochron
