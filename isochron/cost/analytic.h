#pragma once

#include <cstdint>

#include "isochron/core/fields.h"
#include "isochron/cost/cost_model.h"
#include "isochron/cost/hardware.h"
#include "isochron/cost/memory.h"
#include "isochron/cost/model_shape.h"

namespace isochron {

struct AnalyticOptions {
  std::int32_t tensor_parallel = 1;       // devices that make one rank
  Recompute recompute = Recompute::none;  // in the backward
  bool keep_gathered_kv = false;          // from the forward, for a second gather less

  template <class Row>
  static void describe(Row row) {
    using Self = AnalyticOptions;
    row(Field{"tensor_parallel", &Self::tensor_parallel, "devices that make one rank"});
    row(Field{"recompute", &Self::recompute, "what the backward computes again"});
    row(Field{"keep_gathered_kv", &Self::keep_gathered_kv,
              "keep gathered keys and values for the backward"});
  }
};

// A cost model from formulas: the FLOPs of the shape at half of the peak, 5 ms a micro-batch, both
// exchanges over the links of the hardware. Gathering keys and values comes first, then exchanging
// heads, for sizes that divide the KV heads of a rank. Memory of kept keys and values is not
// counted. Named "MODEL_HARDWARE", with "_tp2" and "_full" where the options say so.
//
// Throws std::invalid_argument for an invalid shape, hardware without a peak or a bandwidth, and a
// tensor_parallel that does not divide both the devices of a node and the KV heads.
[[nodiscard]] CostModel analytic_cost(const ModelShape& shape, const Hardware& hardware,
                                      const AnalyticOptions& options = {});

}  // namespace isochron
