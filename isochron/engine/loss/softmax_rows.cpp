// Softmax over the rows of a chunk, on torch's operations where there is no kernel:
//
//   d logits = g (1[label] - p) - g_entropy p (log p + entropy),  p = exp(logits - lse)

#include "isochron/engine/loss/softmax_rows.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "isochron/engine/loss/cuda_softmax.h"

namespace isochron {

namespace {

// Calls visit(first row, rows) over a chunk: all at once on a device, on the CPU in parallel over
// blocks that stay in a cache while several passes go over them.
template <class Visit>
void for_row_blocks(const at::Tensor& logits_CV, const Visit& visit) {
  const std::int64_t rows = logits_CV.size(0);
  if (!logits_CV.is_cpu()) {
    visit(std::int64_t{0}, rows);
    return;
  }
  constexpr std::int64_t block_elements = 1 << 16;  // 256 KiB of fp32
  const std::int64_t block = std::max<std::int64_t>(1, block_elements / logits_CV.size(1));
  at::parallel_for(0, (rows + block - 1) / block, 1, [&](std::int64_t begin, std::int64_t end) {
    const at::NoGradGuard no_grad;  // of this thread
    for (std::int64_t i = begin; i < end; ++i) {
      visit(i * block, std::min(block, rows - i * block));
    }
  });
}

}  // namespace

SoftmaxOutputs softmax_rows(const at::Tensor& logits_CV, const at::Tensor& labels_C,
                            bool has_entropy) {
  if (cuda::has_softmax(logits_CV)) return cuda::softmax_rows(logits_CV, labels_C, has_entropy);
  const auto options = logits_CV.options();
  const std::int64_t rows = logits_CV.size(0);
  SoftmaxOutputs out = {.lse_C = at::empty({rows}, options),
                        .log_prob_C = logits_CV.gather(1, labels_C.unsqueeze(1)).squeeze(1),
                        .entropy_C = {}};
  if (has_entropy) out.entropy_C = at::empty({rows}, options);
  for_row_blocks(logits_CV, [&](std::int64_t begin, std::int64_t size) {
    const at::Tensor block = logits_CV.narrow(0, begin, size);
    const at::Tensor largest = block.amax(1, /*keepdim=*/true);
    at::Tensor exponentials = at::sub(block, largest).exp_();
    const at::Tensor sum = exponentials.sum(1);
    const at::Tensor lse = sum.log().add_(largest.squeeze(1));
    out.lse_C.narrow(0, begin, size).copy_(lse);
    if (has_entropy) {
      out.entropy_C.narrow(0, begin, size).copy_(lse - exponentials.mul_(block).sum(1).div_(sum));
    }
  });
  out.log_prob_C.sub_(out.lse_C);
  return out;
}

at::Tensor softmax_rows_backward(const at::Tensor& logits_CV, const SoftmaxGradients& rows,
                                 at::ScalarType dtype) {
  if (cuda::has_softmax(logits_CV)) return cuda::softmax_rows_backward(logits_CV, rows, dtype);
  for_row_blocks(logits_CV, [&](std::int64_t begin, std::int64_t size) {
    const auto column = [&](const at::Tensor& all) {
      return all.narrow(0, begin, size).unsqueeze(1);
    };
    const at::Tensor log_p = logits_CV.narrow(0, begin, size).sub_(column(rows.lse_C));
    at::Tensor factor;  // of -p
    if (rows.grad_entropy_C.defined()) {
      factor = (log_p + column(rows.entropy_C)).mul_(column(rows.grad_entropy_C));
      if (rows.grad_log_prob_C.defined()) factor.add_(column(rows.grad_log_prob_C));
    } else {
      factor = column(rows.grad_log_prob_C);
    }
    log_p.exp_().mul_(factor.neg());
    if (rows.grad_log_prob_C.defined()) {
      log_p.scatter_add_(1, column(rows.labels_C), column(rows.grad_log_prob_C));
    }
  });
  return logits_CV.to(dtype);
}

}  // namespace isochron
