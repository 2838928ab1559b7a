// Two ways to throw a plan together. By default every unit lands on random ranks that hold it, in a
// random slot where they are free; ranks that equal counts leave over take a unit from a crowded
// micro-batch, or a placeholder. Where placeholders are ruled out (Short::error, Short::drop) each
// unit fills a whole micro-batch, and there are exactly as many as the slots take, or a few more
// that are dropped.

#include "tests/support/random_plan.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "isochron/check/plan_cost.h"
#include "isochron/check/plan_time.h"
#include "isochron/check/plan_view.h"
#include "isochron/core/random.h"

namespace isochron {

namespace {

// What is thrown: sequences that stay together, and where to, if that is fixed.
struct Item {
  std::vector<SequenceId> ids;
  std::optional<RankRange> ranks = {};
};

struct DraftGroup {
  RankRange ranks;
  std::vector<Item> items = {};
  bool is_alone = false;
};

class Draft {
 public:
  Draft(std::uint64_t seed, const RandomPlanShape& shape) : random_(seed), shape_(shape) {}

  StepPlan make() {
    draw_topology();
    draw_options();
    draw_cost();
    list_ranges();
    if (plan_.options.short_ == Short::empty) {
      throw_all();
      if (plan_.options.counts == Counts::equal) fill_all();
      finish_policies();
    } else {
      fill_exactly();
    }
    finish();
    return plan_;
  }

 private:
  bool chance(std::uint64_t one_in) { return random_.below(one_in) == 0; }
  std::int32_t number(std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(random_.between(low, high));
  }
  template <class T>
  const T& pick(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(random_.below(values.size()))];
  }

  void draw_topology() {
    Topology& topology = plan_.topology;
    topology.ranks = shape_.ranks.value_or(chance(4) ? number(1, 97) : number(1, 12));
    PipelineShape& pipeline = topology.pipeline;
    const bool is_free = shape_.counts == Counts::free;
    pipeline.stages = shape_.stages.value_or(!is_free && chance(3) ? number(2, 4) : 1);
    const bool is_virtual = pipeline.stages > 1 && chance(2);
    pipeline.virtual_ = shape_.virtual_.value_or(is_virtual ? number(2, 3) : 1);
    if (pipeline.virtual_ > 1) pipeline.group = pipeline.stages + number(0, 2);
    if (pipeline.stages > 1 && chance(3)) pipeline.transfer_ns = number(1, 50'000);
    if (pipeline.stages > 1 && chance(3)) {
      double sum = 0;
      for (std::int32_t i = 0; i < pipeline.num_chunks(); ++i) {
        pipeline.shares.push_back(0.2 + random_.unit());
        sum += pipeline.shares.back();
      }
      for (double& share : pipeline.shares) share /= sum;
    }
    if (chance(4)) {
      for (std::int32_t i = 0; i < topology.ranks; ++i) {
        topology.rank_speed.push_back(0.5 + random_.unit());
      }
    }
  }

  std::string draw_context() {
    if (chance(3)) return "dynamic";
    if (chance(3)) return "dynamic:any";
    std::vector<std::int32_t> divisors;
    for (std::int32_t c = 1; c <= plan_.topology.ranks; ++c) {
      if (plan_.topology.ranks % c == 0) divisors.push_back(c);
    }
    return "static:" + std::to_string(chance(2) ? 1 : pick(divisors));
  }

  Short draw_short() {
    if (shape_.counts == Counts::free || chance(2)) return Short::empty;
    return pick(std::vector{Short::empty, Short::empty, Short::error, Short::drop});
  }

  void draw_options() {
    PlanOptions options;
    const std::int32_t ranks = plan_.topology.ranks;
    options.context = shape_.context.value_or(draw_context());
    const bool is_dynamic = context_mode(options.context).kind != ContextMode::Kind::fixed;
    options.short_ = shape_.short_.value_or(draw_short());
    if (is_dynamic && options.short_ == Short::empty && chance(3)) {
      options.min_context_size = number(1, std::bit_floor(static_cast<std::uint32_t>(ranks)));
      options.min_context_size = static_cast<std::int32_t>(
          std::bit_floor(static_cast<std::uint32_t>(options.min_context_size)));
      if (chance(2)) options.max_context_size = number(options.min_context_size, ranks);
    }
    const bool may_lock = shape_.counts != Counts::free;
    options.sync = shape_.sync.value_or(may_lock && chance(2) ? Sync::microbatch : Sync::step);
    options.counts = shape_.counts;
    if (!options.counts && (options.short_ != Short::empty || chance(2))) {
      options.counts = Counts::equal;
    }
    options.pass = shape_.pass.value_or(chance(3) ? Pass::forward : Pass::train);
    options.balance = !chance(6);
    options.tensor_parallel = shape_.tensor_parallel.value_or(1 << random_.below(3));
    options.keep_groups = shape_.keep_groups.value_or(
        pick(std::vector{KeepGroups::none, KeepGroups::rank, KeepGroups::microbatch}));
    options.oversize = shape_.oversize;
    if (!options.oversize && chance(3)) options.oversize = Oversize::alone;
    if (chance(4)) options.effort = number(0, 1000);
    if (chance(3)) options.max_sequences = number(max_unit, 9);
    plan_.topology.capacity =
        shape_.capacity.value_or(24 * options.tensor_parallel * number(1, 200));
    if (options.short_ == Short::empty && chance(4)) {
      options.pad_multiple = number(2, 8);
      if (chance(3)) options.pad = Pad::uneven;
    }
    plan_.options = resolved(options, plan_.topology);
    mode_ = context_mode(options.context);
  }

  std::vector<ContextLink> draw_links(std::int64_t block) {
    std::vector<ContextLink> links;
    if (chance(2)) {
      links.push_back({block, 100 + 300 * random_.unit(), 100 * random_.unit()});
    }
    links.push_back({max_ranks, 10 + 50 * random_.unit(), 200 * random_.unit()});
    return links;
  }

  void draw_cost() {
    if (shape_.cost) {
      plan_.cost = *shape_.cost;
      return;
    }
    CostModel& cost = plan_.cost;
    const bool is_integer = chance(2);
    cost.name = "random";
    cost.quadratic_ns = is_integer ? number(0, 2) : 2 * random_.unit();
    cost.linear_ns = is_integer ? number(0, 5000) : 5000 * random_.unit();
    if (chance(8)) cost.quadratic_ns = cost.linear_ns = 0;
    cost.microbatch_ns = chance(4) ? 0 : 100'000 * random_.unit();
    cost.forward_share = 0.25 + 0.5 * random_.unit();
    cost.activation_bytes_per_token = 10'000 * random_.unit();
    const std::int64_t block = 1 << random_.below(5);
    const ContextCost gather = {.kind = ContextKind::all_gather_kv,
                                .bytes_per_token = 10'000 * random_.unit(),
                                .links = draw_links(block),
                                .overlap = chance(2) ? 0 : random_.unit()};
    const ContextCost exchange = {.kind = ContextKind::all_to_all,
                                  .bytes_per_token = 30'000 * random_.unit(),
                                  .divides = number(1, 16),
                                  .links = {{block, 200, 50}},
                                  .overlap = 0};
    cost.context = chance(4)   ? std::vector{ContextCost{}}
                   : chance(3) ? std::vector{gather}
                               : std::vector{exchange, gather};
  }

  // Ranks that a group with sequences may have.
  void list_ranges() {
    using Kind = ContextMode::Kind;
    const std::int32_t ranks = plan_.topology.ranks;
    const PlanOptions& options = plan_.options;
    const std::int32_t largest = options.max_context_size == 0 ? ranks : options.max_context_size;
    for (std::int64_t size = options.min_context_size; size <= largest; ++size) {
      const bool is_power = (size & (size - 1)) == 0;
      if (mode_.kind == Kind::fixed && size != mode_.size) continue;
      if (mode_.kind == Kind::aligned && !is_power && ranks % size != 0) continue;
      sizes_.push_back(size);
      const std::int64_t step = mode_.kind == Kind::any ? 1 : size;
      for (std::int64_t first = 0; first + size <= ranks; first += step) {
        ranges_.push_back({first, size});
      }
    }
  }

  // Written out once more: tests of the padding rule must not rest on it alone.
  Tokens tokens(Tokens length, std::int64_t ranks) const {
    const std::int64_t multiple =
        ranks == 1 ? plan_.options.tensor_parallel : 2 * ranks * plan_.options.tensor_parallel;
    return (length + multiple - 1) / multiple * multiple / ranks;
  }
  Tokens tokens(const std::vector<SequenceId>& ids, std::int64_t ranks) const {
    Tokens sum = 0;
    for (const SequenceId id : ids) {
      const auto i = id.index();
      sum += tokens(i < plan_.batch.lengths.size() ? plan_.batch.lengths[i] : padding_row_length,
                    ranks);
    }
    return sum;
  }
  bool fits(const std::vector<SequenceId>& ids, std::int64_t ranks) const {
    return tokens(ids, ranks) <= plan_.topology.capacity;
  }

  // The longest sequence of which `count` fit on `ranks` ranks.
  Tokens longest(std::int64_t ranks, std::int64_t count) const {
    const std::int64_t multiple = (ranks == 1 ? 1 : 2) * plan_.options.tensor_parallel;
    return plan_.topology.capacity / count / multiple * multiple * ranks;
  }

  std::vector<SequenceId> add_unit(std::int64_t count, Tokens length_limit, bool is_exact) {
    Batch& batch = plan_.batch;
    const PromptGroupId group(static_cast<std::int32_t>(batch.group_names.size()));
    batch.group_names.push_back("prompt " + std::to_string(group.value()));
    std::vector<SequenceId> ids;
    for (std::int64_t i = 0; i < count; ++i) {
      ids.emplace_back(static_cast<std::int32_t>(batch.lengths.size()));
      batch.lengths.push_back(is_exact ? length_limit : random_.between(1, length_limit));
      batch.groups.push_back(group);
    }
    return ids;
  }

  void throw_all() {
    const KeepGroups keep = plan_.options.keep_groups;
    const bool may_be_over = plan_.options.oversize == Oversize::alone;
    const std::int64_t num_wanted = random_.between(1, shape_.num_sequences);
    while (static_cast<std::int64_t>(plan_.batch.lengths.size()) < num_wanted) {
      const bool is_over = may_be_over && chance(6);
      const std::int64_t count = keep == KeepGroups::none || (is_over && keep == KeepGroups::rank)
                                     ? 1
                                     : number(1, max_unit);
      const std::int64_t size = chance(3) ? pick(sizes_) : sizes_.front();
      const Tokens limit = std::min(longest(size, keep == KeepGroups::microbatch ? count : 1),
                                    shape_.longest.value_or(max_length));
      std::vector<SequenceId> ids = add_unit(count, limit, false);
      if (is_over) {
        Tokens& length = plan_.batch.lengths[ids.back().index()];
        length = std::max(longest(sizes_.back(), 1), longest(1, 1)) + number(1, 100);
        place_alone(std::move(ids));
      } else {
        const RankRange ranks = draw_ranks(ids);
        if (keep == KeepGroups::rank) {
          for (const SequenceId id : ids) place({.ids = {id}, .ranks = ranks}, ranks);
        } else {
          place({.ids = std::move(ids)}, ranks);
        }
      }
    }
    const auto num_real = static_cast<std::int32_t>(plan_.batch.lengths.size());
    if (plan_.options.pad != Pad::rows) return;
    while ((num_real + plan_.padding_rows) % plan_.options.pad_multiple != 0) {
      const std::vector<SequenceId> row = {SequenceId(num_real + plan_.padding_rows++)};
      place({.ids = row}, draw_ranks(row));
    }
  }

  // Ranks that hold all of them, under keep_groups rank one after the other.
  RankRange draw_ranks(const std::vector<SequenceId>& ids) {
    std::vector<RankRange> candidates;
    for (const RankRange ranks : ranges_) {
      bool holds = fits(ids, ranks.size);
      if (plan_.options.keep_groups == KeepGroups::rank) {
        holds = std::all_of(ids.begin(), ids.end(),
                            [&](SequenceId id) { return fits({id}, ranks.size); });
      }
      if (holds) candidates.push_back(ranks);
    }
    if (chance(2)) {  // narrow ones are few among many
      const std::int64_t narrow = candidates.front().size;
      std::erase_if(candidates, [&](RankRange ranks) { return ranks.size != narrow; });
    }
    return pick(candidates);
  }

  void place_alone(std::vector<SequenceId> ids) {
    const std::int64_t ranks = plan_.topology.ranks;
    RankRange range = {0, ranks};
    if (mode_.kind == ContextMode::Kind::fixed) range = pick(ranges_);
    plan_.oversized.insert(plan_.oversized.end(), ids.begin(), ids.end());
    free_slot(range).push_back(
        {.ranks = range, .items = {{.ids = std::move(ids)}}, .is_alone = true});
  }

  void place(Item item, RankRange ranks) {
    for (std::size_t i = 0; i < slots_.size() && !chance(8); ++i) {
      for (DraftGroup& group : pick_slot()) {
        if (group.ranks != ranks || !has_room(group, item)) continue;
        group.items.push_back(std::move(item));
        return;
      }
    }
    free_slot(ranks).push_back({.ranks = ranks, .items = {std::move(item)}});
  }

  std::vector<DraftGroup>& pick_slot() {
    return slots_[static_cast<std::size_t>(random_.below(slots_.size()))];
  }

  bool has_room(const DraftGroup& group, const Item& item) const {
    if (group.is_alone) return false;
    Tokens sum = tokens(item.ids, group.ranks.size);
    std::size_t count = item.ids.size();
    for (const Item& other : group.items) {
      sum += tokens(other.ids, group.ranks.size);
      count += other.ids.size();
    }
    const auto most = static_cast<std::size_t>(plan_.options.max_sequences);
    return sum <= plan_.topology.capacity && (most == 0 || count <= most);
  }

  // A slot in which nobody uses these ranks.
  std::vector<DraftGroup>& free_slot(RankRange ranks) {
    const std::size_t num_slots = slots_.size();
    const std::size_t start = num_slots == 0 ? 0 : random_.below(num_slots);
    for (std::size_t i = 0; i < num_slots; ++i) {
      auto& slot = slots_[(start + i) % num_slots];
      const bool is_free = std::none_of(slot.begin(), slot.end(), [&](const DraftGroup& group) {
        return group.ranks.first < ranks.first + ranks.size &&
               ranks.first < group.ranks.first + group.ranks.size;
      });
      if (is_free) return slot;
    }
    return slots_.emplace_back();
  }

  // Every rank into every slot.
  void fill_all() {
    while (slots_.size() % static_cast<std::size_t>(plan_.topology.pipeline.group) != 0) {
      slots_.emplace_back();
    }
    const std::int64_t size = mode_.kind == ContextMode::Kind::fixed ? mode_.size : 1;
    const bool may_work = size >= plan_.options.min_context_size;
    for (auto& slot : slots_) {
      std::vector<bool> is_busy(static_cast<std::size_t>(plan_.topology.ranks));
      for (const DraftGroup& group : slot) {
        const auto first = is_busy.begin() + static_cast<std::ptrdiff_t>(group.ranks.first);
        std::fill(first, first + group.ranks.size, true);
      }
      for (std::int64_t rank = 0; rank < plan_.topology.ranks; rank += size) {
        if (is_busy[static_cast<std::size_t>(rank)]) continue;
        const RankRange ranks = {rank, size};
        std::optional<Item> item;
        if (may_work) item = take_away(ranks);
        if (item) {
          slot.push_back({.ranks = ranks, .items = {std::move(*item)}});
        } else {
          for (std::int64_t i = 0; i < size; ++i) slot.push_back({.ranks = {rank + i, 1}});
        }
      }
    }
  }

  // Something that can run there, from a micro-batch that has more.
  std::optional<Item> take_away(RankRange ranks) {
    for (auto& slot : slots_) {
      for (DraftGroup& group : slot) {
        if (group.items.size() < 2) continue;
        for (std::size_t i = 0; i < group.items.size(); ++i) {
          const Item& item = group.items[i];
          if (!fits(item.ids, ranks.size) || (item.ranks && *item.ranks != ranks)) continue;
          const Item taken = item;
          group.items.erase(group.items.begin() + static_cast<std::ptrdiff_t>(i));
          return taken;
        }
      }
    }
    return std::nullopt;
  }

  // Without a placeholder any policy would have done.
  void finish_policies() {
    bool has_placeholder = false;
    for (const auto& slot : slots_) {
      for (const DraftGroup& group : slot) has_placeholder |= group.items.empty();
    }
    if (has_placeholder || shape_.short_) return;
    plan_.options.short_ = pick(std::vector{Short::empty, Short::error, Short::drop});
  }

  // Units that fill a micro-batch each, as many as the slots take.
  void fill_exactly() {
    std::vector<std::int64_t> divisors;
    for (const std::int64_t size : sizes_) {
      if (plan_.topology.ranks % size == 0) divisors.push_back(size);
    }
    const std::int64_t size = pick(divisors);
    const std::int64_t num_blocks = plan_.topology.ranks / size;
    const std::int64_t num_slots = plan_.topology.pipeline.group * number(1, 2);
    const std::int64_t num_units = num_blocks * num_slots;
    const bool is_kept = plan_.options.keep_groups == KeepGroups::microbatch;
    const auto draw_unit = [&] {
      const std::int64_t count = is_kept ? number(1, max_unit) : 1;
      return add_unit(count, longest(size, count), true);
    };
    std::vector<std::int64_t> places;
    for (std::int64_t i = 0; i < num_units; ++i) places.push_back(i);
    random_.shuffle(places);
    slots_.resize(static_cast<std::size_t>(num_slots));
    for (const std::int64_t place : places) {
      const RankRange ranks = {place % num_blocks * size, size};
      slots_[static_cast<std::size_t>(place / num_blocks)].push_back(
          {.ranks = ranks, .items = {{.ids = draw_unit()}}});
    }
    if (plan_.options.short_ != Short::drop) return;
    const std::int64_t num_dropped = random_.between(0, num_blocks - 1);
    for (std::int64_t i = 0; i < num_dropped; ++i) {
      for (const SequenceId id : draw_unit()) plan_.dropped.push_back(id);
    }
  }

  void finish() {
    for (auto& slot : slots_) {
      std::sort(slot.begin(), slot.end(), [](const DraftGroup& a, const DraftGroup& b) {
        return a.ranks.first < b.ranks.first;
      });
      Slot& groups = plan_.microbatches.emplace_back();
      for (const DraftGroup& draft : slot) {
        ContextGroup group{.ranks = draft.ranks, .sequences = {}};
        for (const Item& item : draft.items) {
          group.sequences.insert(group.sequences.end(), item.ids.begin(), item.ids.end());
        }
        std::sort(group.sequences.begin(), group.sequences.end());
        groups.push_back(std::move(group));
      }
    }
    std::sort(plan_.oversized.begin(), plan_.oversized.end());
    if (plan_.options.keep_groups == KeepGroups::none && chance(2)) {
      plan_.batch.groups.clear();
      plan_.batch.group_names.clear();
    }
    if (chance(4)) {
      for (std::size_t i = 0; i < plan_.batch.lengths.size(); ++i) {
        plan_.batch.extra_cost_ns.push_back(number(0, 1'000'000));
      }
    }
    plan_.first_sequence = chance(2) ? 0 : number(0, 1'000'000);
    choose_exchanges();
    add_numbers();
  }

  void choose_exchanges() {
    if (plan_.cost.context.size() < 2) return;
    const check::PlanView view(plan_);
    for (Slot& slot : plan_.microbatches) {
      for (ContextGroup& group : slot) {
        if (group.ranks.size == 1) continue;
        std::optional<Nanoseconds> least;
        for (const ContextCost& exchange : plan_.cost.context) {
          const auto cost = check::find_cost_with(view, group, exchange);
          if (!cost || (least && *least <= *cost)) continue;
          least = cost;
          group.exchange = exchange.kind;
        }
      }
    }
  }

  void add_numbers() {
    const check::PlanTimes times = check::plan_times(check::PlanView(plan_));
    plan_.predicted_step_ns = times.step_ns;
    plan_.imbalance = times.imbalance;
    plan_.peak_activation_bytes = times.peak_activation_bytes;
    plan_.lower_bound_ns = chance(3) ? times.step_ns : random_.between(0, times.step_ns);
    plan_.status =
        plan_.lower_bound_ns == plan_.predicted_step_ns ? Status::optimal : Status::feasible;
    const auto peak =
        *std::max_element(times.peak_activation_bytes.begin(), times.peak_activation_bytes.end());
    if (chance(4)) plan_.options.max_activation_bytes = peak;
  }

  static constexpr std::int64_t max_unit = 3;  // sequences of a prompt group

  Random random_;
  const RandomPlanShape& shape_;
  StepPlan plan_;
  ContextMode mode_;
  std::vector<std::int64_t> sizes_;  // of groups with sequences, ascending
  std::vector<RankRange> ranges_;
  std::vector<std::vector<DraftGroup>> slots_;
};

}  // namespace

StepPlan random_plan(std::uint64_t seed, const RandomPlanShape& shape) {
  return Draft(seed, shape).make();
}

}  // namespace isochron
