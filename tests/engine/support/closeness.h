#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace isochron {

// The largest difference, relative to the largest value expected.
inline double relative_difference(const at::Tensor& actual, const at::Tensor& expected) {
  if (expected.numel() == 0) return 0;
  const at::Tensor want = expected.detach().to(at::kDouble);
  const double difference = (actual.detach().to(at::kDouble) - want).abs().max().item<double>();
  const double scale = want.abs().max().item<double>();
  return scale > 0 ? difference / scale : difference;
}

}  // namespace isochron
