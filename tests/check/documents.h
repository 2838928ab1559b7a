#pragma once

#include <string>

#include "isochron/core/json.h"

// Valid results, written by hand, for tests that spoil them.

namespace isochron {

// Two ranks, no condition: 5+3+4 against 2+6+4.
inline Json plain_balance() {
  return Json::parse(R"({
    "schema": "isochron.balance.v1", "status": "optimal", "reason": "", "ranks": 2,
    "max_cost": 12, "mean_cost": 12.0, "lower_bound": 12,
    "sequences_of_rank": [[0, 1, 2], [3, 4, 5]],
    "options": {"equal_count": false, "keep_groups": "none", "minibatch": 0, "capacity": 0,
                "order": "index", "max_work": null},
    "cost": {"name": "tokens", "quadratic_ns": 0.0, "linear_ns": 1.0, "microbatch_ns": 0.0,
             "forward_share": 0.5, "context": {"kind": "none", "bytes_per_token": 0.0,
             "divides": 0, "links": [], "overlap": 0.0}, "activation_bytes_per_token": 0.0},
    "lengths": [5, 3, 4, 2, 6, 4]})");
}

// Two ranks and two mini-batches of four rows, groups kept, every option at work. Costs are
// 2*length + extra: 10 20 30 40 | 4 8 12 17; groups a 40, b 60 | c 12, d 29.
inline Json rich_balance() {
  Json json = plain_balance();
  json["status"] = "optimal";
  json["max_cost"] = 89;
  json["mean_cost"] = 70.5;
  json["lower_bound"] = 89;
  json["sequences_of_rank"] = Json::parse("[[0, 2, 4, 5], [1, 3, 6, 7]]");
  json["options"] = Json::parse(R"({"equal_count": true, "keep_groups": "rank", "minibatch": 4,
    "capacity": 30, "order": "small_ends", "max_work": 1000})");
  json["cost"]["linear_ns"] = 2.0;
  json["lengths"] = Json::parse("[5, 10, 15, 20, 2, 4, 6, 8]");
  json["group"] = Json::parse(R"(["a", "b", "a", "b", "c", "c", "d", "d"])");
  json["extra_cost_ns"] = Json::parse("[0, 0, 0, 0, 0, 0, 0, 1]");
  return json;
}

// No rank holds the sequence of 20 tokens.
inline Json infeasible_balance() {
  Json json = rich_balance();
  json["status"] = "infeasible";
  json["reason"] = "group \"b\" has 30 tokens, the capacity is 29";
  json["max_cost"] = 0;
  json["mean_cost"] = 0.0;
  json["lower_bound"] = 0;
  json["sequences_of_rank"] = Json::array();
  json["options"]["capacity"] = 29;
  return json;
}

// Capacity 10: 5+3, 4+6, 2+4.
inline Json plain_packing() {
  return Json::parse(R"({
    "schema": "isochron.pack.v1", "status": "feasible", "reason": "", "count": 3,
    "lower_bound": 3, "max_tokens": 10, "max_cost": 10, "max_cost_bound": 8,
    "microbatches": [[0, 1], [2, 4], [3, 5]], "oversized": [], "dropped": [],
    "options": {"capacity": 10, "multiple": 1, "min_count": 0, "count": null, "max_sequences": 0,
                "oversize": "error", "short": "empty", "keep_groups": "none", "order": "index",
                "max_work": null},
    "cost": {"name": "tokens", "quadratic_ns": 0.0, "linear_ns": 1.0, "microbatch_ns": 7.0,
             "forward_share": 0.5, "context": {"kind": "none", "bytes_per_token": 0.0,
             "divides": 0, "links": [], "overlap": 0.0}, "activation_bytes_per_token": 0.0},
    "lengths": [5, 3, 4, 2, 6, 4]})");
}

// Groups kept and one over the capacity; a multiple of 4 with one empty. Tokens: a 9, b 12, c 4.
inline Json rich_packing() {
  Json json = plain_packing();
  json["status"] = "optimal";
  json["count"] = 4;
  json["lower_bound"] = 4;
  json["max_tokens"] = 12;
  json["max_cost"] = 24;
  json["max_cost_bound"] = 24;
  json["microbatches"] = Json::parse("[[5], [1, 4, 6], [0, 2, 3], []]");
  json["oversized"] = Json::parse("[1, 4, 6]");
  json["options"] = Json::parse(R"({"capacity": 10, "multiple": 4, "min_count": 2, "count": null,
    "max_sequences": 3, "oversize": "alone", "short": "empty", "keep_groups": "microbatch",
    "order": "small_ends", "max_work": 1000})");
  json["cost"]["linear_ns"] = 2.0;
  json["lengths"] = Json::parse("[5, 3, 3, 1, 6, 4, 3]");
  json["group"] = Json::parse(R"(["a", "b", "a", "a", "b", "c", "b"])");
  return json;
}

// Two at a time: the last group goes, and with it a sequence in the middle of the batch.
inline Json dropping_packing() {
  Json json = plain_packing();
  json["status"] = "optimal";
  json["count"] = 2;
  json["lower_bound"] = 2;
  json["max_tokens"] = 10;
  json["max_cost"] = 10;
  json["max_cost_bound"] = 10;
  json["microbatches"] = Json::parse("[[0, 3], [1]]");
  json["dropped"] = Json::parse("[2, 4]");
  json["options"]["multiple"] = 2;
  json["options"]["short"] = "drop";
  json["options"]["keep_groups"] = "microbatch";
  json["lengths"] = Json::parse("[5, 9, 4, 5, 6]");
  json["group"] = Json::parse(R"(["a", "b", "c", "a", "c"])");
  return json;
}

inline Json infeasible_packing() {
  Json json = plain_packing();
  json["status"] = "infeasible";
  json["reason"] = "sequence 4 has 6 tokens, the capacity is 5";
  json["count"] = 0;
  json["lower_bound"] = 0;
  json["max_tokens"] = 0;
  json["max_cost"] = 0;
  json["max_cost_bound"] = 0;
  json["microbatches"] = Json::array();
  json["options"]["capacity"] = 5;
  return json;
}

}  // namespace isochron
