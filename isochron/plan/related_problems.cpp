#include "isochron/plan/related_problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace isochron {

namespace {

std::unique_ptr<Problem> with_purse(const Problem& problem, const Topology& topology,
                                    const CostModel& model, const PlanOptions& options,
                                    std::shared_ptr<Purse> purse) {
  auto same = std::make_unique<Problem>(problem.work(), topology, model, options, std::move(purse));
  for (ItemId item = 0; item < problem.num_items(); ++item) {
    if (problem.is_alone(item)) same->set_alone(item, problem.alone_size());
  }
  return same;
}

}  // namespace

std::unique_ptr<Problem> with_same_work(const Problem& problem, const Topology& topology,
                                        const CostModel& model, const PlanOptions& options) {
  return with_purse(problem, topology, model, options, problem.purse());
}

std::unique_ptr<Problem> asked_alone(const Problem& problem) {
  return with_purse(problem, problem.topology(), problem.model(), problem.options(),
                    std::make_shared<Purse>());
}

std::unique_ptr<Problem> with_options(const Problem& problem, const PlanOptions& options) {
  return with_same_work(problem, problem.topology(), problem.model(), options);
}

bool holds_every_bundle(const Problem& problem) {
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    if (problem.smallest_place(bundle) == problem.sizes().size()) return false;
  }
  return true;
}

std::unique_ptr<Problem> find_powers(const Problem& problem) {
  PlanOptions options = problem.options();
  options.context = "dynamic:powers";
  auto powers = with_options(problem, options);
  const auto sizes = powers->sizes();
  const auto all = problem.sizes();
  const bool are_all = std::equal(sizes.begin(), sizes.end(), all.begin(), all.end());
  return are_all || sizes.empty() || !holds_every_bundle(*powers) ? nullptr : std::move(powers);
}

std::unique_ptr<Problem> find_aligned(const Problem& problem) {
  if (problem.is_aligned()) return nullptr;
  PlanOptions options = problem.options();
  options.context = "dynamic";
  auto aligned =
      with_purse(problem, problem.topology(), problem.model(), options, std::make_shared<Purse>());
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    const auto sizes = aligned->sizes();
    if (std::none_of(sizes.begin(), sizes.end(),
                     [&](std::int32_t size) { return aligned->fits(size, bundle); })) {
      return nullptr;
    }
  }
  return aligned;
}

std::unique_ptr<Problem> find_coarser(const Problem& problem) {
  const auto sizes = problem.sizes();
  if (!problem.is_aligned() || sizes.size() < 2) return nullptr;
  PlanOptions options = problem.options();
  options.min_context_size = sizes[1];
  auto coarser = with_options(problem, options);
  double area = 0;
  double tokens = 0;
  for (ItemId item = 0; item < problem.num_items(); ++item) {
    const auto size =
        std::find_if(coarser->sizes().begin(), coarser->sizes().end(),
                     [&](std::int32_t each) { return coarser->item_fits(each, item); });
    if (size == coarser->sizes().end()) return nullptr;
    area += static_cast<double>(coarser->item_cost(coarser->cheapest_price(*size), item)) * *size;
    tokens += static_cast<double>(coarser->tokens(*size, item));
  }
  const double full = area * static_cast<double>(problem.capacity()) / tokens;
  return static_cast<double>(problem.microbatch()) * 16 > full ? std::move(coarser) : nullptr;
}

std::unique_ptr<Problem> without_speeds(const Problem& problem) {
  Topology topology = problem.topology();
  topology.rank_speed.clear();
  return with_same_work(problem, topology, problem.model(), problem.options());
}

std::unique_ptr<Problem> with_single_sequences(const Problem& problem) {
  PlanOptions options = problem.options();
  options.max_sequences = 1;
  return with_options(problem, options);
}

bool holds_all(const Problem& problem, std::int32_t size) {
  if (problem.num_ranks() % size != 0) return false;
  for (ItemId item = 0; item < problem.num_items(); ++item) {
    if (!problem.item_fits(size, item)) return false;
  }
  return true;
}

std::unique_ptr<Problem> with_static_size(const Problem& problem, std::int32_t size) {
  PlanOptions options = problem.options();
  options.context = fmt::format("static:{}", size);
  options.min_context_size = 1;
  options.max_context_size = 0;
  if (options.oversize == Oversize::widen) options.oversize = Oversize::error;
  auto fixed = std::make_unique<Problem>(problem.work(), problem.topology(), problem.model(),
                                         options, problem.purse());
  for (ItemId item = 0; item < problem.num_items(); ++item) {
    if (problem.is_alone(item)) fixed->set_alone(item, size);
  }
  return fixed->sizes().empty() ? nullptr : std::move(fixed);
}

}  // namespace isochron
