#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>

#include "isochron/core/random.h"
#include "tests/support/step_question.h"

namespace isochron {

// What a family of random questions has in common.
struct QuestionShape {
  std::size_t most_sequences = 6;
  std::int32_t least_ranks = 1;
  std::int32_t most_ranks = 8;
  PlanOptions options = {};
  std::int32_t stages = 1;
  std::int32_t virtual_ = 1;
  std::int32_t group = 1;   // of slots, if there are virtual stages
  bool has_groups = false;  // prompt groups: two of several sequences at most
  bool has_speeds = false;  // ranks of different pace
  bool has_extra_costs = false;
  bool has_shares = false;      // stages of different sizes
  bool has_transfers = false;   // between stages, up to about a stage of a short sequence
  bool has_wide_choice = true;  // sequences of up to all ranks, and not of one rank alone
};

// Costs around those of a 7B model on H100, with nodes of 2, 4 or 8 ranks, free or dear
// micro-batches, one exchange or the choice between two.
inline CostModel random_cost(Random& random) {
  const auto node = std::int64_t{2} << random.below(3);
  const double microbatch_ns[] = {0, 5e6, 5e6, 2e8};
  const double latency_us = random.below(4) == 0 ? 0 : 1280;
  CostModel cost{.name = "tiny",
                 .quadratic_ns = 1.59,
                 .linear_ns = 91057.5,
                 .microbatch_ns = microbatch_ns[random.below(4)],
                 .context = {{.kind = ContextKind::all_gather_kv,
                              .bytes_per_token = 393216,
                              .links = {{node, 350, latency_us}, {1 << 20, 45, 2 * latency_us}}}}};
  if (random.below(4) == 0) {
    cost.context.push_back({.kind = ContextKind::all_to_all,
                            .bytes_per_token = 655360,
                            .divides = 4,
                            .links = {{node, 350, latency_us}}});
  }
  return cost;
}

inline Tokens random_length(Random& random, Tokens capacity, Tokens longest) {
  switch (random.below(4)) {
    case 0:
      return random.between(1, capacity / 4);
    case 1:
      return random.between(1, longest);
    case 2:
      return std::max<Tokens>(1, capacity / random.between(1, 3) - random.between(0, 9));
    default:
      return random.between(1, capacity);
  }
}

// Puts the next sequence into a prompt group.
inline void add_to_group(Batch& batch, const std::string& name) {
  const auto known = std::find(batch.group_names.begin(), batch.group_names.end(), name);
  batch.groups.emplace_back(static_cast<std::int32_t>(known - batch.group_names.begin()));
  if (known == batch.group_names.end()) batch.group_names.push_back(name);
}

// A question that exhaustive search can answer.
inline StepQuestion random_question(std::uint64_t seed, const QuestionShape& shape) {
  Random random(seed);
  StepQuestion question;
  question.options = shape.options;
  question.cost = random_cost(random);
  Topology& topology = question.topology;
  topology.capacity = random.below(4) == 0 ? random.between(8, 64) : 16'384;
  topology.pipeline.stages = shape.stages;
  topology.pipeline.virtual_ = shape.virtual_;
  topology.pipeline.group = shape.group;
  const ContextMode mode = context_mode(shape.options.context);
  do {
    topology.ranks = static_cast<std::int32_t>(random.between(shape.least_ranks, shape.most_ranks));
  } while (topology.ranks % mode.size != 0);
  if (shape.has_speeds) {
    for (std::int32_t i = 0; i < topology.ranks; ++i) {
      topology.rank_speed.push_back(random.below(2) == 0 ? 1 : 0.5 + random.unit());
    }
  }
  PipelineShape& pipeline = topology.pipeline;
  if (shape.has_shares) {
    for (std::int32_t i = 0; i < pipeline.num_chunks(); ++i) {
      pipeline.shares.push_back(0.5 + random.unit());
    }
    const double sum = std::accumulate(pipeline.shares.begin(), pipeline.shares.end(), 0.0);
    for (double& share : pipeline.shares) share /= sum;
  }
  if (shape.has_transfers) pipeline.transfer_ns = random.between(0, 20'000'000);
  const Tokens longest = topology.capacity * (shape.has_wide_choice ? topology.ranks : mode.size);
  const auto count =
      random.below(2) == 0 ? shape.most_sequences : 1 + random.below(shape.most_sequences);
  for (std::size_t i = 0; i < count; ++i) {
    question.batch.lengths.push_back(random_length(random, topology.capacity, longest));
    if (shape.has_groups) {
      const auto name = random.below(4);
      add_to_group(question.batch,
                   name < 2 ? "shared " + std::to_string(name) : "alone " + std::to_string(i));
    }
    if (shape.has_extra_costs) {
      question.batch.extra_cost_ns.push_back(random.below(2) == 0 ? 0
                                                                  : random.between(0, 500'000'000));
    }
  }
  return question;
}

}  // namespace isochron
