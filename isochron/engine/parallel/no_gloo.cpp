#include "isochron/core/require.h"
#include "isochron/engine/parallel/network.h"

namespace isochron {

std::unique_ptr<Network> gloo_network(const Place&, at::Device device, std::chrono::milliseconds) {
  reject("world",
         "several ranks on {} over Gloo need it, which this build lacks: install {} and build "
         "again",
         device.str(), "libgloo-dev");
}

}  // namespace isochron
