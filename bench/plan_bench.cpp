// Answers and times questions for step plans, one JSON object a line, from stdin to stdout:
//
//   {"verb": "plan", "cost": {..}, "ranks": 8, "capacity": 16384, "stages": 1, "virtual": 1,
//    "transfer_ns": 0, "shares": [..], "rank_speed": [..], "options": {..}, "lengths": [..],
//    "groups": [..], "runs": 1}
//   {"verb": "megatron", ..}    the same batch by Megatron's scheduler, with padded lengths
//
// `cost` may be the name of a built-in model. All but the verb, `cost`, `options` and `lengths`
// may be missing; `groups` are numbers by first occurrence. `times_us` is the processor time of
// every run. No answer counts unless the independent checker accepts it. compare_plans.py asks the
// questions.

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "bench/processor_time.h"
#include "isochron/check/check.h"
#include "isochron/core/json.h"
#include "isochron/cost/cost_json.h"
#include "isochron/plan/megatron_schedule.h"
#include "isochron/plan/plan.h"
#include "isochron/plan/plan_slots.h"
#include "isochron/simulate/simulate.h"

namespace isochron {
namespace {

constexpr std::string_view where = "plan_bench";

std::int64_t integer_in(const Json& asked, std::string_view key, std::int64_t otherwise) {
  const auto found = asked.find(std::string(key));
  return found == asked.end() ? otherwise : integer_of(*found, where, key, 1, max_total_cost);
}

std::vector<double> numbers_in(const Json& asked, const std::string& key) {
  std::vector<double> numbers;
  const auto found = asked.find(key);
  if (found == asked.end()) return numbers;
  for (const Json& number : *found) numbers.push_back(number_of(number, where, key));
  return numbers;
}

struct Question {
  Batch batch;
  Topology topology;
  CostModel cost;
  PlanOptions options;
  std::int64_t runs = 1;
};

Question question_of(const Json& asked) {
  Question question;
  for (const Json& length : member(asked, where, "lengths")) {
    question.batch.lengths.push_back(integer_of(length, where, "lengths", 1, max_length));
  }
  if (const auto groups = asked.find("groups"); groups != asked.end()) {
    for (const Json& group : *groups) {
      const auto number = integer_of(group, where, "groups", 0, max_length);
      question.batch.groups.emplace_back(static_cast<std::int32_t>(number));
      if (static_cast<std::size_t>(number) == question.batch.group_names.size()) {
        question.batch.group_names.push_back(std::to_string(number));
      }
    }
  }
  question.topology.ranks = static_cast<std::int32_t>(integer_in(asked, "ranks", 1));
  question.topology.capacity = integer_in(asked, "capacity", 1);
  PipelineShape& pipeline = question.topology.pipeline;
  pipeline.stages = static_cast<std::int32_t>(integer_in(asked, "stages", 1));
  pipeline.virtual_ = static_cast<std::int32_t>(integer_in(asked, "virtual", 1));
  if (pipeline.virtual_ > 1) pipeline.group = pipeline.stages;
  pipeline.transfer_ns = integer_in(asked, "transfer_ns", 0);
  pipeline.shares = numbers_in(asked, "shares");
  question.topology.rank_speed = numbers_in(asked, "rank_speed");
  const Json& cost = member(asked, where, "cost");
  question.cost = cost.is_string() ? cost_preset(cost.get<std::string>()) : cost_from_json(cost);
  question.options = options_from_json<PlanOptions>(member(asked, where, "options"), where);
  question.runs = integer_in(asked, "runs", 1);
  return question;
}

void verify(const Question& question, const StepPlan& plan) {
  const auto violation = find_violation(to_json(plan), &question.batch);
  require(!violation, where, "the checker says: {}", violation.value_or(""));
}

Json answer_plan(const Question& question) {
  StepPlan plan;
  std::vector<double> times_us;
  for (std::int64_t run = 0; run < question.runs; ++run) {
    const double start = cpu_us();
    plan = plan_step(question.batch, question.topology, question.cost, question.options);
    times_us.push_back(cpu_us() - start);
  }
  verify(question, plan);
  return {{"times_us", times_us},
          {"status", name_of(plan.status)},
          {"reason", plan.reason},
          {"predicted_step_ns", plan.predicted_step_ns},
          {"lower_bound_ns", plan.lower_bound_ns},
          {"num_slots", plan.microbatches.size()}};
}

// What the rival's micro-batches are as a plan under the same options.
StepPlan rival_plan(const Question& question, const MegatronSchedule& schedule) {
  StepPlan plan;
  plan.status = Status::feasible;
  plan.topology = question.topology;
  plan.options = resolved(question.options, question.topology);
  plan.cost = question.cost;
  plan.batch = question.batch;
  plan.microbatches = schedule.microbatches;
  for (Slot& slot : plan.microbatches) {
    for (ContextGroup& group : slot) {
      std::sort(group.sequences.begin(), group.sequences.end());
      group.exchange = cheapest_exchange(plan, group);
    }
  }
  const Timeline timeline = simulate(plan);
  plan.predicted_step_ns = timeline.step_ns;
  plan.peak_activation_bytes = timeline.peak_activation_bytes;
  const double sum = std::accumulate(timeline.busy_ns.begin(), timeline.busy_ns.end(), 0.0);
  const Nanoseconds busiest = *std::max_element(timeline.busy_ns.begin(), timeline.busy_ns.end());
  plan.imbalance =
      static_cast<double>(busiest) / (sum / static_cast<double>(timeline.busy_ns.size()));
  return plan;
}

Json answer_megatron(const Question& question) {
  const double start = cpu_us();
  const MegatronSchedule schedule = megatron_schedule(
      question.batch.lengths, {.ranks = question.topology.ranks,
                               .capacity = question.topology.capacity,
                               .min_context_size = question.options.min_context_size,
                               .pad_for_tensor_parallel = question.options.tensor_parallel});
  const double time_us = cpu_us() - start;
  if (!schedule.error.empty()) return {{"error", schedule.error}};
  const StepPlan plan = rival_plan(question, schedule);
  verify(question, plan);
  return {{"times_us", {time_us}},
          {"predicted_step_ns", plan.predicted_step_ns},
          {"num_slots", plan.microbatches.size()}};
}

int run() {
  for (std::string line; std::getline(std::cin, line);) {
    const Json asked = parse_json(line, where);
    const Question question = question_of(asked);
    const bool is_rival = member(asked, where, "verb") == "megatron";
    const Json answer = is_rival ? answer_megatron(question) : answer_plan(question);
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
    std::fprintf(stderr, "plan_bench: %s\n", error.what());
    return 1;
  }
}
