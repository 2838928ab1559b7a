#include "isochron/core/require.h"
#include "isochron/engine/parallel/network.h"

namespace isochron {

std::unique_ptr<Network> nccl_network(at::Device device, std::chrono::milliseconds) {
  reject("world", "several ranks on {} need NCCL, which this build lacks: its torch has no CUDA",
         device.str());
}

}  // namespace isochron
