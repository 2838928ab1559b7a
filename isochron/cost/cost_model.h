#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "isochron/core/batch.h"
#include "isochron/core/enum_names.h"
#include "isochron/core/units.h"

namespace isochron {

// How the ranks of a context-parallel group see each other's keys and values.
enum class ContextKind {
  all_gather_kv,  // every rank gathers all keys and values (also the volume of a ring)
  all_to_all,     // ranks exchange heads for tokens (Ulysses)
  none,           // nothing is moved
};

template <>
struct EnumNames<ContextKind> {
  static constexpr std::array<std::pair<ContextKind, std::string_view>, 3> values = {
      {{ContextKind::all_gather_kv, "all_gather_kv"},
       {ContextKind::all_to_all, "all_to_all"},
       {ContextKind::none, "none"}}};
};

// What connects the ranks of one block of the machine: those that share rank / max_ranks.
struct ContextLink {
  std::int64_t max_ranks = 1;
  double gb_per_s = 0;    // 1 GB/s is 1 byte/ns
  double latency_us = 0;  // per micro-batch: all layers, forward and backward

  bool operator==(const ContextLink&) const = default;
};

// One way to exchange keys and values, and its price.
struct ContextCost {
  ContextKind kind = ContextKind::none;
  double bytes_per_token = 0;      // moved per token: forward and backward, all layers
  std::int64_t divides = 0;        // all_to_all: the group size divides this; 0: any size
  std::vector<ContextLink> links;  // ascending by max_ranks
  double overlap = 0;              // share of the traffic that is hidden behind compute

  bool operator==(const ContextCost&) const = default;
};

// What sequences cost, in nanoseconds on one rank, forward and backward through all layers.
struct CostModel {
  std::string name;
  double quadratic_ns = 0;         // per token^2
  double linear_ns = 0;            // per token
  double microbatch_ns = 0;        // fixed, per micro-batch
  double forward_share = 1.0 / 3;  // of any cost, for pipelines and forward-only passes
  // A group uses the cheapest that it may. An empty list: there are no groups beyond one rank.
  std::vector<ContextCost> context = {ContextCost{}};
  double activation_bytes_per_token = 0;

  bool operator==(const CostModel&) const = default;
};

// Throws std::invalid_argument, with the field, its value and what is allowed, unless all numbers
// are finite and not negative, forward_share lies inside 0 to 1, an overlap in 0 to 1, bandwidths
// are above 0, links ascend, and `divides` is 0 where nothing needs it.
void require_valid(const CostModel& model);

// JSON with the names of the fields; reading it back gives an equal model. A single exchange is an
// object, several are a list.
//
// Reading takes either form. Fields may be missing and then have the defaults above, except: one of
// quadratic_ns and linear_ns is given, an exchange has its kind, and a link max_ranks and gb_per_s.
// Throws std::invalid_argument for text that is not JSON, an unknown key (naming the nearest) or
// one that occurs twice, a value of another type, and an invalid model.
[[nodiscard]] std::string to_json(const CostModel& model);
[[nodiscard]] CostModel cost_model_from_json(std::string_view json_text);

// A model by name, in any case: `verl`, the workload 24576 s + s^2 that verl balances by, and the
// analytic model of every model and hardware preset, as in "qwen3-8b_h100". Throws
// std::invalid_argument, with the nearest name, for another.
[[nodiscard]] CostModel cost_preset(std::string_view name);
[[nodiscard]] std::vector<std::string> cost_names();

// A sequence on one rank: quadratic_ns * s * s + linear_ns * s + extra_cost. In exact integers if
// both coefficients are integers, otherwise in double from left to right and rounded once. Equal on
// every machine.
//
// Throws std::invalid_argument, naming the sequence, for a length outside 1 to 2^31-1, a negative
// extra cost, and a cost or a total above 2^62.
[[nodiscard]] Nanoseconds sequence_cost(const CostModel& model, Tokens length,
                                        Nanoseconds extra_cost = 0);
[[nodiscard]] std::vector<Nanoseconds> sequence_costs(const CostModel& model, const Batch& batch);

// The same without a word: none above 2^62. Needs a length and an extra cost that are valid.
[[nodiscard]] std::optional<Nanoseconds> find_sequence_cost(const CostModel& model, Tokens length,
                                                            Nanoseconds extra_cost);

// Consecutive ranks.
struct RankRange {
  std::int64_t first = 0;
  std::int64_t size = 1;

  bool operator==(const RankRange&) const = default;
};

// The link of a group: the first one with a block that holds all of its ranks. None if there is no
// such link or the size does not divide what it must: the group is not admissible. One rank, and an
// exchange of kind `none` without links, has a link that is free.
[[nodiscard]] std::optional<ContextLink> find_link(const ContextCost& context, RankRange ranks);

// What a sequence costs each rank of a group, with its traffic but without latency; none if the
// group is not admissible. On one rank equal to the above, which see for what is thrown.
[[nodiscard]] std::optional<Nanoseconds> find_sequence_cost(const CostModel& model,
                                                            const ContextCost& context,
                                                            RankRange ranks, Tokens length,
                                                            Nanoseconds extra_cost = 0);

// The same for a group of several ranks whose link is known.
[[nodiscard]] Nanoseconds sequence_cost_over(const CostModel& model, const ContextCost& context,
                                             const ContextLink& link, std::int64_t num_ranks,
                                             Tokens length, Nanoseconds extra_cost = 0);

// What a micro-batch costs besides its sequences: on any group, and of a link if it has several
// ranks.
[[nodiscard]] Nanoseconds microbatch_cost(const CostModel& model);
[[nodiscard]] Nanoseconds link_latency(const ContextLink& link);

// What a token of a sequence costs for traffic in a group of `size` ranks on a link, nanoseconds.
[[nodiscard]] double token_traffic(const ContextCost& context, const ContextLink& link,
                                   std::int64_t size);

}  // namespace isochron
