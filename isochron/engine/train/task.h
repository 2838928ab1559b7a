#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

#include "isochron/core/json.h"
#include "isochron/engine/execute/engine.h"
#include "isochron/engine/metrics/numbers.h"

namespace isochron {

// What is trained: SFT, GRPO and PPO differ here and nowhere else. `engine` is for passes without a
// loss (old log-probs, values, validation).
template <class T>
concept Task = requires(T task, const T fixed, std::int64_t step, Engine& engine,
                        const Json& state) {
  // The updates of a step, in order. SFT: one, or none if there is nothing to train on.
  { task.updates(step, engine) } -> std::same_as<std::vector<Update>>;
  // The numbers of a validation; none without a set.
  { task.validate(step, engine) } -> std::same_as<Numbers>;
  // What a run has to agree with that continues after `step`, and the check. Throws
  // std::invalid_argument, naming what differs.
  { fixed.state(step) } -> std::same_as<Json>;
  { task.restore(state) } -> std::same_as<void>;
};

}  // namespace isochron
