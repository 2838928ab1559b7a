// Whoever says that there is no plan is wrong if one of these is: units one after the other, from
// rank 0 on, each on a group that holds it. Ranks beside it sit out, unless that is not wanted;
// then every slot has to be full. What a limit on activations allows is counted as if the plan were
// run.

#include "isochron/check/plain_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "isochron/check/plan_cost.h"
#include "isochron/check/plan_sizes.h"
#include "isochron/check/plan_time.h"

namespace isochron::check {

namespace {

using Ids = std::vector<SequenceId>;

class PlainPlan {
 public:
  explicit PlainPlan(const PlanView& view)
      : view_(view),
        options_(view.options()),
        limit_(options_.max_activation_bytes),
        is_full_(options_.counts == Counts::equal && options_.short_ != Short::empty),
        all_sizes_(group_sizes(view)),
        sizes_(all_sizes_) {
    std::map<std::int64_t, Ids> kept;
    for (std::int32_t i = 0; i < view.num_real(); ++i) {
      const SequenceId id(i);
      if (options_.keep_groups == KeepGroups::microbatch) {
        kept[view.unit_of(id)].push_back(id);
      } else {
        units_.push_back({id});
      }
    }
    for (auto& [unit, ids] : kept) units_.push_back(std::move(ids));
    const std::int64_t rest = view.num_real() % options_.pad_multiple;
    num_padding_ = options_.pad == Pad::rows && rest > 0 ? options_.pad_multiple - rest : 0;
    is_divided_ = rest == 0;
    // Prompt groups on one set of ranks: then all are as wide as the widest needs. Full slots: all
    // ranks.
    is_one_size_ = view.is_dynamic() && (options_.keep_groups == KeepGroups::rank || is_full_);
    if (is_one_size_ && !sizes_.empty()) sizes_ = {sizes_.back()};
    alone_size_ = view.is_dynamic() ? view.num_ranks() : view.mode().size;
    may_be_alone_ = options_.oversize == Oversize::alone &&
                    !(view.is_dynamic() && options_.keep_groups == KeepGroups::rank) &&
                    is_runnable(view.plan().cost, {.first = 0, .size = alone_size_});
  }

  [[nodiscard]] std::optional<std::string> find() const {
    if (options_.pad == Pad::error && !is_divided_) return std::nullopt;
    // Which of many plans keep a limit, one that gave up need not know.
    if (limit_ > 0 && view_.plan().status == Status::unknown) return std::nullopt;
    const std::int64_t num_dropped = is_full_ ? num_to_drop() : 0;
    if (num_dropped < 0 || !runs_every_unit() || !keeps_limit()) return std::nullopt;
    const std::string_view what =
        options_.keep_groups == KeepGroups::microbatch ? "prompt group" : "sequence";
    const std::string but =
        num_dropped > 0 ? fmt::format("without the last {} ", num_dropped) : std::string();
    if (is_full_ && !view_.is_dynamic()) {
      return fmt::format("{}the {}s fill slots of {} groups one by one", but, what, num_groups());
    }
    return fmt::format("{}every {} can run {}in a slot of its own", but, what,
                       is_full_ ? "on all ranks " : "");
  }

 private:
  // Side by side in a full slot.
  [[nodiscard]] std::int64_t num_groups() const {
    return view_.is_dynamic() ? 1 : view_.num_ranks() / view_.mode().size;
  }

  // Units after which all slots are full; -1 if that is not plain to see.
  [[nodiscard]] std::int64_t num_to_drop() const {
    // Dealt in order, and bound to their ranks, units do not go where there is room.
    if (!options_.balance) return -1;
    if (!view_.is_dynamic() && options_.keep_groups == KeepGroups::rank) return -1;
    if (view_.is_dynamic() && (sizes_.empty() || sizes_.back() != view_.num_ranks())) return -1;
    const std::int64_t step = view_.is_dynamic() ? view_.num_ranks() : view_.mode().size;
    for (std::int64_t first = 0; first < view_.num_ranks(); first += step) {
      if (!is_runnable(view_.plan().cost, {.first = first, .size = step})) return -1;
    }
    const PipelineShape& shape = view_.plan().topology.pipeline;
    const std::int64_t multiple = num_groups() * (shape.virtual_ > 1 ? shape.group : 1);
    const std::int64_t count = static_cast<std::int64_t>(units_.size()) + num_padding_;
    if (count % multiple == 0) return 0;
    // Prompts that keep their ranks are dropped whole.
    const bool may_drop = options_.short_ == Short::drop && !view_.must_divide() &&
                          options_.keep_groups != KeepGroups::rank;
    if (!may_drop || count < multiple) return -1;
    return count % multiple;
  }

  [[nodiscard]] bool is_within_limit(Tokens tokens) const {
    if (limit_ == 0 || view_.plan().topology.pipeline.stages > 1) return true;
    const double bytes = view_.plan().cost.activation_bytes_per_token;
    return rounded(static_cast<double>(tokens) * bytes, "activation bytes") <= limit_;
  }

  // The size of a group that holds the unit; 0 if none does.
  [[nodiscard]] std::int64_t size_for(const Ids& ids) const {
    if (!sizes_.empty()) {
      for (const std::int64_t size : {sizes_.front(), sizes_.back()}) {
        const Tokens tokens = view_.tokens_per_rank(ids, size);
        if (tokens <= view_.plan().topology.capacity && is_within_limit(tokens)) return size;
      }
    }
    if (fits_some_size(view_, all_sizes_, ids)) return 0;  // what fits may not stand alone
    const bool runs = may_be_alone_ && is_within_limit(view_.tokens_per_rank(ids, alone_size_));
    return runs ? alone_size_ : 0;
  }

  [[nodiscard]] bool runs_every_unit() const {
    const auto most = static_cast<std::size_t>(options_.max_sequences);
    for (const Ids& ids : units_) {
      if ((most > 0 && ids.size() > most) || size_for(ids) == 0) return false;
    }
    if (num_padding_ == 0) return true;
    const auto holds_row = [&](std::int64_t size) {
      return view_.tokens_per_rank(padding_row_length, size) <= view_.plan().topology.capacity;
    };
    const auto runs_row = [&](std::int64_t size) {
      return holds_row(size) && is_within_limit(view_.tokens_per_rank(padding_row_length, size));
    };
    if (std::any_of(sizes_.begin(), sizes_.end(), runs_row)) return true;
    return may_be_alone_ && limit_ == 0 &&
           std::none_of(all_sizes_.begin(), all_sizes_.end(), holds_row);
  }

  // With stages, where several slots are in flight: the units in their order, each on the largest
  // group, are run.
  [[nodiscard]] bool keeps_limit() const {
    const PipelineShape& shape = view_.plan().topology.pipeline;
    if (limit_ == 0 || shape.stages == 1) return true;
    constexpr double most = 1 << 20;  // a second; more is not looked at
    const double size = static_cast<double>(units_.size()) *
                        static_cast<double>(view_.num_ranks()) * shape.num_chunks();
    if (size > most || num_padding_ > 0 || sizes_.empty() || may_be_alone_ || is_full_)
      return false;
    StepPlan plan = view_.plan();
    plan.microbatches.clear();
    for (const Ids& ids : units_) {
      const std::int64_t widest = view_.fits(ids, sizes_.back()) ? sizes_.back() : sizes_.front();
      plan.microbatches.push_back(
          {ContextGroup{.ranks = {.first = 0, .size = widest}, .sequences = ids}});
    }
    const auto group = static_cast<std::size_t>(shape.virtual_ > 1 ? shape.group : 1);
    while (plan.microbatches.size() % group != 0) plan.microbatches.emplace_back();
    const std::vector<std::int64_t> peaks = peak_activation_bytes(PlanView(plan));
    return *std::max_element(peaks.begin(), peaks.end()) <= limit_;
  }

  const PlanView& view_;
  const PlanOptions& options_;
  std::int64_t limit_;  // on activations; 0: none
  bool is_full_;        // placeholders are not wanted
  std::vector<std::int64_t> all_sizes_;
  std::vector<std::int64_t> sizes_;  // that the plan has
  std::vector<Ids> units_;
  std::int64_t num_padding_ = 0;  // rows, each a unit
  bool is_divided_ = true;
  bool is_one_size_ = false;
  std::int64_t alone_size_ = 1;
  bool may_be_alone_ = false;
};

}  // namespace

std::optional<std::string> find_plain_plan(const PlanView& view) { return PlainPlan(view).find(); }

}  // namespace isochron::check
