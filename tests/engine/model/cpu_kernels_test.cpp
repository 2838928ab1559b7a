// The kernels against torch's own operations and gradients, in fp64.

#include "isochron/engine/model/cpu_kernels.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/engine/support/closeness.h"

namespace isochron {
namespace {

constexpr double tolerance = 1e-13;

at::Tensor random_tensor(at::IntArrayRef sizes, std::uint64_t seed) {
  return at::randn(sizes, at::detail::createCPUGenerator(seed), at::kDouble);
}

at::Tensor plain_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  return x * (x.square().mean(-1, /*keepdim=*/true) + epsilon).rsqrt() * weight;
}

at::Tensor plain_rotation(const at::Tensor& x_TMH, const RopeTable& table) {
  const auto halves = x_TMH.chunk(2, 2);
  const at::Tensor cos = table.cos_TR.unsqueeze(1);
  const at::Tensor sin = table.sin_TR.unsqueeze(1);
  return at::cat({halves[0] * cos - halves[1] * sin, halves[1] * cos + halves[0] * sin}, 2);
}

RopeTable random_table(std::int64_t tokens, std::int64_t half) {
  const at::Tensor angles = random_tensor({tokens, half}, 9);
  return {.cos_TR = angles.cos() * 1.3, .sin_TR = angles.sin() * 1.3};
}

// Widths below, at and beyond the lanes of a sum; rows below and beyond a block.
constexpr std::array<std::pair<std::int64_t, std::int64_t>, 5> shapes = {
    {{1, 1}, {3, 16}, {32, 17}, {70, 40}, {0, 5}}};

TEST(CpuKernels, NormAndItsGradientEqualTorch) {
  for (const auto& [rows, width] : shapes) {
    SCOPED_TRACE(testing::Message() << rows << " x " << width);
    const at::Tensor x = random_tensor({rows, width}, 1).requires_grad_();
    const at::Tensor weight = random_tensor({width}, 2).requires_grad_();
    const at::Tensor grad = random_tensor({rows, width}, 3);
    const at::Tensor residual = random_tensor({rows, width}, 4);
    const at::Tensor expected = plain_norm(x, weight, 1e-3);
    const auto gradients = torch::autograd::grad({expected}, {x, weight}, {grad});
    const at::NoGradGuard no_grad;
    const RmsNormOutput output = cpu::rms_norm(x, weight, 1e-3);
    EXPECT_LT(relative_difference(output.y_RD, expected), tolerance);
    EXPECT_TRUE(at::equal(cpu::rms_norm_again(x, output.rstd_R, weight), output.y_RD));
    const RmsNormGradient alone = cpu::rms_norm_backward(grad, x, output.rstd_R, weight, {});
    EXPECT_LT(relative_difference(alone.x_RD, gradients[0]), tolerance);
    EXPECT_LT(relative_difference(alone.weight_D, gradients[1]), tolerance);
    const RmsNormGradient added = cpu::rms_norm_backward(grad, x, output.rstd_R, weight, residual);
    EXPECT_LT(relative_difference(added.x_RD, gradients[0] + residual), tolerance);
  }
}

TEST(CpuKernels, NormedAndRotatedHeadsAndTheirGradientEqualTorch) {
  for (const std::int64_t tokens : {1, 70}) {
    constexpr std::int64_t query_heads = 3;
    constexpr std::int64_t heads = 5;
    constexpr std::int64_t head_dim = 18;
    const RopeTable table = random_table(tokens, head_dim / 2);
    const at::Tensor all = random_tensor({tokens, heads + 2, head_dim}, 1);  // values behind
    const at::Tensor x = all.narrow(1, 0, heads).clone().requires_grad_();
    const at::Tensor q_weight = random_tensor({head_dim}, 2).requires_grad_();
    const at::Tensor k_weight = random_tensor({head_dim}, 3).requires_grad_();
    const at::Tensor grads = random_tensor({tokens, heads + 2, head_dim}, 4);
    const at::Tensor expected = plain_rotation(
        at::cat({plain_norm(x.narrow(1, 0, query_heads), q_weight, 1e-3),
                 plain_norm(x.narrow(1, query_heads, heads - query_heads), k_weight, 1e-3)},
                1),
        table);
    const auto gradients =
        torch::autograd::grad({expected}, {x, q_weight, k_weight}, {grads.narrow(1, 0, heads)});
    const at::NoGradGuard no_grad;
    const HeadNorm norm = {.q_H = q_weight, .k_H = k_weight, .epsilon = 1e-3};
    const at::Tensor slice = all.narrow(1, 0, heads);
    EXPECT_LT(
        relative_difference(cpu::norm_and_rotate_heads(slice, query_heads, norm, table), expected),
        tolerance);
    const at::Tensor behind = grads.narrow(1, heads, 2).clone();
    const HeadNormGradient weights = cpu::norm_and_rotate_heads_backward_(
        grads.narrow(1, 0, heads), slice, query_heads, norm, table);
    EXPECT_LT(relative_difference(grads.narrow(1, 0, heads), gradients[0]), tolerance);
    EXPECT_LT(relative_difference(weights.q_H, gradients[1]), tolerance);
    EXPECT_LT(relative_difference(weights.k_H, gradients[2]), tolerance);
    EXPECT_TRUE(at::equal(grads.narrow(1, heads, 2), behind));
  }
}

TEST(CpuKernels, RotationBackIsTheTransposeOfRotation) {
  const RopeTable table = random_table(40, 5);
  const at::Tensor x = random_tensor({40, 3, 10}, 1);
  const at::Tensor y = random_tensor({40, 3, 10}, 2);
  const at::Tensor turned = x.clone();
  cpu::rotate_heads_(turned, table, Turn::forward);
  EXPECT_LT(relative_difference(turned, plain_rotation(x, table)), tolerance);
  const at::Tensor back = y.clone();
  cpu::rotate_heads_(back, table, Turn::back);
  EXPECT_NEAR((turned * y).sum().item<double>(), (x * back).sum().item<double>(), 1e-10);
}

TEST(CpuKernels, SwigluAndItsGradientEqualTorch) {
  for (const auto& [rows, width] : shapes) {
    const at::Tensor gate_up = (random_tensor({rows, 2 * width}, 1) * 4).requires_grad_();
    const at::Tensor grad = random_tensor({rows, width}, 2);
    const auto halves = gate_up.chunk(2, 1);
    const at::Tensor expected = at::silu(halves[0]) * halves[1];
    const auto gradients = torch::autograd::grad({expected}, {gate_up}, {grad});
    const at::NoGradGuard no_grad;
    EXPECT_LT(relative_difference(cpu::swiglu_TF(gate_up), expected), tolerance);
    EXPECT_LT(relative_difference(cpu::swiglu_backward_T2F(grad, gate_up), gradients[0]),
              tolerance);
  }
}

TEST(CpuKernels, ResultsDoNotDependOnTheNumberOfThreads) {
  const at::Tensor x = random_tensor({500, 33}, 1);
  const at::Tensor weight = random_tensor({33}, 2);
  const at::Tensor grad = random_tensor({500, 33}, 3);
  const RmsNormOutput output = cpu::rms_norm(x, weight, 1e-3);
  const RmsNormGradient one = cpu::rms_norm_backward(grad, x, output.rstd_R, weight, {});
  at::set_num_threads(3);
  const RmsNormGradient three = cpu::rms_norm_backward(grad, x, output.rstd_R, weight, {});
  at::set_num_threads(1);
  EXPECT_TRUE(at::equal(one.x_RD, three.x_RD));
  EXPECT_TRUE(at::equal(one.weight_D, three.weight_D));
}

TEST(CpuKernels, ANumberThatIsNotFiniteStaysVisible) {
  at::Tensor x = random_tensor({2, 20}, 1);
  x[1][7] = std::numeric_limits<double>::quiet_NaN();
  const at::Tensor weight = random_tensor({20}, 2);
  const RmsNormOutput output = cpu::rms_norm(x, weight, 1e-3);
  EXPECT_TRUE(output.y_RD[0].isfinite().all().item<bool>());
  EXPECT_TRUE(output.y_RD[1].isnan().all().item<bool>());
  EXPECT_TRUE(cpu::swiglu_TF(x)[1][7].isnan().item<bool>());
}

}  // namespace
}  // namespace isochron
