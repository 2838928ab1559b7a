#include "isochron/core/require.h"
#include "isochron/engine/parallel/network.h"

namespace isochron {

std::unique_ptr<Network> gloo_network(const Place&, std::chrono::milliseconds) {
  reject("world",
         "several ranks on the cpu need Gloo, which this build lacks: install {} and build "
         "again",
         "libgloo-dev");
}

}  // namespace isochron
