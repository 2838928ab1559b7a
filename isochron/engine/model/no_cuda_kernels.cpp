// Without nvcc or CUDA no tensor has a kernel: layers run on torch's operations.

#include "isochron/engine/cuda/no_kernels.h"
#include "isochron/engine/model/cuda_kernels.h"

namespace isochron::cuda {

bool has_norm(const at::Tensor&, const at::Tensor&) { return false; }
bool has_rotation(const at::Tensor&) { return false; }
bool has_swiglu(const at::Tensor&) { return false; }

RmsNormOutput rms_norm(const at::Tensor&, const at::Tensor&, double) { reject_no_kernels(); }
at::Tensor rms_norm_again(const at::Tensor&, const at::Tensor&, const at::Tensor&) {
  reject_no_kernels();
}
RmsNormGradient rms_norm_backward(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                  const at::Tensor&, const at::Tensor&) {
  reject_no_kernels();
}
void rotate_heads_(const at::Tensor&, const RopeTable&, Turn) { reject_no_kernels(); }
at::Tensor norm_and_rotate_heads(const at::Tensor&, std::int64_t, const HeadNorm&,
                                 const RopeTable&) {
  reject_no_kernels();
}
HeadNormGradient norm_and_rotate_heads_backward_(const at::Tensor&, const at::Tensor&, std::int64_t,
                                                 const HeadNorm&, const RopeTable&) {
  reject_no_kernels();
}
at::Tensor swiglu_TF(const at::Tensor&) { reject_no_kernels(); }
at::Tensor swiglu_backward_T2F(const at::Tensor&, const at::Tensor&) { reject_no_kernels(); }

}  // namespace isochron::cuda
