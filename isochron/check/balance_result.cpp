// The rules of a balance: every sequence on one rank, what was asked kept, and numbers that follow
// from the assignment. One function per rule; the first that is broken speaks.
//
// Sums are taken per run: the stretch of a rank's list that lies in one mini-batch. There are never
// more runs than sequences, whereas ranks times mini-batches may be far more.

#include "isochron/check/balance_result.h"

#include <limits>

#include "isochron/check/result_input.h"
#include "isochron/core/order.h"
#include "isochron/core/policy.h"

namespace isochron::check {

namespace {

struct BalanceAsked {
  bool equal_count = false;
  KeepGroups keep_groups = KeepGroups::none;
  std::int32_t minibatch = 0;
  Tokens capacity = 0;
  Order order = Order::index;
  std::optional<std::int64_t> max_work = {};

  template <class Row>
  static void describe(Row row) {
    using Self = BalanceAsked;
    row(Field{"equal_count", &Self::equal_count, ""});
    row(Field{"keep_groups", &Self::keep_groups, ""});
    row(Field{"minibatch", &Self::minibatch, ""});
    row(Field{"capacity", &Self::capacity, ""});
    row(Field{"order", &Self::order, ""});
    row(Field{"max_work", &Self::max_work, ""});
  }
};

struct BalanceResult {
  ResultInput input;
  BalanceAsked asked;
  Units units;  // what moves: groups if they are kept
  std::int64_t ranks = 0;
  Status status = Status::unknown;
  std::string reason;
  Nanoseconds max_cost = 0;
  double mean_cost = 0;
  Nanoseconds lower_bound = 0;
  std::vector<std::vector<std::int64_t>> sequences_of_rank;

  [[nodiscard]] std::size_t minibatch_of(std::int64_t sequence) const {
    return asked.minibatch == 0 ? 0 : static_cast<std::size_t>(sequence / asked.minibatch);
  }
  [[nodiscard]] std::size_t num_minibatches() const {
    return minibatch_of(static_cast<std::int64_t>(input.size()) - 1) + 1;
  }
};

BalanceResult read_result(const Json& document) {
  static const std::vector<std::string> known = {
      "schema",       "status",    "reason",      "ranks",
      "max_cost",     "mean_cost", "lower_bound", "sequences_of_rank",
      "options",      "cost",      "lengths",     "group",
      "extra_cost_ns"};
  require_known_keys(document, where, known);
  BalanceResult result;
  result.asked = read_options<BalanceAsked>(document);
  const BalanceAsked& asked = result.asked;
  require(asked.keep_groups != KeepGroups::microbatch, where,
          "options.keep_groups is microbatch, must be none or rank");
  require(asked.minibatch >= 0, where, "options.minibatch is {}, must not be negative",
          asked.minibatch);
  require(asked.capacity >= 0, where, "options.capacity is {}, must not be negative",
          asked.capacity);
  require(asked.max_work.value_or(0) >= 0, where, "options.max_work is {}, must not be negative",
          asked.max_work.value_or(0));
  result.input = read_input(document);
  require(asked.keep_groups == KeepGroups::none || !result.input.batch.groups.empty(), where,
          "options.keep_groups is rank, but \"group\" is missing");
  result.units = asked.keep_groups == KeepGroups::rank ? group_units(result.input)
                                                       : single_units(result.input);
  result.ranks = integer_of(member(document, where, "ranks"), where, "ranks", 1,
                            std::numeric_limits<std::int32_t>::max());
  result.status = field_from_json<Status>(member(document, where, "status"), where, "status");
  result.reason = text_of(member(document, where, "reason"), where, "reason");
  result.max_cost = read_integer(document, "max_cost");
  result.mean_cost = number_of(member(document, where, "mean_cost"), where, "mean_cost");
  result.lower_bound = read_integer(document, "lower_bound");
  result.sequences_of_rank = read_id_lists(document, "sequences_of_rank");
  return result;
}

// What one rank holds of one mini-batch.
struct Run {
  std::size_t rank = 0;
  std::size_t minibatch = 0;
  std::vector<std::int64_t> ids;
};

std::vector<Run> runs_of(const BalanceResult& result) {
  std::vector<Run> runs;
  for (std::size_t rank = 0; rank < result.sequences_of_rank.size(); ++rank) {
    for (const std::int64_t id : result.sequences_of_rank[rank]) {
      const std::size_t minibatch = result.minibatch_of(id);
      if (runs.empty() || runs.back().rank != rank || runs.back().minibatch != minibatch) {
        runs.push_back(Run{.rank = rank, .minibatch = minibatch, .ids = {}});
      }
      runs.back().ids.push_back(id);
    }
  }
  return runs;
}

std::string run_text(const BalanceResult& result, std::size_t rank, std::size_t minibatch) {
  if (result.asked.minibatch == 0) return fmt::format("rank {}", rank);
  return fmt::format("rank {} in mini-batch {}", rank, minibatch);
}

// Without an answer there is nothing to say about one.
Violation find_empty_answer_violation(const BalanceResult& result) {
  if (result.asked.capacity == 0) {
    return fmt::format("status is {}, but without a capacity there always is an assignment",
                       name_of(result.status));
  }
  if (!result.sequences_of_rank.empty()) {
    return fmt::format("status is {}, so sequences_of_rank must be empty", name_of(result.status));
  }
  return broken_unless(result.max_cost == 0 && result.mean_cost == 0,
                       "status is {}, so max_cost and mean_cost are 0, not {} and {}",
                       name_of(result.status), result.max_cost, result.mean_cost);
}

Violation find_rank_violation(const BalanceResult& result) {
  return broken_unless(result.sequences_of_rank.size() == static_cast<std::size_t>(result.ranks),
                       "sequences_of_rank has {} ranks, must have {}",
                       result.sequences_of_rank.size(), result.ranks);
}

Violation find_place_violation(const BalanceResult& result) {
  Places places(result.input.size());
  for (std::size_t rank = 0; rank < result.sequences_of_rank.size(); ++rank) {
    if (auto found = places.place(result.sequences_of_rank[rank],
                                  fmt::format("sequences_of_rank[{}]", rank))) {
      return found;
    }
  }
  return places.find_missing();
}

Violation find_group_violation(const BalanceResult& result) {
  if (result.asked.keep_groups == KeepGroups::none) return std::nullopt;
  constexpr auto nowhere = static_cast<std::size_t>(-1);
  std::vector<std::size_t> rank_of(result.units.size(), nowhere);
  for (std::size_t rank = 0; rank < result.sequences_of_rank.size(); ++rank) {
    for (const std::int64_t id : result.sequences_of_rank[rank]) {
      const std::size_t unit = result.units.of_sequence[static_cast<std::size_t>(id)];
      if (rank_of[unit] != nowhere && rank_of[unit] != rank) {
        return fmt::format("{} lies on ranks {} and {}, must lie on one",
                           unit_text(result.input, result.units, unit), rank_of[unit], rank);
      }
      rank_of[unit] = rank;
    }
  }
  return std::nullopt;
}

Violation find_order_violation(const BalanceResult& result) {
  const std::vector<Run> runs = runs_of(result);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Run& run = runs[i];
    if (i > 0 && runs[i - 1].rank == run.rank && runs[i - 1].minibatch > run.minibatch) {
      return fmt::format("rank {} runs mini-batch {} after mini-batch {}", run.rank, run.minibatch,
                         runs[i - 1].minibatch);
    }
    std::vector<std::pair<Nanoseconds, std::int64_t>> wanted;  // (what decides, id)
    for (const std::int64_t id : run.ids) {
      const bool is_by_cost = result.asked.order == Order::small_ends;
      wanted.emplace_back(is_by_cost ? result.input.costs[static_cast<std::size_t>(id)] : 0, id);
    }
    if (result.asked.order == Order::small_ends) {
      wanted = small_at_both_ends(std::move(wanted));
    } else {
      std::sort(wanted.begin(), wanted.end());
    }
    for (std::size_t j = 0; j < run.ids.size(); ++j) {
      if (run.ids[j] == wanted[j].second) continue;
      return fmt::format("{} has sequence {} at place {}, order {} puts {} there",
                         run_text(result, run.rank, run.minibatch), run.ids[j], j,
                         name_of(result.asked.order), wanted[j].second);
    }
  }
  return std::nullopt;
}

Violation find_count_violation(const BalanceResult& result) {
  if (!result.asked.equal_count) return std::nullopt;
  struct Extremes {
    std::int64_t ranks = 0;  // that hold any
    std::int64_t low = std::numeric_limits<std::int64_t>::max();
    std::int64_t high = 0;
  };
  std::vector<Extremes> extremes(result.num_minibatches());
  std::vector<bool> is_counted(result.units.size());  // a kept group lies in one run
  for (const Run& run : runs_of(result)) {
    std::int64_t count = 0;
    for (const std::int64_t id : run.ids) {
      const std::size_t unit = result.units.of_sequence[static_cast<std::size_t>(id)];
      if (!is_counted[unit]) ++count;
      is_counted[unit] = true;
    }
    Extremes& minibatch = extremes[run.minibatch];
    ++minibatch.ranks;
    minibatch.low = std::min(minibatch.low, count);
    minibatch.high = std::max(minibatch.high, count);
  }
  for (std::size_t i = 0; i < extremes.size(); ++i) {
    const std::int64_t low = extremes[i].ranks < result.ranks ? 0 : extremes[i].low;
    if (extremes[i].high - low <= 1) continue;
    return fmt::format("ranks hold {} to {} {}s of mini-batch {}, must differ by at most 1", low,
                       extremes[i].high, result.units.name, i);
  }
  return std::nullopt;
}

Violation find_capacity_violation(const BalanceResult& result) {
  if (result.asked.capacity == 0) return std::nullopt;
  for (const Run& run : runs_of(result)) {
    Tokens tokens = 0;
    for (const std::int64_t id : run.ids) {
      tokens += result.input.batch.lengths[static_cast<std::size_t>(id)];
    }
    if (tokens > result.asked.capacity) {
      return fmt::format("{} holds {} tokens, the capacity is {}",
                         run_text(result, run.rank, run.minibatch), tokens, result.asked.capacity);
    }
  }
  return std::nullopt;
}

Violation find_max_cost_violation(const BalanceResult& result) {
  std::vector<Nanoseconds> largest(result.num_minibatches());
  for (const Run& run : runs_of(result)) {
    Nanoseconds cost = 0;
    for (const std::int64_t id : run.ids) cost += result.input.costs[static_cast<std::size_t>(id)];
    largest[run.minibatch] = std::max(largest[run.minibatch], cost);
  }
  Nanoseconds sum = 0;
  for (const Nanoseconds cost : largest) sum += cost;
  return broken_unless(result.max_cost == sum, "max_cost is {}, the assignment has {}",
                       result.max_cost, sum);
}

Violation find_mean_cost_violation(const BalanceResult& result) {
  Nanoseconds total = 0;
  for (const Nanoseconds cost : result.input.costs) total += cost;
  const double mean = static_cast<double>(total) / static_cast<double>(result.ranks);
  return broken_unless(result.mean_cost == mean, "mean_cost is {}, the total over the ranks is {}",
                       result.mean_cost, mean);
}

// Every planner knows that the largest unit runs somewhere and that some rank holds the average.
Violation find_bound_violation(const BalanceResult& result) {
  std::vector<Nanoseconds> total(result.num_minibatches());
  std::vector<Nanoseconds> largest(result.num_minibatches());
  for (std::size_t i = 0; i < result.input.size(); ++i) {
    const std::size_t minibatch = result.minibatch_of(static_cast<std::int64_t>(i));
    total[minibatch] += result.input.costs[i];
    largest[minibatch] =
        std::max(largest[minibatch], result.units.costs[result.units.of_sequence[i]]);
  }
  Nanoseconds plain = 0;
  for (std::size_t i = 0; i < total.size(); ++i) {
    plain += std::max(rounded_up(total[i], result.ranks), largest[i]);
  }
  if (result.lower_bound > result.max_cost) {
    return fmt::format("lower_bound is {}, above max_cost {}", result.lower_bound, result.max_cost);
  }
  return broken_unless(result.lower_bound >= plain,
                       "lower_bound is {}, below {} from average and largest {}",
                       result.lower_bound, plain, result.units.name);
}

Violation find_optimality_violation(const BalanceResult& result) {
  const bool is_met = result.max_cost == result.lower_bound;
  return broken_unless(is_met == (result.status == Status::optimal),
                       "status is {}, but max_cost is {} and lower_bound is {}",
                       name_of(result.status), result.max_cost, result.lower_bound);
}

// A kept group in two mini-batches is a question without a meaning.
void require_groups_in_one_minibatch(const BalanceResult& result) {
  if (result.asked.keep_groups == KeepGroups::none) return;
  constexpr auto nowhere = static_cast<std::size_t>(-1);
  std::vector<std::size_t> minibatch_of(result.units.size(), nowhere);
  for (std::size_t i = 0; i < result.input.size(); ++i) {
    const std::size_t minibatch = result.minibatch_of(static_cast<std::int64_t>(i));
    std::size_t& known = minibatch_of[result.units.of_sequence[i]];
    if (known != nowhere && known != minibatch) {
      reject(where, "{} lies in mini-batches {} and {}, must lie in one",
             unit_text(result.input, result.units, result.units.of_sequence[i]), known, minibatch);
    }
    known = minibatch;
  }
}

}  // namespace

Violation find_balance_violation(const Json& document, const Batch* expected) {
  const BalanceResult result = read_result(document);
  require_groups_in_one_minibatch(result);
  if (expected != nullptr) {
    if (auto found = find_difference(result.input.batch, *expected)) return found;
  }
  if (auto found = find_reason_violation(result.status, result.reason)) return found;
  if (!has_answer(result.status)) return find_empty_answer_violation(result);
  // Later rules rely on earlier ones: places first, then orders, then sums.
  for (const auto rule :
       {find_rank_violation, find_place_violation, find_group_violation, find_order_violation,
        find_count_violation, find_capacity_violation, find_max_cost_violation,
        find_mean_cost_violation, find_bound_violation, find_optimality_violation}) {
    if (auto found = rule(result)) return found;
  }
  return std::nullopt;
}

}  // namespace isochron::check
