#include "isochron/engine/context/context_attention.h"

#include "isochron/engine/context/gathered_attention.h"
#include "isochron/engine/context/head_attention.h"

namespace isochron {

std::shared_ptr<const Attention> context_attention(ContextKind exchange,
                                                   std::span<const std::int32_t> cu_seqlens,
                                                   Communicator& group, at::Device device,
                                                   const ContextOptions& options) {
  if (exchange == ContextKind::all_to_all) {
    return std::make_shared<HeadAttention>(cu_seqlens, group, device);
  }
  return std::make_shared<GatheredAttention>(cu_seqlens, group, device, options);
}

}  // namespace isochron
