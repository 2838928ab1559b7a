// What a sequence costs, worked out without isochron/cost: a mistake that the checker shared with
// the planner it could not find.

#include "isochron/check/cost_rule.h"

#include <cmath>

namespace isochron::check {

namespace {

__extension__ typedef __int128 Int128;

constexpr std::string_view where = "check";

double coefficient(const Json& cost, std::string_view key) {
  const double value = number_of(member(cost, where, key), where, fmt::format("cost.{}", key));
  require(value >= 0, where, "cost.{} is {}, must not be negative", key, value);
  return value;
}

// 2^62 bounds any cost already at one token, and keeps the sum below in 128 bits.
bool is_exact(double value) {
  return value == std::floor(value) && value <= static_cast<double>(max_total_cost);
}

}  // namespace

CostRule cost_rule_from_json(const Json& cost) {
  static const std::vector<std::string> known = {"name",
                                                 "quadratic_ns",
                                                 "linear_ns",
                                                 "microbatch_ns",
                                                 "forward_share",
                                                 "context",
                                                 "activation_bytes_per_token"};
  require_object(cost, where, "cost");
  require_known_keys(cost, where, known);
  if (cost.contains("name")) (void)text_of(cost["name"], where, "cost.name");
  for (const char* key : {"microbatch_ns", "forward_share", "activation_bytes_per_token"}) {
    if (cost.contains(key)) (void)coefficient(cost, key);
  }
  return {.quadratic_ns = coefficient(cost, "quadratic_ns"),
          .linear_ns = coefficient(cost, "linear_ns")};
}

std::optional<Nanoseconds> find_cost(const CostRule& rule, Tokens length, Nanoseconds extra_cost) {
  if (is_exact(rule.quadratic_ns) && is_exact(rule.linear_ns)) {
    const Int128 s = length;
    const Int128 cost = static_cast<Int128>(rule.quadratic_ns) * s * s +
                        static_cast<Int128>(rule.linear_ns) * s + extra_cost;
    if (cost > max_total_cost) return std::nullopt;
    return static_cast<Nanoseconds>(cost);
  }
  const auto s = static_cast<double>(length);
  const double cost =
      rule.quadratic_ns * s * s + rule.linear_ns * s + static_cast<double>(extra_cost);
  if (!(cost <= static_cast<double>(max_total_cost))) return std::nullopt;
  return std::llround(cost);
}

}  // namespace isochron::check
