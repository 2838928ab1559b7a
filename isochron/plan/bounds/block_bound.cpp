// Bundles that hardly fit side by side.
//
// Aligned groups of at most B ranks stand in one block of B, wider ones cover whole blocks. Within
// T the work in a block fills at most B * T, so every bundle has a part x of the blocks it stands
// in. For a dual feasible function f the f(x) of a block add up to at most 1 (Fekete and Schepers,
// 2001), and over all blocks to at most their number: few large parts leave holes that the plain
// area does not see. Micro-batches count in one of two ways: by the share of their capacity that a
// bundle fills, or once on every rank, which then has less time.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "isochron/plan/bounds/bounds.h"

namespace isochron {

namespace {

// A dual feasible function of parts of a whole.
struct PartRule {
  enum class Kind { threshold, steps };
  Kind kind = Kind::threshold;
  double value = 0;  // threshold: at most 1/2; steps: their number

  [[nodiscard]] double operator()(double part) const {
    const double x = part * (1 - 1e-9);  // less by more than all roundings: f never falls
    if (x >= 1) return 1;
    if (kind == Kind::steps) {
      const auto whole = static_cast<std::int64_t>((value + 1) * x);  // no part is negative
      return std::min(1.0, static_cast<double>(whole) / value);
    }
    if (x > 1 - value) return 1;
    return x < value ? 0 : x;
  }
  // Whether all parts up to this one count as nothing: f never falls.
  [[nodiscard]] bool ignores(double largest) const { return (*this)(largest) == 0; }
};

enum class Fixed { by_share, on_every_rank };

class BlockBound {
 public:
  explicit BlockBound(const Problem& problem) : problem_(problem) {
    const auto sizes = problem.sizes();
    for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
      begin_.push_back(options_.size());
      for (const std::int32_t size : sizes) {
        if (!problem.fits(size, bundle)) continue;
        Tokens tokens = 0;
        for (const ItemId item : problem.items_of(bundle)) tokens += problem.tokens(size, item);
        const auto cost = static_cast<double>(problem.least_cost(size, bundle));
        const auto fixed = static_cast<double>(problem.least_fixed(size));
        const double share =
            static_cast<double>(tokens) / static_cast<double>(problem.capacity() * size);
        options_.push_back({.size = static_cast<double>(size),
                            .time = cost + fixed,
                            .cost = cost,
                            .shared = cost + fixed * share});
      }
    }
    begin_.push_back(options_.size());
  }

  Nanoseconds raised(Nanoseconds low) {
    using Kind = PartRule::Kind;
    for (const std::int32_t block : problem_.sizes()) {
      if (problem_.num_ranks() % block != 0) continue;
      for (const Fixed fixed : {Fixed::by_share, Fixed::on_every_rank}) {
        set_blocks(block, fixed);
        for (const double edge : {least_edge, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5}) {
          low = raised_roughly(low, {.kind = Kind::threshold, .value = edge});
        }
        for (const double steps : {1, 2, 3, 4, 5}) {
          low = raised_roughly(low, {.kind = Kind::steps, .value = steps});
        }
      }
    }
    return raised_by_rivals(low);
  }

 private:
  struct Option {  // a bundle on a size
    double size = 1;
    double time = 0;  // of a micro-batch with it alone
    double cost = 0;
    double shared = 0;  // with its share of the micro-batch
  };

  // Less than this is not worth a look: many rules end at the time of one option.
  static Nanoseconds least_rise(Nanoseconds low) { return std::max<Nanoseconds>(1, low >> 14); }

  struct Rival {  // a rule that may raise the bound further
    std::int32_t block = 1;
    Fixed fixed = Fixed::by_share;
    PartRule rule;
    Nanoseconds passes = 0;  // the rule does not exclude this
  };

  // Raised by the rule some way: many rules do that, and few of them are among the last.
  Nanoseconds raised_roughly(Nanoseconds low, const PartRule& rule) {
    // Parts fall with the target: what is possible stays so.
    if (is_possible(low + least_rise(low), rule)) return low;
    low += least_rise(low);
    Nanoseconds step = std::max<Nanoseconds>(1, low >> 9);
    Nanoseconds passes = low + step;
    while (!is_possible(passes, rule)) {
      low = passes;
      step *= 2;
      passes += step;
    }
    rivals_.push_back({.block = block_, .fixed = fixed_, .rule = rule, .passes = passes});
    return low;
  }

  // Raised as far as one of the rules says that raised it before.
  Nanoseconds raised_by_rivals(Nanoseconds low) {
    std::stable_sort(rivals_.begin(), rivals_.end(),
                     [](const Rival& a, const Rival& b) { return a.passes > b.passes; });
    for (const Rival& rival : rivals_) {
      if (rival.passes <= low) break;
      set_blocks(rival.block, rival.fixed);
      if (is_possible(low + least_rise(low), rival.rule)) continue;
      low += least_rise(low);
      Nanoseconds passes = rival.passes;
      while (passes - low > least_rise(low)) {
        const Nanoseconds middle = low + (passes - low) / 2;
        (is_possible(middle, rival.rule) ? passes : low) = middle;
      }
    }
    return low;
  }

  bool is_possible(Nanoseconds target, const PartRule& rule) {
    if (target != target_) set_parts(target);
    if (!has_room_) return false;
    if (rule.ignores(largest_)) return true;
    const double limit = problem_.num_ranks() / static_cast<double>(block_);
    double sum = 0;
    std::size_t first_wider = 0;
    for (const Parts& parts : parts_) {
      double least = parts.within < infinite ? rule(parts.within) : infinite;
      // A wider group has its part of every block that it covers; of the widest it is least, and
      // soon counts as nothing.
      for (std::size_t k = first_wider; k < parts.end_of_wider && least > 0; ++k) {
        least = std::min(least, wider_[k].num_blocks * rule(wider_[k].part));
      }
      first_wider = parts.end_of_wider;
      sum += least;
      if (sum * (1 - 1e-9) > limit) return false;
    }
    return true;
  }

  double load_of(const Option& option) const {
    return fixed_ == Fixed::by_share ? option.shared : option.cost;
  }

  void set_blocks(std::int32_t block, Fixed fixed) {
    block_ = block;
    fixed_ = fixed;
    target_ = -1;
    narrow_.clear();
    for (std::size_t i = 0; i + 1 < begin_.size(); ++i) {
      Narrow narrow{.end = begin_[i]};
      for (; narrow.end < begin_[i + 1] && options_[narrow.end].size <= block_; ++narrow.end) {
        const Option& option = options_[narrow.end];
        const double area = option.size * load_of(option);
        if (area < narrow.area) narrow = {.area = area, .time = option.time, .end = narrow.end};
      }
      narrow_.push_back(narrow);
    }
  }

  // The least area of a bundle within a block and a time.
  double area_within(std::size_t i, double time) const {
    if (narrow_[i].time <= time) return narrow_[i].area;
    double area = infinite;
    for (std::size_t k = begin_[i]; k < narrow_[i].end; ++k) {
      const Option& option = options_[k];
      if (option.time <= time) area = std::min(area, option.size * load_of(option));
    }
    return area;
  }

  // Of all bundles, in blocks that are done within a target.
  void set_parts(Nanoseconds target) {
    target_ = target;
    const auto time = static_cast<double>(target);
    const double room =
        fixed_ == Fixed::by_share ? time : time - static_cast<double>(problem_.microbatch());
    has_room_ = room > 0;
    if (!has_room_) return;
    const double by_load = 1 / room;
    parts_.clear();
    wider_.clear();
    largest_ = 0;
    for (std::size_t i = 0; i + 1 < begin_.size(); ++i) {
      // Rules never fall: of the sizes within a block the least area decides.
      const double within = area_within(i, time) * by_load / block_;
      double least = within;
      const std::size_t first_wider = wider_.size();
      for (std::size_t k = begin_[i + 1]; k-- > narrow_[i].end && least >= least_edge;) {
        const Option& option = options_[k];
        if (option.time > time) continue;
        const double part = load_of(option) * by_load;
        wider_.push_back({.num_blocks = option.size / block_, .part = part});
        least = std::min(least, part);
      }
      if (least < least_edge) {  // counts as nothing
        wider_.resize(first_wider);
        continue;
      }
      parts_.push_back({.within = within, .end_of_wider = wider_.size()});
      largest_ = std::max(largest_, within);
    }
  }

  static constexpr double infinite = std::numeric_limits<double>::infinity();
  static constexpr double least_edge = 0.05;  // smaller parts count as nothing by every rule

  struct Narrow {  // of a bundle, on the sizes within a block
    double area = infinite;
    double time = infinite;  // of the option with that area
    std::size_t end = 0;     // of these options; wider ones follow
  };
  struct Parts {                   // of a bundle that may count
    double within = infinite;      // of a block
    std::size_t end_of_wider = 0;  // groups, widest first, after those of the bundle before
  };
  struct Wider {  // group
    double num_blocks = 1;
    double part = 0;  // of each
  };

  const Problem& problem_;
  std::vector<std::size_t> begin_;  // of the options of each bundle
  std::vector<Option> options_;
  std::int32_t block_ = 1;
  Fixed fixed_ = Fixed::by_share;
  std::vector<Rival> rivals_;
  // Of these blocks:
  std::vector<Narrow> narrow_;
  // And of the target that was asked for last:
  Nanoseconds target_ = -1;
  bool has_room_ = false;
  std::vector<Parts> parts_;
  double largest_ = 0;  // of the parts within a block
  std::vector<Wider> wider_;
};

}  // namespace

Nanoseconds block_bound(const Problem& problem, Nanoseconds low) {
  constexpr std::int32_t max_bundles_per_rank = 4;  // with more of them holes are small
  const auto sizes = problem.sizes();
  bool is_nested = problem.is_aligned() && !problem.has_speeds();
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    is_nested = is_nested && sizes[i] % sizes[i - 1] == 0;
  }
  const bool is_few = problem.num_bundles() / max_bundles_per_rank <= problem.num_ranks();
  if (!is_nested || !is_few || low <= 0) return low;
  return BlockBound(problem).raised(low);
}

}  // namespace isochron
