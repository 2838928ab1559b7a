// Three reasons why a step takes time (SPEC K.6), in real numbers:
//
//   area   all ranks together do at least the work of every sequence, the traffic of those that no
//          single rank holds, and a fixed cost for every capacity's worth of tokens
//   item   the most expensive sequence runs somewhere, at best on the size that suits it
//   wide   groups of more than half of the ranks share a rank: those that need one take turns
//
// Where the link depends on the place of a group, any link that is wide enough may be the cheapest.

#include "isochron/check/plan_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "isochron/check/plan_cost.h"
#include "isochron/check/plan_sizes.h"
#include "isochron/check/result_input.h"

namespace isochron::check {

namespace {

constexpr double none = std::numeric_limits<double>::infinity();

// What a group of some size pays at least, besides its share of the work.
struct SizePrice {
  std::int64_t ranks = 1;
  double traffic = 0;  // ns per token on each rank
  double latency = 0;  // ns per micro-batch

  // The same over all sizes from this one on.
  double least_traffic = 0;
  double least_total_traffic = 0;  // ns per token on all ranks together
};

SizePrice price_of(const CostModel& cost, std::int64_t ranks) {
  if (ranks == 1) return {};
  SizePrice price{.ranks = ranks, .traffic = none, .latency = none};
  const auto c = static_cast<double>(ranks);
  for (const ContextCost& exchange : cost.context) {
    if (exchange.divides != 0 && exchange.divides % ranks != 0) continue;
    if (exchange.kind == ContextKind::none) price.traffic = 0;
    if (exchange.kind == ContextKind::none && exchange.links.empty()) price.latency = 0;
    const double parts = exchange.kind == ContextKind::all_to_all ? c * c : c;
    const double bytes = (1 - exchange.overlap) * exchange.bytes_per_token * (c - 1) / parts;
    for (const ContextLink& link : exchange.links) {
      if (link.max_ranks < ranks) continue;
      price.traffic = std::min(price.traffic, bytes / link.gb_per_s);
      price.latency = std::min(price.latency, link.latency_us * 1000);
    }
  }
  return price;
}

std::vector<SizePrice> size_prices(const PlanView& view) {
  std::vector<SizePrice> prices;
  for (const std::int64_t size : group_sizes(view)) {
    prices.push_back(price_of(view.plan().cost, size));
  }
  double traffic = none;
  double total = none;
  for (std::size_t i = prices.size(); i-- > 0;) {
    SizePrice& price = prices[i];
    traffic = std::min(traffic, price.traffic);
    total = std::min(total, price.traffic * static_cast<double>(price.ranks));
    price.least_traffic = traffic;
    price.least_total_traffic = total;
  }
  return prices;
}

// The first size that holds a sequence; the end for one that is over the capacity.
std::vector<SizePrice>::const_iterator first_size(const PlanView& view,
                                                  const std::vector<SizePrice>& prices,
                                                  SequenceId id) {
  const auto is_too_small = [&](const SizePrice& price) {
    return view.tokens_per_rank(view.length_of(id), price.ranks) > view.plan().topology.capacity;
  };
  if (view.is_oversized(id)) return prices.end();
  auto first = prices.begin();
  if (!is_too_small(*first)) return first;
  return std::partition_point(std::next(first), prices.end(), is_too_small);
}

// Sums over the sequences that run.
struct Sums {
  double work = 0;                 // ns on all ranks together
  double wide = 0;                 // ns on the rank that all wide groups share
  std::int64_t tokens = 0;         // under the capacity
  std::int64_t num_oversized = 0;  // micro-batches
  double num_terms = 0;            // sequences: each is rounded once
  SequenceId largest;              // by work on one rank
  double largest_work = -1;
};

Sums sums_of(const PlanView& view, const std::vector<SizePrice>& prices) {
  const auto num_ranks = static_cast<double>(view.num_ranks());
  const auto largest_size = static_cast<double>(prices.back().ranks);
  Sums sums;
  for (const Slot& slot : view.plan().microbatches) {
    for (const ContextGroup& group : slot) {
      if (view.is_oversized(group)) ++sums.num_oversized;
      for (const SequenceId id : group.sequences) {
        const auto work = static_cast<double>(cost_on_one_rank(view, id));
        const auto length = static_cast<double>(view.length_of(id));
        const auto size = first_size(view, prices, id);
        const bool is_over = size == prices.end();
        sums.work += work + (is_over ? 0 : length * size->least_total_traffic);
        if (is_over ? view.is_dynamic() : 2 * size->ranks > view.num_ranks()) {
          sums.wide +=
              is_over ? work / num_ranks : work / largest_size + length * size->least_traffic;
        }
        if (!is_over) sums.tokens += view.tokens_per_rank(view.length_of(id), 1);
        sums.num_terms += 1;
        if (work > sums.largest_work) {
          sums.largest = id;
          sums.largest_work = work;
        }
      }
    }
  }
  return sums;
}

// The most expensive sequence on the size that suits it.
double item_time(const PlanView& view, const std::vector<SizePrice>& prices, const Sums& sums) {
  const auto length = static_cast<double>(view.length_of(sums.largest));
  auto size = first_size(view, prices, sums.largest);
  if (size == prices.end()) {
    const std::int64_t ranks = view.is_dynamic() ? view.num_ranks() : view.mode().size;
    return sums.largest_work / static_cast<double>(ranks);
  }
  double least = none;
  for (; size != prices.end(); ++size) {
    least = std::min(least, sums.largest_work / static_cast<double>(size->ranks) +
                                length * size->traffic + size->latency);
  }
  return least;
}

// Micro-batches of single ranks that there must be: for the tokens, and by the counts.
double num_rank_slots(const PlanView& view, const Sums& sums) {
  const Topology& topology = view.plan().topology;
  std::int64_t count = rounded_up(sums.tokens, topology.capacity) + sums.num_oversized;
  if (view.options().counts == Counts::equal) {
    const std::int64_t unit = view.num_ranks() * topology.pipeline.group;
    count = rounded_up(count, unit) * unit;
  }
  return static_cast<double>(count);
}

// Of the cost that falls on the fullest stage.
double largest_stage_share(const PipelineShape& shape) {
  if (shape.shares.empty()) return 1.0 / shape.stages;
  std::vector<double> of_stage(static_cast<std::size_t>(shape.stages));
  for (std::size_t i = 0; i < shape.shares.size(); ++i) {
    of_stage[i % of_stage.size()] += shape.shares[i];
  }
  return *std::max_element(of_stage.begin(), of_stage.end());
}

}  // namespace

PlanBound plan_bound(const PlanView& view) {
  const StepPlan& plan = view.plan();
  const std::vector<SizePrice> prices = size_prices(view);
  if (prices.empty()) return {};  // all that runs is oversized on ranks that no group may have
  const Sums sums = sums_of(view, prices);
  if (sums.num_terms == 0) return {};

  double all_speeds = static_cast<double>(view.num_ranks());
  double fastest = 1;
  double slowest = 1;
  if (const std::vector<double>& speeds = plan.topology.rank_speed; !speeds.empty()) {
    all_speeds = 0;
    for (const double speed : speeds) all_speeds += speed;
    fastest = *std::max_element(speeds.begin(), speeds.end());
    slowest = *std::min_element(speeds.begin(), speeds.end());
  }
  const double pass = view.options().pass == Pass::train ? 1 : plan.cost.forward_share;
  const double stage = largest_stage_share(plan.topology.pipeline);
  const double fixed = plan.cost.microbatch_ns;
  const double area = pass * stage * (sums.work + fixed * num_rank_slots(view, sums)) / all_speeds;
  const double item = pass * (item_time(view, prices, sums) + fixed) / fastest;
  const double wide = sums.wide == 0 ? 0 : pass * stage * (sums.wide + fixed) / fastest;

  // Half a nanosecond for each rounded term on a rank, more where it is slow; and 1e-5, since
  // shares of chunks may add up to that much less than 1.
  const double slack = (sums.num_terms + 4 * static_cast<double>(view.num_slots())) / slowest;
  const double most = std::max({area, item, wide});
  const std::string_view from = most == area   ? "the work of all ranks"
                                : most == item ? "the most expensive sequence"
                                               : "sequences that need more than half of the ranks";
  return {.step_ns = static_cast<Nanoseconds>(
              std::clamp(most * (1 - 1e-5) - slack, 0.0, static_cast<double>(max_total_cost))),
          .from = from};
}

}  // namespace isochron::check
