#include "isochron/engine/model/attention.h"

#include "isochron/core/require.h"
#include "isochron/engine/model/attention_cpu.h"
#include "isochron/engine/model/attention_cuda.h"

namespace isochron {

std::shared_ptr<const Attention> packed_attention(const std::vector<std::int64_t>& cu_seqlens,
                                                  at::Device device) {
  require(device.is_cpu() || device.is_cuda(), "attention", "the device is {}, must be cpu or cuda",
          device.str());
  if (device.is_cuda()) return std::make_shared<CudaAttention>(cu_seqlens, device);
  return std::make_shared<CpuAttention>(cu_seqlens);
}

}  // namespace isochron
