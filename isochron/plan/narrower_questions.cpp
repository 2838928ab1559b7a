#include "isochron/plan/narrower_questions.h"

#include <algorithm>
#include <utility>

#include "isochron/plan/pipelines/pipeline_search.h"
#include "isochron/plan/related_problems.h"
#include "isochron/plan/slots/paced_places.h"

namespace isochron {

namespace {

// The most ranks of a group, but for what stands alone.
std::int32_t largest_allowed(const PlanOptions& options, std::int32_t num_ranks) {
  return options.max_context_size == 0 ? num_ranks : options.max_context_size;
}

// No group smaller than a node, or half of one, where whole nodes leave ranks over: these may idle.
std::vector<std::unique_ptr<Problem>> with_nodes(const Problem& problem) {
  std::vector<std::unique_ptr<Problem>> questions;
  if (problem.model().context.empty()) return questions;
  const auto& links = problem.model().context.front().links;
  if (links.size() < 2) return questions;
  const std::int64_t node = links.front().max_ranks;
  for (const std::int64_t size : {node, node / 2}) {
    PlanOptions options = problem.options();
    const std::int32_t most = largest_allowed(options, problem.num_ranks());
    if (size <= options.min_context_size || size > most) continue;
    if (problem.num_ranks() % size == 0) continue;
    options.min_context_size = static_cast<std::int32_t>(size);
    questions.push_back(with_options(problem, options));
  }
  return questions;
}

// No group larger than half of what may be: what is long takes longer, and leaves no ranks idle.
std::unique_ptr<Problem> with_smaller_groups(const Problem& problem) {
  PlanOptions options = problem.options();
  const std::int32_t most = largest_allowed(options, problem.num_ranks());
  options.max_context_size = std::min(problem.sizes().back(), most) / 2;
  if (options.max_context_size <= std::max(1, options.min_context_size)) return nullptr;
  return with_options(problem, options);
}

// The slots of a training step, whose micro-batches take longer in the same proportion.
std::unique_ptr<Problem> with_training(const Problem& problem) {
  PlanOptions options = problem.options();
  options.pass = Pass::train;
  return with_options(problem, options);
}

// The slots of the other way to wait.
std::unique_ptr<Problem> with_other_sync(const Problem& problem) {
  PlanOptions options = problem.options();
  options.sync = options.sync == Sync::step ? Sync::microbatch : Sync::step;
  options.counts = Counts::equal;
  return with_options(problem, options);
}

}  // namespace

DraftSlots NarrowerQuestion::answer(const Problem& other, DraftSlots slots) const {
  for (auto& slot : slots) {
    std::erase_if(slot, [](const DraftGroup& group) { return group.items.empty(); });
    for (DraftGroup& group : slot) {
      if (parts.empty()) break;
      std::vector<ItemId> items;
      for (const ItemId whole : group.items) {
        const auto& each = parts[static_cast<std::size_t>(whole)];
        items.insert(items.end(), each.begin(), each.end());
      }
      group.items = std::move(items);
    }
  }
  // What idles there may have work for smaller groups, or for parts.
  const PipelineShape& shape = other.topology().pipeline;
  if (other.options().counts == Counts::equal) {
    equalize(other, shape.group, slots);
  }
  // Where all wait for each other, which rank runs what makes no difference to other slots.
  const bool may_move =
      other.options().sync == Sync::microbatch && other.options().keep_groups != KeepGroups::rank;
  return may_move ? with_paced_places(other, std::move(slots)) : slots;
}

std::optional<NarrowerQuestion> find_whole_prompts(const Problem& problem) {
  NarrowerQuestion question;
  Work work;
  work.lengths = problem.work().lengths;
  work.extra_costs = problem.work().extra_costs;
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    const auto parts = problem.items_of(bundle);
    if (std::any_of(parts.begin(), parts.end(),
                    [&](ItemId item) { return problem.is_alone(item); })) {
      return std::nullopt;
    }
    question.parts.emplace_back(parts.begin(), parts.end());
    std::vector<SequenceId> whole;
    for (const ItemId item : parts) {
      const auto ids = problem.sequences_of(item);
      whole.insert(whole.end(), ids.begin(), ids.end());
    }
    std::sort(whole.begin(), whole.end());
    work.items.push_back(whole);
    work.bundles.push_back({bundle});
  }
  PlanOptions options = problem.options();
  options.keep_groups = KeepGroups::microbatch;
  question.problem = std::make_unique<Problem>(std::move(work), problem.topology(), problem.model(),
                                               options, problem.purse());
  if (question.problem->sizes().empty() || !holds_every_bundle(*question.problem)) {
    return std::nullopt;
  }
  return question;
}

std::vector<NarrowerQuestion> narrower_questions(const Problem& problem) {
  const PlanOptions& options = problem.options();
  const bool is_fixed = context_mode(options.context).kind == ContextMode::Kind::fixed;
  const bool has_stages = problem.topology().pipeline.stages > 1;
  // Ranks with many sequences each have other ways to be busy.
  const bool is_sparse = problem.num_items() <= 4 * problem.num_ranks();
  std::vector<NarrowerQuestion> questions;
  const auto add = [&](NarrowerQuestion question) {
    if (question.problem == nullptr || question.problem->sizes().empty()) return;
    if (holds_every_bundle(*question.problem)) questions.push_back(std::move(question));
  };
  // Those that are ahead most often come first. Groups of any size have asked aligned ones already.
  const bool asks_training =
      has_stages && options.pass == Pass::forward && (is_sparse || problem.has_speeds());
  const auto add_single_sequences = [&] {
    if (is_sparse && options.max_sequences != 1 && options.keep_groups == KeepGroups::none) {
      add({.problem = with_single_sequences(problem)});
    }
  };
  if (asks_training) add({.problem = with_training(problem)});
  if (!asks_training) add_single_sequences();
  // Where groups have any size and ranks their own counts, the bound does not see what they share:
  // that the answer is far from it says little. In pipelines aligned groups have asked.
  const bool is_loose = !problem.is_aligned() && (options.counts == Counts::free || has_stages);
  const bool is_paced = options.sync == Sync::microbatch;
  if (options.keep_groups == KeepGroups::rank && !is_loose && (has_stages || is_paced)) {
    if (auto question = find_whole_prompts(problem)) questions.push_back(*std::move(question));
  }
  // Slow ranks may be in all wide groups.
  if (has_stages && problem.has_speeds() && (is_fixed || !do_many_wait(problem))) {
    add({.problem = without_speeds(problem)});
  }
  // Groups of one size know best which of them are slow, and are even slots of few sequences.
  const bool has_even_slots = is_sparse && !has_stages && options.sync == Sync::microbatch;
  for (const std::int32_t size : problem.sizes()) {
    if (is_fixed || !(problem.has_speeds() || has_even_slots)) break;
    if (holds_all(problem, size)) add({.problem = with_static_size(problem, size)});
  }
  if (!problem.is_aligned()) return questions;  // aligned groups have asked the rest
  if (is_sparse || !has_stages) add({.problem = with_other_sync(problem)});
  if (!is_fixed) {
    for (auto& question : with_nodes(problem)) add({.problem = std::move(question)});
    if (is_sparse) add({.problem = with_smaller_groups(problem)});
    if (is_sparse && has_stages) add({.problem = find_powers(problem)});
  }
  if (asks_training) add_single_sequences();  // seldom ahead of what training finds
  return questions;
}

}  // namespace isochron
