// The arithmetic of costs (DESIGN 5.2). Plans are equal on every machine because each cost is
// evaluated left to right as written, in double without contraction, and rounded once; everything
// after that is an integer. With integer coefficients and one rank it is an integer from the start.

#include "isochron/cost/cost_model.h"

#include <cmath>
#include <limits>

#include "isochron/core/int128.h"
#include "isochron/core/require.h"
#include "isochron/core/round.h"

namespace isochron {

namespace {

constexpr std::string_view where = "cost";
constexpr double max_cost = 0x1p62;  // max_total_cost

constexpr ContextLink free_link = {.max_ranks = std::numeric_limits<std::int64_t>::max(),
                                   .gb_per_s = std::numeric_limits<double>::infinity(),
                                   .latency_us = 0};

bool is_integer(double value) { return std::trunc(value) == value; }

bool has_integer_coefficients(const CostModel& model) {
  return is_integer(model.quadratic_ns) && is_integer(model.linear_ns);
}

// None above 2^62, and for what only an invalid model gives.
std::optional<Nanoseconds> find_rounded(double cost) {
  if (!(cost >= 0 && cost <= max_cost)) return std::nullopt;
  return rounded(cost);
}

double compute_cost(const CostModel& model, Tokens length, Nanoseconds extra_cost) {
  const auto s = static_cast<double>(length);
  return model.quadratic_ns * s * s + model.linear_ns * s + static_cast<double>(extra_cost);
}

std::optional<Nanoseconds> find_integer_cost(const CostModel& model, Tokens length,
                                             Nanoseconds extra_cost) {
  // A length is at least 1, so no coefficient may exceed the cost; then all fits 128 bits.
  if (model.quadratic_ns > max_cost || model.linear_ns > max_cost) return std::nullopt;
  const auto quadratic = static_cast<Int128>(model.quadratic_ns);
  const auto linear = static_cast<Int128>(model.linear_ns);
  const Int128 cost = quadratic * length * length + linear * length + extra_cost;
  if (cost < 0 || cost > max_total_cost) return std::nullopt;
  return static_cast<Nanoseconds>(cost);
}

void require_sequence(Tokens length, Nanoseconds extra_cost) {
  require(length >= 1 && length <= max_length, where,
          "the length is {}, must be an integer from 1 to {}", length, max_length);
  require(extra_cost >= 0 && extra_cost <= max_total_cost, where,
          "extra_cost_ns is {}, must be an integer from 0 to {}", extra_cost, max_total_cost);
}

Nanoseconds required_cost(std::optional<Nanoseconds> cost, Tokens length) {
  require(cost.has_value(), where, "a sequence of {} tokens costs more than 2^62", length);
  return *cost;
}

double traffic(const ContextCost& context, const ContextLink& link, double s, double c) {
  double bytes = 0;
  switch (context.kind) {
    case ContextKind::none:
      return 0;
    case ContextKind::all_gather_kv:
      bytes = context.bytes_per_token * s * (c - 1) / c;
      break;
    case ContextKind::all_to_all:
      bytes = context.bytes_per_token * s * (c - 1) / (c * c);
      break;
  }
  return (1 - context.overlap) * bytes / link.gb_per_s;
}

void require_range(const std::string& name, double value, double high) {
  require(value >= 0 && value <= high, where, "{} is {}, must be a number from 0 to {}", name,
          value, high);
}

void require_not_negative(const std::string& name, double value) {
  require(value >= 0 && std::isfinite(value), where,
          "{} is {}, must be a finite number of at least 0", name, value);
}

void require_valid(const ContextCost& context, const std::string& name) {
  require_not_negative(name + ".bytes_per_token", context.bytes_per_token);
  require_range(name + ".overlap", context.overlap, 1);
  require(context.divides >= 0, where, "{}.divides is {}, must be at least 0", name,
          context.divides);
  require(context.divides == 0 || context.kind == ContextKind::all_to_all, where,
          "{}.divides is {}, must be 0 unless the kind is all_to_all", name, context.divides);
  std::int64_t previous = 0;
  for (std::size_t i = 0; i < context.links.size(); ++i) {
    const ContextLink& link = context.links[i];
    const std::string link_name = fmt::format("{}.links[{}]", name, i);
    require(link.max_ranks > previous, where, "{}.max_ranks is {}, must be above {}", link_name,
            link.max_ranks, previous);
    require(link.gb_per_s > 0 && std::isfinite(link.gb_per_s), where,
            "{}.gb_per_s is {}, must be a finite number above 0", link_name, link.gb_per_s);
    require_range(link_name + ".latency_us", link.latency_us, max_cost / 1000);
    previous = link.max_ranks;
  }
}

}  // namespace

void require_valid(const CostModel& model) {
  require_not_negative("quadratic_ns", model.quadratic_ns);
  require_not_negative("linear_ns", model.linear_ns);
  require_range("microbatch_ns", model.microbatch_ns, max_cost);
  require(model.forward_share > 0 && model.forward_share < 1, where,
          "forward_share is {}, must be a number between 0 and 1", model.forward_share);
  require_not_negative("activation_bytes_per_token", model.activation_bytes_per_token);
  for (std::size_t i = 0; i < model.context.size(); ++i) {
    require_valid(model.context[i],
                  model.context.size() == 1 ? "context" : fmt::format("context[{}]", i));
  }
}

std::optional<Nanoseconds> find_sequence_cost(const CostModel& model, Tokens length,
                                              Nanoseconds extra_cost) {
  return has_integer_coefficients(model) ? find_integer_cost(model, length, extra_cost)
                                         : find_rounded(compute_cost(model, length, extra_cost));
}

Nanoseconds sequence_cost(const CostModel& model, Tokens length, Nanoseconds extra_cost) {
  require_sequence(length, extra_cost);
  return required_cost(find_sequence_cost(model, length, extra_cost), length);
}

std::vector<Nanoseconds> sequence_costs(const CostModel& model, const Batch& batch) {
  require_valid(model);
  const std::size_t count = batch.lengths.size();
  const bool has_extra = !batch.extra_cost_ns.empty();
  require(!has_extra || batch.extra_cost_ns.size() == count, where,
          "extra_cost_ns has {} values, must have {} as there are lengths",
          batch.extra_cost_ns.size(), count);
  std::vector<Nanoseconds> costs;
  costs.reserve(count);
  Nanoseconds total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Tokens length = batch.lengths[i];
    const Nanoseconds extra = has_extra ? batch.extra_cost_ns[i] : 0;
    require(length >= 1 && length <= max_length, where,
            "lengths[{}] is {}, must be an integer from 1 to {}", i, length, max_length);
    require(extra >= 0 && extra <= max_total_cost, where,
            "extra_cost_ns[{}] is {}, must be an integer from 0 to {}", i, extra, max_total_cost);
    const auto cost = find_sequence_cost(model, length, extra);
    require(cost.has_value(), where, "sequence {} of {} tokens costs more than 2^62", i, length);
    total += *cost;
    require(total <= max_total_cost, where, "the costs up to sequence {} add up to more than 2^62",
            i);
    costs.push_back(*cost);
  }
  return costs;
}

std::optional<ContextLink> find_link(const ContextCost& context, RankRange ranks) {
  require(ranks.first >= 0 && ranks.size >= 1, where,
          "the group has {} ranks from rank {}, must have at least 1 from at least 0", ranks.size,
          ranks.first);
  if (ranks.size == 1) return free_link;
  if (context.divides != 0 && context.divides % ranks.size != 0) return std::nullopt;
  if (context.kind == ContextKind::none && context.links.empty()) return free_link;
  const std::int64_t last = ranks.first + ranks.size - 1;
  for (const ContextLink& link : context.links) {
    if (ranks.first / link.max_ranks == last / link.max_ranks) return link;
  }
  return std::nullopt;
}

std::optional<Nanoseconds> find_sequence_cost(const CostModel& model, const ContextCost& context,
                                              RankRange ranks, Tokens length,
                                              Nanoseconds extra_cost) {
  const auto link = find_link(context, ranks);
  if (!link) return std::nullopt;
  if (ranks.size == 1) return sequence_cost(model, length, extra_cost);
  return sequence_cost_over(model, context, *link, ranks.size, length, extra_cost);
}

Nanoseconds sequence_cost_over(const CostModel& model, const ContextCost& context,
                               const ContextLink& link, std::int64_t num_ranks, Tokens length,
                               Nanoseconds extra_cost) {
  require_sequence(length, extra_cost);
  const auto s = static_cast<double>(length);
  const auto c = static_cast<double>(num_ranks);
  const double cost = compute_cost(model, length, extra_cost) / c + traffic(context, link, s, c);
  return required_cost(find_rounded(cost), length);
}

Nanoseconds microbatch_cost(const CostModel& model) { return std::llround(model.microbatch_ns); }

Nanoseconds link_latency(const ContextLink& link) { return std::llround(link.latency_us * 1000); }

double token_traffic(const ContextCost& context, const ContextLink& link, std::int64_t size) {
  return traffic(context, link, 1, static_cast<double>(size));
}

}  // namespace isochron
