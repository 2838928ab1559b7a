#pragma once

#include <cstdint>
#include <vector>

#include "isochron/core/units.h"

namespace isochron {

// How the layers of a model are cut: every rank is a pipeline of `stages` devices, each of which
// holds `virtual_` chunks of layers; chunk i of the stages * virtual_ chunks is on stage i %
// stages.
struct PipelineShape {
  std::int32_t stages = 1;
  std::int32_t virtual_ = 1;    // chunks per stage; more than one needs several stages
  std::int32_t group = 1;       // slots that a chunk runs before the next chunk; if virtual_ > 1
                                // at least `stages`, and it divides the number of slots
  Nanoseconds transfer_ns = 0;  // from the end of a chunk to the start of the next, either way
  std::vector<double> shares = {};  // of each chunk in the cost; adds up to 1; empty: all equal

  [[nodiscard]] std::int32_t num_chunks() const { return stages * virtual_; }

  bool operator==(const PipelineShape&) const = default;
};

// The machine that a step runs on.
struct Topology {
  std::int32_t ranks = 1;  // data x context parallel; each is a pipeline of `pipeline.stages`
  Tokens capacity = 0;     // padded tokens of a micro-batch that one rank may hold
  PipelineShape pipeline = {};
  std::vector<double> rank_speed = {};  // 1: as fast as the cost model says; empty: all 1

  bool operator==(const Topology&) const = default;
};

// Throws std::invalid_argument, with the value and what is allowed: ranks 1 to 2^20; a capacity
// below 1; stages, virtual_, their product and group 1 to 4096, group times chunks above 2^18,
// virtual_ > 1 without several stages or with a group below `stages`, group > 1 without virtual_ >
// 1; a negative transfer_ns; shares that are not
// one positive number per chunk adding up to 1; speeds that are not one number from 0.001 to 1000
// per rank.
void require_valid(const Topology& topology);

}  // namespace isochron
