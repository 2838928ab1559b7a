#include "isochron/step/step_plan.h"

#include <limits>
#include <map>

#include "isochron/core/batch_json.h"
#include "isochron/core/json.h"
#include "isochron/core/require.h"
#include "isochron/cost/cost_json.h"

namespace isochron {

namespace {

constexpr std::string_view where = "plan";
constexpr std::string_view schema = "isochron.plan.v1";
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

Json pipeline_to_json(const PipelineShape& shape) {
  Json json;
  json["stages"] = shape.stages;
  json["virtual"] = shape.virtual_;
  json["group"] = shape.group;
  if (shape.transfer_ns != 0) json["transfer_ns"] = shape.transfer_ns;
  if (!shape.shares.empty()) json["shares"] = shape.shares;
  return json;
}

std::vector<double> numbers_of(const Json& list, std::string_view name) {
  require(list.is_array(), where, "{} is {}, must be a list of numbers", name, shown(list));
  std::vector<double> numbers;
  numbers.reserve(list.size());
  for (const Json& value : list) numbers.push_back(number_of(value, where, name));
  return numbers;
}

std::vector<std::int64_t> integers_of(const Json& list, std::string_view name, std::int64_t low,
                                      std::int64_t high) {
  require(list.is_array(), where, "{} is {}, must be a list of integers", name, shown(list));
  std::vector<std::int64_t> integers;
  integers.reserve(list.size());
  for (const Json& value : list) integers.push_back(integer_of(value, where, name, low, high));
  return integers;
}

PipelineShape pipeline_from_json(const Json& json) {
  require_object(json, where, "pipeline");
  static const std::vector<std::string> keys = {"stages", "virtual", "group", "transfer_ns",
                                                "shares"};
  require_known_keys(json, where, keys);
  const auto count = [&](const char* key) {
    return static_cast<std::int32_t>(integer_of(member(json, where, key), where, key, 1, 1 << 20));
  };
  PipelineShape shape;
  shape.stages = count("stages");
  shape.virtual_ = count("virtual");
  shape.group = count("group");
  if (json.contains("transfer_ns")) {
    shape.transfer_ns = integer_of(json["transfer_ns"], where, "transfer_ns", 0, max_total_cost);
  }
  if (json.contains("shares")) shape.shares = numbers_of(json["shares"], "shares");
  return shape;
}

Json group_to_json(const ContextGroup& group) {
  Json json;
  Json ranks = Json::array();
  for (std::int64_t i = 0; i < group.ranks.size; ++i) ranks.push_back(group.ranks.first + i);
  json["ranks"] = std::move(ranks);
  json["sequences"] = group.sequences;
  if (group.exchange) json["exchange"] = name_of(*group.exchange);
  return json;
}

std::vector<SequenceId> ids_of(const Json& list, std::string_view name, std::int64_t num_ids) {
  std::vector<SequenceId> ids;
  for (const std::int64_t id : integers_of(list, name, 0, num_ids - 1)) {
    ids.emplace_back(static_cast<std::int32_t>(id));
  }
  return ids;
}

ContextGroup group_from_json(const Json& json, std::int64_t num_ranks, std::int64_t num_ids) {
  require_object(json, where, "a group");
  static const std::vector<std::string> keys = {"ranks", "sequences", "exchange"};
  require_known_keys(json, where, keys);
  const auto ranks = integers_of(member(json, where, "ranks"), "a rank", 0, num_ranks - 1);
  require(!ranks.empty(), where, "a group has no ranks, must have at least one");
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    require(ranks[i] == ranks[i - 1] + 1, where,
            "a group has rank {} after rank {}, must be consecutive and ascending", ranks[i],
            ranks[i - 1]);
  }
  ContextGroup group;
  group.ranks = {.first = ranks.front(), .size = static_cast<std::int64_t>(ranks.size())};
  group.sequences = ids_of(member(json, where, "sequences"), "a sequence", num_ids);
  if (json.contains("exchange")) {
    group.exchange = field_from_json<ContextKind>(json["exchange"], where, "exchange");
  }
  return group;
}

Batch batch_from_json(const Json& json) {
  Batch batch;
  batch.lengths = integers_of(member(json, where, "lengths"), "a length", 1, max_length);
  const auto num_sequences = batch.lengths.size();
  const auto require_size = [&](std::string_view key, std::size_t size) {
    require(size == num_sequences, where,
            "{} has {} entries, must be one for each of the {} lengths", key, size, num_sequences);
  };
  if (json.contains("extra_cost_ns")) {
    batch.extra_cost_ns = integers_of(json["extra_cost_ns"], "extra_cost_ns", 0, max_total_cost);
    require_size("extra_cost_ns", batch.extra_cost_ns.size());
  }
  if (json.contains("group")) {
    const Json& names = json["group"];
    require(names.is_array(), where, "group is {}, must be a list of names", shown(names));
    require_size("group", names.size());
    std::map<std::string, PromptGroupId> numbers;
    for (const Json& name : names) {
      const std::string text = text_of(name, where, "group");
      const auto [place, is_fresh] = numbers.try_emplace(
          text, PromptGroupId(static_cast<std::int32_t>(batch.group_names.size())));
      if (is_fresh) batch.group_names.push_back(text);
      batch.groups.push_back(place->second);
    }
  }
  return batch;
}

// Everything but the hash.
Json content_of(const StepPlan& plan) {
  Json json;
  json["schema"] = schema;
  json["status"] = name_of(plan.status);
  json["reason"] = plan.reason;
  json["ranks"] = plan.topology.ranks;
  json["capacity"] = plan.topology.capacity;
  json["pipeline"] = pipeline_to_json(plan.topology.pipeline);
  if (!plan.topology.rank_speed.empty()) json["rank_speed"] = plan.topology.rank_speed;
  json["options"] = options_to_json(plan.options);
  json["cost"] = cost_to_json(plan.cost);
  add_batch(plan.batch, json);
  json["first_sequence"] = plan.first_sequence;
  json["padding_rows"] = plan.padding_rows;
  json["predicted_step_ns"] = plan.predicted_step_ns;
  json["lower_bound_ns"] = plan.lower_bound_ns;
  json["imbalance"] = plan.imbalance;
  json["peak_activation_bytes"] = plan.peak_activation_bytes;
  Json slots = Json::array();
  for (const Slot& slot : plan.microbatches) {
    Json groups = Json::array();
    for (const ContextGroup& group : slot) groups.push_back(group_to_json(group));
    slots.push_back(std::move(groups));
  }
  json["microbatches"] = std::move(slots);
  json["oversized"] = plan.oversized;
  json["dropped"] = plan.dropped;
  return json;
}

std::uint64_t fnv1a(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x100000001b3;
  }
  return hash;
}

}  // namespace

std::vector<Tokens> all_lengths(const StepPlan& plan) {
  std::vector<Tokens> lengths = plan.batch.lengths;
  lengths.resize(lengths.size() + static_cast<std::size_t>(plan.padding_rows), padding_row_length);
  return lengths;
}

Tokens padded_length(Tokens length, std::int64_t ranks, std::int32_t tensor_parallel) {
  const std::int64_t multiple = ranks == 1 ? tensor_parallel : 2 * ranks * tensor_parallel;
  return (length + multiple - 1) / multiple * multiple;
}

std::uint64_t plan_hash(const StepPlan& plan) { return fnv1a(content_of(plan).dump()); }

std::string to_json(const StepPlan& plan) {
  Json json = content_of(plan);
  json["hash"] = fmt::format("{:016x}", fnv1a(json.dump()));
  return json.dump() + "\n";
}

StepPlan step_plan_from_json(std::string_view json_text, PlanHash hash) {
  Json json = parse_json(json_text, where);
  require_object(json, where, "the plan");
  const std::string kind = text_of(member(json, where, "schema"), where, "schema");
  require(kind == schema, where, "schema is \"{}\", must be {}", kind, schema);
  static const std::vector<std::string> keys = {"schema",
                                                "status",
                                                "reason",
                                                "ranks",
                                                "capacity",
                                                "pipeline",
                                                "rank_speed",
                                                "options",
                                                "cost",
                                                "lengths",
                                                "group",
                                                "extra_cost_ns",
                                                "first_sequence",
                                                "padding_rows",
                                                "predicted_step_ns",
                                                "lower_bound_ns",
                                                "imbalance",
                                                "peak_activation_bytes",
                                                "microbatches",
                                                "oversized",
                                                "dropped",
                                                "hash"};
  require_known_keys(json, where, keys);
  const auto integer = [&](std::string_view key, std::int64_t low, std::int64_t high) {
    return integer_of(member(json, where, key), where, key, low, high);
  };

  StepPlan plan;
  plan.status = field_from_json<Status>(member(json, where, "status"), where, "status");
  plan.reason = text_of(member(json, where, "reason"), where, "reason");
  plan.topology.ranks = static_cast<std::int32_t>(integer("ranks", 1, max_ranks));
  plan.topology.capacity = integer("capacity", 1, max_total_cost);
  plan.topology.pipeline = pipeline_from_json(member(json, where, "pipeline"));
  if (json.contains("rank_speed")) {
    plan.topology.rank_speed = numbers_of(json["rank_speed"], "rank_speed");
  }
  plan.options = options_from_json<PlanOptions>(member(json, where, "options"), where);
  plan.options = resolved(plan.options, plan.topology);
  plan.cost = cost_from_json(member(json, where, "cost"));
  plan.batch = batch_from_json(json);
  plan.first_sequence = integer("first_sequence", 0, largest);
  plan.padding_rows = static_cast<std::int32_t>(integer(
      "padding_rows", 0, max_length - static_cast<std::int64_t>(plan.batch.lengths.size())));
  const std::int64_t num_ids =
      static_cast<std::int64_t>(plan.batch.lengths.size()) + plan.padding_rows;
  plan.predicted_step_ns = integer("predicted_step_ns", 0, largest);
  plan.lower_bound_ns = integer("lower_bound_ns", 0, largest);
  plan.imbalance = number_of(member(json, where, "imbalance"), where, "imbalance");
  plan.peak_activation_bytes = integers_of(member(json, where, "peak_activation_bytes"),
                                           "peak_activation_bytes", 0, largest);
  const Json& slots = member(json, where, "microbatches");
  require(slots.is_array(), where, "microbatches is {}, must be a list", shown(slots));
  for (const Json& groups : slots) {
    require(groups.is_array(), where, "a slot is {}, must be a list of groups", shown(groups));
    Slot& slot = plan.microbatches.emplace_back();
    for (const Json& group : groups) {
      slot.push_back(group_from_json(group, plan.topology.ranks, num_ids));
    }
  }
  plan.oversized = ids_of(member(json, where, "oversized"), "oversized", num_ids);
  plan.dropped = ids_of(member(json, where, "dropped"), "dropped", num_ids);

  const std::string given = text_of(member(json, where, "hash"), where, "hash");
  if (hash == PlanHash::ignored) return plan;
  json.erase("hash");
  const std::string expected = fmt::format("{:016x}", fnv1a(json.dump()));
  require(given == expected, where, "hash is \"{}\", must be {} for this content", given, expected);
  return plan;
}

}  // namespace isochron
