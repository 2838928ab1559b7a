// Annealing over the places of bundles in the tree of blocks.
//
// Groups that nest run widest first, so no rank waits, and a rank is done after the sum of its
// blocks from the root of the tree down. A bundle is one unit: its costs and tokens on every size
// are added up once, the micro-batches of a block are counted by their tokens. A change takes a
// bundle from the ranks that are done last to another block, or exchanges it with one from there,
// and costs a walk to the root. Items are packed once, at the end.

#include "isochron/plan/bundles/bundle_search.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "isochron/core/random.h"
#include "isochron/plan/cooling.h"

namespace isochron {

namespace {

class BlockTree {
 public:
  using NodeId = std::int32_t;

  explicit BlockTree(const Problem& problem) : problem_(problem) {
    const auto sizes = problem.sizes();
    for (const std::int32_t size : sizes) {
      Level level{.size = size,
                  .first_node = static_cast<NodeId>(nodes_.size()),
                  .num_blocks = problem.num_ranks() / size,
                  .fixed = problem.price(problem.cheapest_price(size)).fixed,
                  .capacity = problem.capacity() * size};
      const NodeId first_below = levels_.empty() ? -1 : levels_.back().first_node;
      const std::int32_t fan = levels_.empty() ? 0 : size / levels_.back().size;
      for (std::int32_t block = 0; block < level.num_blocks; ++block) {
        nodes_.push_back({.level = static_cast<std::int32_t>(levels_.size()),
                          .first_child = first_below + block * fan,
                          .num_children = fan});
      }
      for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
        Unit unit;
        if (problem.fits(size, bundle)) {
          unit.cost = problem.cost(problem.cheapest_price(size), bundle);
          for (const ItemId item : problem.items_of(bundle)) {
            unit.tokens += problem.tokens(size, item);
            unit.sequences += problem.num_sequences(item);
          }
          unit.fits = true;
        }
        level.units.push_back(unit);
      }
      levels_.push_back(std::move(level));
    }
    // A root over the widest blocks, which runs nothing itself.
    const Level& widest = levels_.back();
    nodes_.push_back({.level = num_levels(),
                      .first_child = widest.first_node,
                      .num_children = widest.num_blocks});
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      for (std::int32_t k = 0; k < nodes_[n].num_children; ++k) {
        at(nodes_[n].first_child + k).parent = static_cast<NodeId>(n);
      }
    }
    const auto count = static_cast<std::size_t>(problem.num_bundles());
    node_of_.assign(count, -1);
    spot_of_.assign(count, 0);
  }

  [[nodiscard]] std::int32_t num_levels() const {
    return static_cast<std::int32_t>(levels_.size());
  }
  [[nodiscard]] NodeId root() const { return static_cast<NodeId>(nodes_.size()) - 1; }
  [[nodiscard]] NodeId node_at(RankRange ranks) const {
    const auto sizes = problem_.sizes();
    const auto level = static_cast<std::size_t>(
        std::lower_bound(sizes.begin(), sizes.end(), ranks.size) - sizes.begin());
    return levels_[level].first_node + static_cast<NodeId>(ranks.first / ranks.size);
  }
  [[nodiscard]] NodeId node_of(BundleId bundle) const {
    return node_of_[static_cast<std::size_t>(bundle)];
  }
  [[nodiscard]] std::int32_t level_of(NodeId node) const { return at(node).level; }
  [[nodiscard]] std::int32_t num_blocks(std::int32_t level) const {
    return levels_[static_cast<std::size_t>(level)].num_blocks;
  }
  [[nodiscard]] NodeId first_node(std::int32_t level) const {
    return levels_[static_cast<std::size_t>(level)].first_node;
  }
  [[nodiscard]] bool fits(std::int32_t level, BundleId bundle) const {
    return unit(level, bundle).fits;
  }
  // Alone on a block.
  [[nodiscard]] Nanoseconds time_of(std::int32_t level, BundleId bundle) const {
    return unit(level, bundle).cost + levels_[static_cast<std::size_t>(level)].fixed;
  }
  [[nodiscard]] std::span<const BundleId> bundles_of(NodeId node) const { return at(node).bundles; }
  [[nodiscard]] Nanoseconds time() const { return nodes_.back().height; }

  // The child that is done last, or first.
  [[nodiscard]] NodeId latest_child(NodeId node) const {
    return best_child(node, [](Nanoseconds a, Nanoseconds b) { return a > b; });
  }
  [[nodiscard]] NodeId earliest_child(NodeId node) const {
    return best_child(node, [](Nanoseconds a, Nanoseconds b) { return a < b; });
  }

  void add(BundleId bundle, NodeId id) {
    Node& node = at(id);
    const Unit& moved = unit(node.level, bundle);
    node_of_[static_cast<std::size_t>(bundle)] = id;
    spot_of_[static_cast<std::size_t>(bundle)] = node.bundles.size();
    node.bundles.push_back(bundle);
    change(id, moved.cost, moved.tokens, moved.sequences);
  }

  void remove(BundleId bundle) {
    const NodeId id = node_of(bundle);
    Node& node = at(id);
    const Unit& moved = unit(node.level, bundle);
    const std::size_t spot = spot_of_[static_cast<std::size_t>(bundle)];
    node.bundles[spot] = node.bundles.back();
    spot_of_[static_cast<std::size_t>(node.bundles[spot])] = spot;
    node.bundles.pop_back();
    change(id, -moved.cost, -moved.tokens, -moved.sequences);
  }

  [[nodiscard]] const std::vector<NodeId>& places() const { return node_of_; }

  // The step in which every bundle stands at its place of these.
  [[nodiscard]] Draft draft(const std::vector<NodeId>& places) const {
    std::vector<RankRange> ranks;
    for (const NodeId node : places) {
      const Level& level = levels_[static_cast<std::size_t>(at(node).level)];
      ranks.push_back(
          {.first = std::int64_t{node - level.first_node} * level.size, .size = level.size});
    }
    return bundle_draft(problem_, ranks);
  }

 private:
  struct Unit {  // a bundle on a size
    Nanoseconds cost = 0;
    Tokens tokens = 0;
    std::int32_t sequences = 0;
    bool fits = false;
  };
  struct Level {
    std::int32_t size = 1;
    NodeId first_node = 0;
    std::int32_t num_blocks = 0;
    Nanoseconds fixed = 0;  // of a micro-batch
    Tokens capacity = 0;
    std::vector<Unit> units = {};  // of each bundle
  };
  struct Node {
    std::int32_t level = 0;
    NodeId parent = -1;
    NodeId first_child = 0;
    std::int32_t num_children = 0;
    Nanoseconds cost = 0;  // of its bundles, without micro-batches
    Tokens tokens = 0;
    std::int32_t sequences = 0;
    Nanoseconds own = 0;     // with them
    Nanoseconds height = 0;  // of this and the highest child
    std::vector<BundleId> bundles = {};
  };

  Node& at(NodeId id) { return nodes_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] const Node& at(NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] const Unit& unit(std::int32_t level, BundleId bundle) const {
    return levels_[static_cast<std::size_t>(level)].units[static_cast<std::size_t>(bundle)];
  }

  template <class Before>
  [[nodiscard]] NodeId best_child(NodeId id, Before before) const {
    const Node& node = at(id);
    NodeId best = node.first_child;
    for (std::int32_t k = 1; k < node.num_children; ++k) {
      if (before(at(node.first_child + k).height, at(best).height)) best = node.first_child + k;
    }
    return best;
  }

  void change(NodeId id, Nanoseconds cost, Tokens tokens, std::int32_t sequences) {
    Node& node = at(id);
    const Level& level = levels_[static_cast<std::size_t>(node.level)];
    const Nanoseconds before = node.own;
    node.cost += cost;
    node.tokens += tokens;
    node.sequences += sequences;
    Tokens groups = (node.tokens + level.capacity - 1) / level.capacity;
    if (const std::int32_t most = problem_.options().max_sequences; most > 0) {
      groups = std::max<Tokens>(groups, (node.sequences + most - 1) / most);
    }
    node.own = node.cost + groups * level.fixed;
    node.height += node.own - before;
    for (NodeId up = node.parent; up >= 0; up = at(up).parent) {
      const Nanoseconds height = at(up).own + at(latest_child(up)).height;
      if (height == at(up).height) break;
      at(up).height = height;
    }
  }

  const Problem& problem_;
  std::vector<Level> levels_;  // by size, ascending
  std::vector<Node> nodes_;    // level by level, the root last
  std::vector<NodeId> node_of_;
  std::vector<std::size_t> spot_of_;  // of each bundle in the list of its node
};

class BundleSearch {
 public:
  using NodeId = BlockTree::NodeId;

  explicit BundleSearch(const Problem& problem) : problem_(problem), tree_(problem), random_(3) {
    // A wider group is worth its area only if it is faster.
    levels_of_.resize(static_cast<std::size_t>(problem.num_bundles()));
    for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
      Nanoseconds fastest = std::numeric_limits<Nanoseconds>::max();
      for (std::int32_t level = 0; level < tree_.num_levels(); ++level) {
        if (!tree_.fits(level, bundle) || tree_.time_of(level, bundle) >= fastest) continue;
        fastest = tree_.time_of(level, bundle);
        levels_of_[static_cast<std::size_t>(bundle)].push_back(level);
      }
    }
  }

  Draft run(const Draft& start, Nanoseconds bound, std::int64_t num_trials) {
    std::vector<std::int32_t> bundle_of(static_cast<std::size_t>(problem_.num_items()));
    for (BundleId bundle = 0; bundle < problem_.num_bundles(); ++bundle) {
      for (const ItemId item : problem_.items_of(bundle)) {
        bundle_of[static_cast<std::size_t>(item)] = bundle;
      }
    }
    for (const DraftGroup& group : start.groups) {
      for (const ItemId item : group.items) {
        const BundleId bundle = bundle_of[static_cast<std::size_t>(item)];
        if (tree_.node_of(bundle) < 0) tree_.add(bundle, tree_.node_at(group.ranks));
      }
    }
    std::vector<NodeId> best = tree_.places();
    Nanoseconds best_time = tree_.time();
    // Two starts in which all that is too slow for the target stands on wide blocks already, kept
    // cool so that it stays there; then the best so far, hot.
    const auto target = static_cast<Nanoseconds>(static_cast<double>(bound) * 1.05);
    constexpr std::int64_t num_rounds = 3;
    const std::int64_t length = std::max<std::int64_t>(1, num_trials / num_rounds);
    for (std::int64_t round = 0; round < num_rounds && best_time > bound; ++round) {
      if (round + 1 < num_rounds) {
        place_all(target, round == 0 ? Prefer::wide : Prefer::narrow);
      } else {
        restore(best);
      }
      // What is taken with even odds, in parts of the time; in the end a thousandth of that.
      const double hot = round + 1 < num_rounds ? 0.01 : 0.1;
      for (std::int64_t trial = 0; trial < length && best_time > bound; ++trial) {
        const double cooled = static_cast<double>(trial) / static_cast<double>(length);
        const double heat = hot * static_cast<double>(best_time) * halved(10 * cooled);
        const Nanoseconds before = tree_.time();
        const std::optional<Change> change = drawn_change();
        if (!change) continue;
        apply(*change);
        const auto worse = static_cast<double>(tree_.time() - before);
        if (worse > 0 && random_.unit() >= halved(worse / heat)) {
          undo(*change);
        } else if (tree_.time() < best_time) {
          best_time = tree_.time();
          best = tree_.places();
        }
      }
    }
    Draft found = tree_.draft(best);
    return found.time < start.time ? found : start;
  }

 private:
  // A bundle goes to another block, and perhaps one from there takes its place.
  struct Change {
    BundleId bundle = 0;
    NodeId from = 0;
    NodeId to = 0;
    BundleId other = -1;
  };

  std::size_t pick(std::size_t count) { return static_cast<std::size_t>(random_.below(count)); }

  std::optional<Change> drawn_change() {
    late_.clear();
    for (NodeId node = tree_.root();; node = tree_.latest_child(node)) {
      const auto bundles = tree_.bundles_of(node);
      late_.insert(late_.end(), bundles.begin(), bundles.end());
      if (tree_.level_of(node) == 0) break;
    }
    if (late_.empty()) return std::nullopt;
    Change change{.bundle = late_[pick(late_.size())]};
    change.from = tree_.node_of(change.bundle);
    if (random_.below(2) == 0) {
      change.other = static_cast<BundleId>(pick(tree_.places().size()));
      change.to = tree_.node_of(change.other);
      if (change.to == change.from || !tree_.fits(tree_.level_of(change.to), change.bundle) ||
          !tree_.fits(tree_.level_of(change.from), change.other)) {
        return std::nullopt;
      }
      return change;
    }
    const std::int32_t level = drawn_level(change);
    if (random_.below(2) == 0) {
      change.to = earliest_block(level);
    } else {
      change.to = tree_.first_node(level) +
                  static_cast<NodeId>(pick(static_cast<std::size_t>(tree_.num_blocks(level))));
    }
    if (change.to == change.from) return std::nullopt;
    return change;
  }

  // Which of the blocks that run a bundle within a target.
  enum class Prefer {
    wide,    // the widest whose traffic costs little: they leave no holes
    narrow,  // the smallest
  };

  std::int32_t level_within(BundleId bundle, Nanoseconds target, Prefer prefer) const {
    constexpr double little = 1.12;  // of the least area
    const auto& levels = levels_of_[static_cast<std::size_t>(bundle)];
    const auto area = [&](std::int32_t level) {
      return static_cast<double>(tree_.time_of(level, bundle)) *
             problem_.sizes()[static_cast<std::size_t>(level)];
    };
    std::size_t k = 0;
    while (k + 1 < levels.size() && tree_.time_of(levels[k], bundle) > target) ++k;
    while (prefer == Prefer::wide && k + 1 < levels.size() &&
           area(levels[k + 1]) < little * area(levels.front())) {
      ++k;
    }
    return levels[k];
  }

  // Widest and dearest first, where ranks are free first.
  void place_all(Nanoseconds target, Prefer prefer) {
    std::vector<std::tuple<std::int32_t, Nanoseconds, BundleId>> order;
    for (BundleId bundle = 0; bundle < problem_.num_bundles(); ++bundle) {
      tree_.remove(bundle);
      const std::int32_t level = level_within(bundle, target, prefer);
      order.emplace_back(-level, -tree_.time_of(level, bundle), bundle);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [level, time, bundle] : order) tree_.add(bundle, earliest_block(-level));
  }

  NodeId earliest_block(std::int32_t level) const {
    NodeId node = tree_.root();
    while (tree_.level_of(node) > level) node = tree_.earliest_child(node);
    return node;
  }

  // The same size, or the next one in either direction that makes sense for the bundle.
  std::int32_t drawn_level(const Change& change) {
    const auto& levels = levels_of_[static_cast<std::size_t>(change.bundle)];
    const std::int32_t level = tree_.level_of(change.from);
    auto near = std::lower_bound(levels.begin(), levels.end(), level);
    switch (random_.below(3)) {
      case 0:
        return level;
      case 1:
        return near == levels.begin() ? level : *std::prev(near);
      default:
        if (near != levels.end() && *near == level) ++near;
        return near == levels.end() ? level : *near;
    }
  }

  void apply(const Change& change) {
    tree_.remove(change.bundle);
    if (change.other >= 0) {
      tree_.remove(change.other);
      tree_.add(change.other, change.from);
    }
    tree_.add(change.bundle, change.to);
  }

  void undo(const Change& change) {
    tree_.remove(change.bundle);
    if (change.other >= 0) {
      tree_.remove(change.other);
      tree_.add(change.other, change.to);
    }
    tree_.add(change.bundle, change.from);
  }

  void restore(const std::vector<NodeId>& places) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto bundle = static_cast<BundleId>(i);
      if (tree_.node_of(bundle) == places[i]) continue;
      tree_.remove(bundle);
      tree_.add(bundle, places[i]);
    }
  }

  const Problem& problem_;
  BlockTree tree_;
  Random random_;
  std::vector<std::vector<std::int32_t>> levels_of_;  // worth a try, of each bundle
  std::vector<BundleId> late_;                        // of the ranks that are done last
};

}  // namespace

Draft search_bundles(const Problem& problem, const Draft& start, Nanoseconds bound,
                     std::int64_t num_trials) {
  return BundleSearch(problem).run(start, bound, num_trials);
}

}  // namespace isochron
