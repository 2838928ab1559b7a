#include "isochron/engine/loss/cuda_softmax.h"

#include <ATen/ATen.h>

#include "isochron/engine/cuda/dispatch.h"
#include "isochron/engine/loss/softmax_launches.h"

namespace isochron::cuda {

namespace {

LogitRows rows_of(const at::Tensor& logits_CV, const at::Tensor& labels_C) {
  return {.logits_CV = read<float>(logits_CV),
          .labels_C = read<std::int64_t>(labels_C),
          .rows = logits_CV.size(0),
          .vocabulary = logits_CV.size(1)};
}

}  // namespace

bool has_softmax(const at::Tensor& logits_CV) {
  return logits_CV.is_cuda() && logits_CV.scalar_type() == at::kFloat && logits_CV.is_contiguous();
}

SoftmaxOutputs softmax_rows(const at::Tensor& logits_CV, const at::Tensor& labels_C,
                            bool has_entropy) {
  const auto per_row = [&] { return at::empty({logits_CV.size(0)}, logits_CV.options()); };
  SoftmaxOutputs out = {.lse_C = per_row(), .log_prob_C = per_row(), .entropy_C = {}};
  if (has_entropy) out.entropy_C = per_row();
  launch_like(logits_CV, [&](auto, cudaStream_t stream) {
    launch_softmax(rows_of(logits_CV, labels_C),
                   {.lse_C = write<float>(out.lse_C),
                    .log_prob_C = write<float>(out.log_prob_C),
                    .entropy_C = has_entropy ? write<float>(out.entropy_C) : nullptr},
                   stream);
  });
  return out;
}

at::Tensor softmax_rows_backward(const at::Tensor& logits_CV, const SoftmaxGradients& rows,
                                 at::ScalarType dtype) {
  const bool is_in_place = dtype == at::kFloat;
  const at::Tensor grad_CV =
      is_in_place ? logits_CV : at::empty_like(logits_CV, logits_CV.options().dtype(dtype));
  if (is_in_place) logits_CV.unsafeGetTensorImpl()->bump_version();  // autograd's copy has changed
  launch_like(grad_CV, [&]<class T>(T, cudaStream_t stream) {
    launch_softmax_backward<T>(rows_of(logits_CV, rows.labels_C),
                               {.lse_C = read<float>(rows.lse_C),
                                .grad_log_prob_C = read<float>(rows.grad_log_prob_C),
                                .entropy_C = read<float>(rows.entropy_C),
                                .grad_entropy_C = read<float>(rows.grad_entropy_C)},
                               write<T>(grad_CV), stream);
  });
  return grad_CV;
}

}  // namespace isochron::cuda
