// The rules of a packing: every sequence in one micro-batch or dropped, the capacity and the counts
// kept, and numbers that follow from the micro-batches. One function per rule; the first that is
// broken speaks.

#include "isochron/check/pack_result.h"

#include <numeric>
#include <tuple>

#include "isochron/check/result_input.h"
#include "isochron/core/order.h"
#include "isochron/core/policy.h"

namespace isochron::check {

namespace {

struct PackAsked {
  Tokens capacity = 0;
  std::int32_t multiple = 1;
  std::int32_t min_count = 0;
  std::optional<std::int32_t> count = {};
  std::int32_t max_sequences = 0;
  Oversize oversize = Oversize::error;
  Short short_ = Short::empty;
  KeepGroups keep_groups = KeepGroups::none;
  Order order = Order::index;
  std::optional<std::int64_t> max_work = {};

  template <class Row>
  static void describe(Row row) {
    using Self = PackAsked;
    row(Field{"capacity", &Self::capacity, ""});
    row(Field{"multiple", &Self::multiple, ""});
    row(Field{"min_count", &Self::min_count, ""});
    row(Field{"count", &Self::count, ""});
    row(Field{"max_sequences", &Self::max_sequences, ""});
    row(Field{"oversize", &Self::oversize, ""});
    row(Field{"short", &Self::short_, ""});
    row(Field{"keep_groups", &Self::keep_groups, ""});
    row(Field{"order", &Self::order, ""});
    row(Field{"max_work", &Self::max_work, ""});
  }
};

using Ids = std::vector<std::int64_t>;

struct PackResult {
  ResultInput input;
  PackAsked asked;
  Units units;  // what is packed: groups if they are kept
  Status status = Status::unknown;
  std::string reason;
  std::int64_t count = 0;
  std::int64_t lower_bound = 0;
  Tokens max_tokens = 0;
  Nanoseconds max_cost = 0;
  Nanoseconds max_cost_bound = 0;
  std::vector<Ids> microbatches;
  Ids oversized;
  Ids dropped;

  [[nodiscard]] std::size_t unit_of(std::int64_t id) const {
    return units.of_sequence[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] Tokens tokens_of(const Ids& ids) const {
    Tokens sum = 0;
    for (const std::int64_t id : ids) sum += input.batch.lengths[static_cast<std::size_t>(id)];
    return sum;
  }
  [[nodiscard]] Nanoseconds cost_of(const Ids& ids) const {
    Nanoseconds sum = 0;
    for (const std::int64_t id : ids) sum += input.costs[static_cast<std::size_t>(id)];
    return sum;
  }
};

PackAsked read_asked(const Json& document) {
  const auto asked = read_options<PackAsked>(document);
  require(asked.capacity >= 1, where, "options.capacity is {}, must be at least 1", asked.capacity);
  require(asked.multiple >= 1, where, "options.multiple is {}, must be at least 1", asked.multiple);
  require(asked.min_count >= 0, where, "options.min_count is {}, must not be negative",
          asked.min_count);
  require(asked.max_sequences >= 0, where, "options.max_sequences is {}, must not be negative",
          asked.max_sequences);
  require(asked.max_work.value_or(0) >= 0, where, "options.max_work is {}, must not be negative",
          asked.max_work.value_or(0));
  require(asked.oversize != Oversize::widen, where,
          "options.oversize is widen, must be error or alone");
  require(asked.keep_groups != KeepGroups::rank, where,
          "options.keep_groups is rank, must be none or microbatch");
  if (asked.count) {
    require(*asked.count >= 1, where, "options.count is {}, must be at least 1", *asked.count);
    require(*asked.count % asked.multiple == 0, where,
            "options.count is {}, must be a multiple of {}", *asked.count, asked.multiple);
    require(*asked.count >= asked.min_count, where,
            "options.count is {}, must be at least min_count {}", *asked.count, asked.min_count);
  }
  return asked;
}

PackResult read_result(const Json& document) {
  static const std::vector<std::string> known = {
      "schema",   "status",         "reason",       "count",        "lower_bound", "max_tokens",
      "max_cost", "max_cost_bound", "microbatches", "oversized",    "dropped",     "options",
      "cost",     "lengths",        "group",        "extra_cost_ns"};
  require_known_keys(document, where, known);
  PackResult result;
  result.asked = read_asked(document);
  result.input = read_input(document);
  const bool is_kept = result.asked.keep_groups == KeepGroups::microbatch;
  require(!is_kept || !result.input.batch.groups.empty(), where,
          "options.keep_groups is microbatch, but \"group\" is missing");
  result.units = is_kept ? group_units(result.input) : single_units(result.input);
  result.status = field_from_json<Status>(member(document, where, "status"), where, "status");
  result.reason = text_of(member(document, where, "reason"), where, "reason");
  result.count = read_integer(document, "count");
  result.lower_bound = read_integer(document, "lower_bound");
  result.max_tokens = read_integer(document, "max_tokens");
  result.max_cost = read_integer(document, "max_cost");
  result.max_cost_bound = read_integer(document, "max_cost_bound");
  result.microbatches = read_id_lists(document, "microbatches");
  result.oversized = read_ids(document, "oversized");
  result.dropped = read_ids(document, "dropped");
  return result;
}

// Whether it is a packing to give every unit a micro-batch of its own.
bool has_plain_packing(const PackResult& result) {
  const PackAsked& asked = result.asked;
  if (asked.count || asked.short_ != Short::empty) return false;
  for (std::size_t unit = 0; unit < result.units.size(); ++unit) {
    if (asked.oversize == Oversize::error && result.units.tokens[unit] > asked.capacity)
      return false;
    if (asked.max_sequences > 0 && result.units.num_sequences[unit] > asked.max_sequences) {
      return false;
    }
  }
  return true;
}

// Without an answer there is nothing to say about one.
Violation find_empty_answer_violation(const PackResult& result) {
  const std::string_view status = name_of(result.status);
  if (has_plain_packing(result)) {
    return fmt::format("status is {}, but every {} fits a micro-batch of its own", status,
                       result.units.name);
  }
  if (!result.microbatches.empty() || !result.oversized.empty() || !result.dropped.empty()) {
    return fmt::format("status is {}, so microbatches, oversized and dropped must be empty",
                       status);
  }
  return broken_unless(result.count == 0 && result.max_tokens == 0 && result.max_cost == 0,
                       "status is {}, so count, max_tokens and max_cost are 0, not {}, {} and {}",
                       status, result.count, result.max_tokens, result.max_cost);
}

Violation find_place_violation(const PackResult& result) {
  Places places(result.input.size());
  for (std::size_t i = 0; i < result.microbatches.size(); ++i) {
    if (auto found = places.place(result.microbatches[i], fmt::format("microbatches[{}]", i))) {
      return found;
    }
  }
  if (auto found = places.place(result.dropped, "dropped")) return found;
  return places.find_missing();
}

Violation find_count_violation(const PackResult& result) {
  const PackAsked& asked = result.asked;
  if (result.count != static_cast<std::int64_t>(result.microbatches.size())) {
    return fmt::format("count is {}, but microbatches has {}", result.count,
                       result.microbatches.size());
  }
  if (asked.count && result.count != *asked.count) {
    return fmt::format("count is {}, must be {}", result.count, *asked.count);
  }
  if (result.count < asked.min_count) {
    return fmt::format("count is {}, must be at least {}", result.count, asked.min_count);
  }
  return broken_unless(result.count % asked.multiple == 0, "count is {}, must be a multiple of {}",
                       result.count, asked.multiple);
}

Violation find_dropped_violation(const PackResult& result) {
  if (result.dropped.empty()) return std::nullopt;
  if (result.asked.short_ != Short::drop) {
    return fmt::format("dropped has {} sequences, but options.short is {}", result.dropped.size(),
                       name_of(result.asked.short_));
  }
  if (!std::is_sorted(result.dropped.begin(), result.dropped.end())) {
    return "dropped is not ascending";
  }
  if (result.dropped.size() == result.input.size()) return "dropped names every sequence";
  std::size_t first = result.units.size();
  for (const std::int64_t id : result.dropped) first = std::min(first, result.unit_of(id));
  for (std::size_t i = 0; i < result.microbatches.size(); ++i) {
    for (const std::int64_t id : result.microbatches[i]) {
      const std::size_t unit = result.unit_of(id);
      if (unit < first) continue;
      return fmt::format("dropped is not a suffix: it begins with {}, but microbatches[{}] has {}",
                         unit_text(result.input, result.units, first), i,
                         unit == first ? fmt::format("sequence {}", id)
                                       : unit_text(result.input, result.units, unit));
    }
  }
  return std::nullopt;
}

Violation find_empty_violation(const PackResult& result) {
  std::int64_t num_empty = 0;
  for (std::size_t i = 0; i < result.microbatches.size(); ++i) {
    if (result.microbatches[i].empty()) {
      ++num_empty;
    } else if (num_empty > 0) {
      return fmt::format("microbatches[{}] is empty, but microbatches[{}] is not", i - 1, i);
    }
  }
  if (num_empty == 0) return std::nullopt;
  if (result.asked.short_ != Short::empty) {
    return fmt::format("{} micro-batches are empty, but options.short is {}", num_empty,
                       name_of(result.asked.short_));
  }
  // Nothing is dropped here, so that all units fill what they can.
  const auto num_units = static_cast<std::int64_t>(result.units.size());
  const std::int64_t needed = std::max<std::int64_t>(0, result.count - num_units);
  return broken_unless(num_empty == needed,
                       "{} of {} micro-batches are empty, with {} {}s it must be {}", num_empty,
                       result.count, num_units, result.units.name, needed);
}

Violation find_group_violation(const PackResult& result) {
  if (result.asked.keep_groups == KeepGroups::none) return std::nullopt;
  constexpr auto nowhere = static_cast<std::size_t>(-1);
  std::vector<std::size_t> microbatch_of(result.units.size(), nowhere);
  for (std::size_t i = 0; i < result.microbatches.size(); ++i) {
    for (const std::int64_t id : result.microbatches[i]) {
      std::size_t& known = microbatch_of[result.unit_of(id)];
      if (known != nowhere && known != i) {
        return fmt::format("{} lies in micro-batches {} and {}, must lie in one",
                           unit_text(result.input, result.units, result.unit_of(id)), known, i);
      }
      known = i;
    }
  }
  return std::nullopt;
}

Violation find_capacity_violation(const PackResult& result) {
  Ids expected;  // sequences of the units over the capacity
  for (std::size_t i = 0; i < result.microbatches.size(); ++i) {
    const Ids& ids = result.microbatches[i];
    const Tokens tokens = result.tokens_of(ids);
    if (tokens <= result.asked.capacity) continue;
    const bool is_alone =
        static_cast<std::int64_t>(ids.size()) == result.units.num_sequences[result.unit_of(ids[0])];
    if (!is_alone || result.asked.oversize != Oversize::alone) {
      return fmt::format("micro-batch {} holds {} tokens, the capacity is {}", i, tokens,
                         result.asked.capacity);
    }
    expected.insert(expected.end(), ids.begin(), ids.end());
  }
  std::sort(expected.begin(), expected.end());
  for (std::size_t i = 0; i < std::max(expected.size(), result.oversized.size()); ++i) {
    if (i >= expected.size() ||
        (i < result.oversized.size() && result.oversized[i] < expected[i])) {
      return fmt::format("oversized[{}] is {}, which does not stand alone over the capacity", i,
                         result.oversized[i]);
    }
    if (i >= result.oversized.size() || result.oversized[i] != expected[i]) {
      return fmt::format("oversized must have {} at place {}", expected[i], i);
    }
  }
  return std::nullopt;
}

Violation find_max_sequences_violation(const PackResult& result) {
  if (result.asked.max_sequences == 0) return std::nullopt;
  for (std::size_t i = 0; i < result.microbatches.size(); ++i) {
    const auto size = static_cast<std::int64_t>(result.microbatches[i].size());
    if (size > result.asked.max_sequences) {
      return fmt::format("micro-batch {} holds {} sequences, options.max_sequences is {}", i, size,
                         result.asked.max_sequences);
    }
  }
  return std::nullopt;
}

Violation find_order_violation(const PackResult& result) {
  using Key = std::tuple<Nanoseconds, std::int64_t, std::size_t>;  // what decides, first id, place
  std::vector<Key> wanted;
  for (std::size_t i = 0; i < result.microbatches.size(); ++i) {
    const Ids& ids = result.microbatches[i];
    if (ids.empty()) break;  // those stand last
    if (!std::is_sorted(ids.begin(), ids.end())) {
      return fmt::format("microbatches[{}] is not ascending", i);
    }
    const bool is_by_cost = result.asked.order == Order::small_ends;
    wanted.emplace_back(is_by_cost ? result.cost_of(ids) : 0, ids[0], i);
  }
  if (result.asked.order == Order::small_ends) {
    wanted = small_at_both_ends(std::move(wanted));
  } else {
    std::sort(wanted.begin(), wanted.end());
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (std::get<2>(wanted[i]) == i) continue;
    return fmt::format(
        "microbatches[{}] begins with sequence {}, order {} puts the one with {} there", i,
        result.microbatches[i][0], name_of(result.asked.order), std::get<1>(wanted[i]));
  }
  return std::nullopt;
}

Violation find_maximum_violation(const PackResult& result) {
  Tokens max_tokens = 0;
  Nanoseconds max_cost = 0;
  for (const Ids& ids : result.microbatches) {
    max_tokens = std::max(max_tokens, result.tokens_of(ids));
    max_cost = std::max(max_cost, result.cost_of(ids));
  }
  if (result.max_tokens != max_tokens) {
    return fmt::format("max_tokens is {}, the micro-batches have {}", result.max_tokens,
                       max_tokens);
  }
  return broken_unless(result.max_cost == max_cost, "max_cost is {}, the micro-batches have {}",
                       result.max_cost, max_cost);
}

// Whether a unit is packed; units are dropped as a whole.
std::vector<bool> kept_units(const PackResult& result) {
  std::vector<bool> is_kept(result.units.size(), true);
  for (const std::int64_t id : result.dropped) is_kept[result.unit_of(id)] = false;
  return is_kept;
}

// Every planner knows that the tokens need room and that the counts which were asked for hold.
Violation find_count_bound_violation(const PackResult& result) {
  const PackAsked& asked = result.asked;
  const std::vector<bool> is_kept = kept_units(result);
  Tokens tokens = 0;
  std::int64_t plain = 0;
  for (std::size_t unit = 0; unit < result.units.size(); ++unit) {
    if (!is_kept[unit]) continue;
    if (result.units.tokens[unit] > asked.capacity) {
      ++plain;
    } else {
      tokens += result.units.tokens[unit];
    }
  }
  plain = std::max<std::int64_t>(plain + rounded_up(tokens, asked.capacity), asked.min_count);
  plain = rounded_up(plain, asked.multiple) * asked.multiple;
  if (asked.count) plain = *asked.count;
  if (result.lower_bound > result.count) {
    return fmt::format("lower_bound is {}, above count {}", result.lower_bound, result.count);
  }
  if (result.lower_bound % asked.multiple != 0) {
    return fmt::format("lower_bound is {}, must be a multiple of {}", result.lower_bound,
                       asked.multiple);
  }
  return broken_unless(result.lower_bound >= plain,
                       "lower_bound is {}, below {} from tokens and counts", result.lower_bound,
                       plain);
}

Violation find_cost_bound_violation(const PackResult& result) {
  const std::vector<bool> is_kept = kept_units(result);
  Nanoseconds total = 0;
  Nanoseconds plain = 0;
  for (std::size_t unit = 0; unit < result.units.size(); ++unit) {
    if (!is_kept[unit]) continue;
    total += result.units.costs[unit];
    plain = std::max(plain, result.units.costs[unit]);
  }
  plain = std::max(plain, rounded_up(total, result.count));
  if (result.max_cost_bound > result.max_cost) {
    return fmt::format("max_cost_bound is {}, above max_cost {}", result.max_cost_bound,
                       result.max_cost);
  }
  return broken_unless(result.max_cost_bound >= plain,
                       "max_cost_bound is {}, below {} from average and largest {}",
                       result.max_cost_bound, plain, result.units.name);
}

Violation find_optimality_violation(const PackResult& result) {
  const bool is_met =
      result.count == result.lower_bound && result.max_cost == result.max_cost_bound;
  return broken_unless(
      is_met == (result.status == Status::optimal),
      "status is {}, but count is {} with lower_bound {}, and max_cost {} with max_cost_bound {}",
      name_of(result.status), result.count, result.lower_bound, result.max_cost,
      result.max_cost_bound);
}

}  // namespace

Violation find_pack_violation(const Json& document, const Batch* expected) {
  const PackResult result = read_result(document);
  if (expected != nullptr) {
    if (auto found = find_difference(result.input.batch, *expected)) return found;
  }
  if (auto found = find_reason_violation(result.status, result.reason)) return found;
  if (!has_answer(result.status)) return find_empty_answer_violation(result);
  // Later rules rely on earlier ones: places first, then counts, then sums.
  for (const auto rule :
       {find_place_violation, find_count_violation, find_dropped_violation, find_empty_violation,
        find_group_violation, find_capacity_violation, find_max_sequences_violation,
        find_order_violation, find_maximum_violation, find_count_bound_violation,
        find_cost_bound_violation, find_optimality_violation}) {
    if (auto found = rule(result)) return found;
  }
  return std::nullopt;
}

}  // namespace isochron::check
