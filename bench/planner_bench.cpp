// Answers and times questions to the planner, one JSON object a line, from stdin to stdout:
//
//   {"verb": "balance", "ranks": 8, "options": {"equal_count": true}, "lengths": [..]}
//   {"verb": "pack", "options": {"capacity": 8192}, "lengths": [..]}
//
// Costs are verl's workload, 24576 s + s^2. A time is processor time, the fastest of "runs": as
// many as fit into 0.2 s, from 3 to 2001, unless the question has a number. No time counts unless
// the independent checker accepts the answer. `sort_us` is what std::sort takes for the same costs.
// compare.py asks the questions, and sets rivals beside the answers.

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "bench/processor_time.h"
#include "isochron/balance/balance.h"
#include "isochron/balance/balance_json.h"
#include "isochron/check/check.h"
#include "isochron/core/batch.h"
#include "isochron/core/json.h"
#include "isochron/cost/cost_model.h"
#include "isochron/pack/pack.h"
#include "isochron/pack/pack_json.h"

namespace isochron {
namespace {

constexpr std::string_view where = "planner_bench";

struct Runs {
  std::size_t least = 3;
  std::size_t most = 2001;
};

// The fastest of the runs, since what others do to the machine only adds; `prepare` is not counted.
template <class Prepare, class Run>
double fastest_us(Runs runs, Prepare prepare, Run run) {
  std::vector<double> times;
  const double begin = cpu_us();
  while (times.size() < runs.least || (times.size() < runs.most && cpu_us() - begin < 200'000)) {
    prepare();
    const double start = cpu_us();
    run();
    times.push_back(cpu_us() - start);
  }
  return *std::min_element(times.begin(), times.end());
}

struct Question {
  Runs runs;
  Batch batch;
  std::vector<Nanoseconds> costs;
};

void verify(const Question& question, std::string_view document) {
  const auto violation = find_violation(document, &question.batch);
  require(!violation, where, "the checker says: {}", violation.value_or(""));
}

Json answer_balance(const Question& question, const Json& asked) {
  const auto ranks = static_cast<std::int32_t>(
      integer_of(member(asked, where, "ranks"), where, "ranks", 1, INT32_MAX));
  const auto options = options_from_json<BalanceOptions>(member(asked, where, "options"), where);
  Balance result;
  const double time_us = fastest_us(
      question.runs, [] {}, [&] { result = balance(question.costs, ranks, options); });
  verify(question, to_json(result, ranks, options, cost_preset("verl"), question.batch));
  return {{"time_us", time_us},
          {"status", name_of(result.status)},
          {"max_cost", result.max_cost},
          {"lower_bound", result.lower_bound}};
}

Json answer_pack(const Question& question, const Json& asked) {
  const std::vector<Tokens>& lengths = question.batch.lengths;
  const auto options = options_from_json<PackOptions>(member(asked, where, "options"), where);
  Packing result;
  const double time_us = fastest_us(
      question.runs, [] {}, [&] { result = pack(lengths, question.costs, options); });
  verify(question, to_json(result, options, cost_preset("verl"), question.batch));
  Tokens max_tokens = 0;
  for (const auto& microbatch : result.microbatches) {
    Tokens tokens = 0;
    for (const SequenceId id : microbatch) tokens += lengths[id.index()];
    max_tokens = std::max(max_tokens, tokens);
  }
  return {{"time_us", time_us},
          {"status", name_of(result.status)},
          {"count", result.microbatches.size()},
          {"lower_bound", result.lower_bound},
          {"max_tokens", max_tokens},
          {"max_cost", result.max_cost},
          {"max_cost_bound", result.max_cost_bound}};
}

double sort_us(const Question& question) {
  std::vector<Nanoseconds> sorted;
  return fastest_us(
      question.runs, [&] { sorted = question.costs; },
      [&] { std::sort(sorted.begin(), sorted.end()); });
}

int run() {
  for (std::string line; std::getline(std::cin, line);) {
    const Json asked = parse_json(line, where);
    Question question;
    for (const Json& length : member(asked, where, "lengths")) {
      question.batch.lengths.push_back(integer_of(length, where, "lengths", 1, max_length));
    }
    question.costs = sequence_costs(cost_preset("verl"), question.batch);
    if (const auto runs = asked.find("runs"); runs != asked.end()) {
      question.runs.least = runs->get<std::size_t>();
      question.runs.most = question.runs.least;
    }
    const bool is_pack = member(asked, where, "verb") == "pack";
    Json answer = is_pack ? answer_pack(question, asked) : answer_balance(question, asked);
    answer["sort_us"] = sort_us(question);
    std::cout << answer.dump() << std::endl;  // flushed: the other side waits for it
  }
  return 0;
}

}  // namespace
}  // namespace isochron

int main() {
  try {
    return isochron::run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "planner_bench: %s\n", error.what());
    return 1;
  }
}
