#include "isochron/engine/model/attention.h"

#include "isochron/core/require.h"
#include "isochron/engine/model/attention_cpu.h"
#include "isochron/engine/model/attention_cuda.h"

namespace isochron {

std::shared_ptr<const Attention> local_attention(const AttentionSpans& spans, at::Device device) {
  require(device.is_cpu() || device.is_cuda(), "attention", "the device is {}, must be cpu or cuda",
          device.str());
  if (device.is_cuda()) return std::make_shared<CudaAttention>(spans, device);
  return std::make_shared<CpuAttention>(spans);
}

}  // namespace isochron
