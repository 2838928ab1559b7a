#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "isochron/core/batch.h"
#include "isochron/core/random.h"
#include "isochron/cost/cost_model.h"
#include "isochron/step/plan_options.h"
#include "isochron/step/topology.h"
#include "tests/support/random_batch.h"

namespace isochron {

// What plan_step() is asked.
struct StepQuestion {
  Batch batch;
  Topology topology;
  CostModel cost;
  PlanOptions options;
};

// Draws a question: every option, alone and with others, on batches and machines of any shape.
// Mostly small ones, where all the corners are.
class QuestionDraw {
 public:
  explicit QuestionDraw(std::uint64_t seed) : random_(seed) {}

  StepQuestion draw() {
    const Tokens longest = chance(2) ? number(1, 40) : number(1, 3000);
    draw_batch(longest);
    topology_.ranks = chance(3) ? number(1, 97) : number(1, 17);
    topology_.capacity = number(1, 2 * longest);
    if (chance(6)) draw_pipeline();
    if (chance(6)) {
      for (std::int32_t i = 0; i < topology_.ranks; ++i) {
        topology_.rank_speed.push_back(0.25 * number(2, 5));
      }
    }
    draw_context();
    draw_options();
    return {batch_, topology_, drawn_cost(), options_};
  }

 private:
  bool chance(std::uint64_t one_in) { return random_.below(one_in) == 0; }
  std::int32_t number(std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(random_.between(low, high));
  }
  template <class T, std::size_t size>
  T pick(const std::array<T, size>& values) {
    return values[random_.below(size)];
  }

  void draw_batch(Tokens longest) {
    const auto count = static_cast<std::size_t>(number(1, chance(4) ? 200 : 24));
    batch_ = random_named_batch(random_, count, longest, count);
    if (chance(2)) {
      batch_.groups.clear();
      batch_.group_names.clear();
    }
    if (chance(50)) {  // so large that products of costs leave 64 bits
      const auto most = max_total_cost / static_cast<Nanoseconds>(8 * count);
      batch_.extra_cost_ns.clear();
      for (std::size_t i = 0; i < count; ++i) {
        batch_.extra_cost_ns.push_back(random_.between(0, most));
      }
    }
  }

  void draw_pipeline() {
    PipelineShape& shape = topology_.pipeline;
    shape.stages = number(2, 5);
    if (chance(2)) {
      shape.virtual_ = number(2, 3);
      shape.group = shape.stages + number(0, 1);
    }
    if (chance(3)) shape.transfer_ns = number(0, 100);
    if (chance(3)) {
      for (std::int32_t i = 0; i < shape.num_chunks(); ++i) shape.shares.push_back(number(1, 3));
      const double sum = std::accumulate(shape.shares.begin(), shape.shares.end(), 0.0);
      for (double& share : shape.shares) share /= sum;
    }
  }

  void draw_context() {
    const std::int32_t ranks = topology_.ranks;
    switch (random_.below(4)) {
      case 0:
        return;
      case 1: {
        std::int32_t size = number(1, ranks);
        while (ranks % size != 0) --size;
        options_.context = "static:" + std::to_string(size);
        return;
      }
      case 2:
        options_.context = "dynamic";
        break;
      default:
        options_.context = "dynamic:any";
    }
    if (chance(4)) {
      options_.min_context_size = number(1, ranks);
      if (chance(2)) options_.max_context_size = number(options_.min_context_size, ranks);
    }
  }

  void draw_options() {
    if (chance(2)) {
      options_.sync = Sync::microbatch;
    } else if (chance(3)) {
      options_.counts = Counts::equal;
    }
    if (chance(4)) options_.pass = Pass::forward;
    if (chance(4)) options_.max_sequences = number(1, 5);
    if (chance(4)) options_.tensor_parallel = number(1, 4);
    if (chance(3)) options_.oversize = Oversize::alone;
    if (chance(3)) options_.short_ = chance(2) ? Short::error : Short::drop;
    if (!batch_.groups.empty()) {
      options_.keep_groups = pick(
          std::array{KeepGroups::none, KeepGroups::rank, KeepGroups::rank, KeepGroups::microbatch});
    }
    if (chance(6)) options_.pad_multiple = number(1, 8);
    if (chance(20)) options_.max_activation_bytes = 10 * topology_.capacity * number(1, 8);
    if (chance(8)) options_.balance = false;
    options_.effort = chance(4) ? number(0, 500) : 4000;
  }

  CostModel drawn_cost() {
    ContextCost gather{
        .kind = ContextKind::all_gather_kv,
        .bytes_per_token = static_cast<double>(number(0, 30)),
        .links = {{number(1, 9), 10, 0.1 * number(0, 2)}, {1 << 20, 2, 0.1 * number(0, 4)}}};
    CostModel cost{.name = "random",
                   .quadratic_ns = 0.5 * number(0, 2),
                   .linear_ns = number(10, 700) / 10.0,
                   .microbatch_ns = static_cast<double>(number(0, 500)),
                   .context = {gather},
                   .activation_bytes_per_token = 10};
    if (chance(4)) {  // two exchanges, the second perhaps not for every size
      gather.kind = ContextKind::all_to_all;
      gather.divides = chance(2) ? 8 : 0;
      cost.context.push_back(gather);
    }
    // Groups within blocks only, which static groups of a pipeline need not be.
    const bool is_static_pipeline =
        topology_.pipeline.stages > 1 && options_.context.starts_with("static");
    if (!is_static_pipeline && chance(16)) cost.context[0].links.pop_back();
    return cost;
  }

  Random random_;
  Batch batch_;
  Topology topology_;
  PlanOptions options_;
};

inline StepQuestion random_step_question(std::uint64_t seed) { return QuestionDraw(seed).draw(); }

}  // namespace isochron
