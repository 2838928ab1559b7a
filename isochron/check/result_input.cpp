#include "isochron/check/result_input.h"

#include <unordered_map>

#include "isochron/check/cost_rule.h"

namespace isochron::check {

namespace {

const Json& read_list(const Json& document, std::string_view key) {
  const Json& list = member(document, where, key);
  require(list.is_array(), where, "{} is {}, must be a list", key, shown(list));
  return list;
}

// Builds the name of an element only for the message, since lists have a million of them.
std::vector<std::int64_t> integers_of(const Json& list, std::string_view name, std::int64_t low,
                                      std::int64_t high) {
  if (!list.is_array()) reject(where, "{} is {}, must be a list", name, shown(list));
  std::vector<std::int64_t> values;
  values.reserve(list.size());
  for (const Json& element : list) {
    const bool is_known = element.is_number_unsigned() &&
                          element.get<std::uint64_t>() <= static_cast<std::uint64_t>(high) &&
                          element.get<std::int64_t>() >= low;
    values.push_back(is_known ? element.get<std::int64_t>()
                              : integer_of(element, where,
                                           fmt::format("{}[{}]", name, values.size()), low, high));
  }
  return values;
}

std::vector<std::int64_t> read_input_integers(const Json& document, std::string_view key,
                                              std::int64_t low, std::int64_t high) {
  return integers_of(member(document, where, key), key, low, high);
}

const std::string& group_name(const Batch& batch, std::size_t sequence) {
  return batch.group_names[batch.groups[sequence].index()];
}

Violation find_integer_difference(std::span<const std::int64_t> found,
                                  std::span<const std::int64_t> wanted, std::string_view name) {
  if (found.empty() && wanted.empty()) return std::nullopt;
  if (found.empty()) return fmt::format("the result has no {}, the expected batch has", name);
  if (wanted.empty()) return fmt::format("the result has {}, the expected batch has none", name);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (found[i] == wanted[i]) continue;
    return fmt::format("{}[{}] is {}, the expected batch has {}", name, i, found[i], wanted[i]);
  }
  return std::nullopt;
}

}  // namespace

ResultInput read_input(const Json& document) {
  ResultInput input;
  Batch& batch = input.batch;
  batch.lengths = read_input_integers(document, "lengths", 1, max_length);
  const std::size_t count = batch.lengths.size();
  require(count >= 1 && count <= static_cast<std::size_t>(max_length), where,
          "lengths has {} elements, must have 1 to {}", count, max_length);
  if (document.contains("extra_cost_ns")) {
    batch.extra_cost_ns = read_input_integers(document, "extra_cost_ns", 0, max_total_cost);
    require(batch.extra_cost_ns.size() == count, where,
            "extra_cost_ns has {} elements, must have {} as lengths", batch.extra_cost_ns.size(),
            count);
  }
  if (document.contains("group")) {
    const Json& names = read_list(document, "group");
    require(names.size() == count, where, "group has {} elements, must have {} as lengths",
            names.size(), count);
    std::unordered_map<std::string_view, PromptGroupId> id_of_name;
    for (const Json& name : names) {
      if (!name.is_string()) {
        (void)text_of(name, where, fmt::format("group[{}]", batch.groups.size()));
      }
      const PromptGroupId fresh(static_cast<std::int32_t>(batch.group_names.size()));
      const auto& text = name.get_ref<const std::string&>();
      const auto [entry, is_new] = id_of_name.try_emplace(text, fresh);
      if (is_new) batch.group_names.push_back(text);
      batch.groups.push_back(entry->second);
    }
  }

  const CostRule rule = cost_rule_from_json(member(document, where, "cost"));
  Nanoseconds total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Nanoseconds extra = batch.extra_cost_ns.empty() ? 0 : batch.extra_cost_ns[i];
    const auto cost = find_cost(rule, batch.lengths[i], extra);
    require(cost.has_value(), where, "the cost of sequence {} is above 2^62", i);
    require(total <= max_total_cost - *cost, where,
            "the costs up to sequence {} add up to more than 2^62", i);
    total += *cost;
    input.costs.push_back(*cost);
  }
  return input;
}

Violation find_difference(const Batch& batch, const Batch& expected) {
  if (batch.lengths.size() != expected.lengths.size()) {
    return fmt::format("the result is about {} sequences, the expected batch has {}",
                       batch.lengths.size(), expected.lengths.size());
  }
  if (auto found = find_integer_difference(batch.lengths, expected.lengths, "lengths")) {
    return found;
  }
  if (batch.groups.empty() != expected.groups.empty()) {
    return batch.groups.empty() ? "the result has no group, the expected batch has"
                                : "the result has group, the expected batch has none";
  }
  for (std::size_t i = 0; i < batch.groups.size(); ++i) {
    const std::string& found = group_name(batch, i);
    const std::string& wanted = group_name(expected, i);
    if (found == wanted) continue;
    return fmt::format("group[{}] is {}, the expected batch has {}", i, shown(found),
                       shown(wanted));
  }
  return find_integer_difference(batch.extra_cost_ns, expected.extra_cost_ns, "extra_cost_ns");
}

std::int64_t read_integer(const Json& document, std::string_view key) {
  return integer_of(member(document, where, key), where, key, INT64_MIN, INT64_MAX);
}

std::vector<std::int64_t> read_ids(const Json& document, std::string_view key) {
  return integers_of(member(document, where, key), key, INT64_MIN, INT64_MAX);
}

std::vector<std::vector<std::int64_t>> read_id_lists(const Json& document, std::string_view key) {
  std::vector<std::vector<std::int64_t>> lists;
  for (const Json& list : read_list(document, key)) {
    lists.push_back(
        integers_of(list, fmt::format("{}[{}]", key, lists.size()), INT64_MIN, INT64_MAX));
  }
  return lists;
}

Violation find_reason_violation(Status status, std::string_view reason) {
  return broken_unless(has_answer(status) == reason.empty(),
                       "status is {}, so reason must {}be empty", name_of(status),
                       has_answer(status) ? "" : "not ");
}

Units single_units(const ResultInput& input) {
  Units units{.name = "sequence"};
  for (std::size_t i = 0; i < input.size(); ++i) units.of_sequence.push_back(i);
  units.tokens = input.batch.lengths;
  units.costs = input.costs;
  units.num_sequences.assign(input.size(), 1);
  return units;
}

Units group_units(const ResultInput& input) {
  const std::size_t count = input.batch.group_names.size();
  Units units{.name = "group"};
  units.tokens.resize(count);
  units.costs.resize(count);
  units.num_sequences.resize(count);
  for (std::size_t i = 0; i < input.size(); ++i) {
    const std::size_t group = input.batch.groups[i].index();
    units.of_sequence.push_back(group);
    units.tokens[group] += input.batch.lengths[i];
    units.costs[group] += input.costs[i];
    ++units.num_sequences[group];
  }
  return units;
}

std::string unit_text(const ResultInput& input, const Units& units, std::size_t unit) {
  if (units.name == "sequence") return fmt::format("sequence {}", unit);
  return fmt::format("group {}", shown(input.batch.group_names[unit]));
}

Violation Places::place(std::span<const std::int64_t> ids, std::string path) {
  paths_.push_back(std::move(path));
  for (const std::int64_t id : ids) {
    if (id < 0 || id >= static_cast<std::int64_t>(list_of_.size())) {
      return fmt::format("{} names sequence {}, must be from 0 to {}", paths_.back(), id,
                         list_of_.size() - 1);
    }
    std::size_t& list = list_of_[static_cast<std::size_t>(id)];
    if (list != nowhere) {
      return fmt::format("sequence {} stands in {} and in {}, must stand in one place", id,
                         paths_[list], paths_.back());
    }
    list = paths_.size() - 1;
  }
  return std::nullopt;
}

Violation Places::find_missing() const {
  const auto missing = std::find(list_of_.begin(), list_of_.end(), nowhere);
  if (missing == list_of_.end()) return std::nullopt;
  return fmt::format("sequence {} stands nowhere", missing - list_of_.begin());
}

}  // namespace isochron::check
