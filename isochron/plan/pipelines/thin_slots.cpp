// What a stage holds are windows of consecutive slots, so a plan gets thinner in four ways: fewer
// sequences in a micro-batch, wider groups, fewer groups in a slot (a rank that sits a slot out
// holds less of every window with it), and an order in which large slots are far apart. All steps
// of the first three are tried, the thinnest first; each starts in an order that deals the slots
// by size to the places of a window, up and down by turns, and is then changed at random as long
// as what exceeds the limit does not grow.
//
//   sizes 9 8 7 6 5 4 3 2 1, windows of 3:   9 4 3 | 8 5 2 | 7 6 1

#include "isochron/plan/pipelines/thin_slots.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "isochron/core/int128.h"
#include "isochron/core/random.h"
#include "isochron/plan/plan_slots.h"
#include "isochron/schedule/in_flight.h"
#include "isochron/schedule/pipeline_schedule.h"
#include "isochron/simulate/chunk_cost.h"

namespace isochron {

namespace {

// How thin a trial is from the start.
struct Thinness {
  std::int32_t size = 1;    // of groups, at least
  std::int32_t groups = 1;  // of a slot, at most
  Tokens capacity = 0;      // of a rank, for micro-batches of several items
};

using Slots = DraftSlots;  // without placeholders

constexpr std::int64_t to_look = 500;   // operations, at slots of any number
constexpr std::size_t most_tried = 32;  // micro-batches for an item: those before are nearly full

class ThinSearch {
 public:
  ThinSearch(const Problem& problem, std::int64_t work)
      : problem_(problem),
        shape_(problem.topology().pipeline),
        limit_(problem.options().max_activation_bytes),
        work_(work),
        multiple_(static_cast<std::size_t>(shape_.group)),
        num_ranks_(static_cast<std::size_t>(problem.num_ranks())),
        is_full_(problem.options().short_ != Short::empty),
        ranges_(admitted_ranges(problem)) {}

  std::optional<DraftSlots> run() {
    const std::vector<Thinness> trials = all_trials();
    for (std::size_t i = 0; i < trials.size() && work_ > 0; ++i) {
      // The thinnest can become any that are as thin: most of the work is theirs.
      const auto num_left = static_cast<std::int64_t>(trials.size() - i);
      const std::int64_t part = work_ / (best_ ? num_left : std::min<std::int64_t>(num_left, 4));
      work_ -= static_cast<std::int64_t>(most_tried) * problem_.num_items();
      if (auto slots = start_of(trials[i])) improve(*std::move(slots), part);
    }
    return std::move(best_);
  }

 private:
  std::vector<Thinness> all_trials() const {
    std::vector<std::int32_t> sizes;  // widest first; of any size those that double
    for (const std::int32_t size : problem_.sizes()) {
      const bool is_widest = size == problem_.sizes().back();
      if (is_widest || sizes.empty() || size >= 2 * sizes.back()) sizes.push_back(size);
    }
    std::reverse(sizes.begin(), sizes.end());
    std::vector<Tokens> capacities = {0};
    for (Tokens part = 8; part >= 1; part /= 2) {
      if (problem_.capacity() / part > capacities.back()) {
        capacities.push_back(problem_.capacity() / part);
      }
    }
    std::vector<Thinness> trials;
    for (const Tokens capacity : capacities) {
      for (const std::int32_t size : sizes) {
        for (std::int32_t groups = 1;; groups *= 2) {
          trials.push_back({.size = size, .groups = groups, .capacity = capacity});
          if (groups >= problem_.num_ranks() / size) break;
        }
      }
    }
    return trials;
  }

  // Ranks for an item and all that stay with it: at least so many, if some of those hold it.
  std::int32_t size_for(ItemId item, std::int32_t least) const {
    if (problem_.is_alone(item)) return problem_.alone_size();
    std::int32_t widest = 0;
    for (const std::int32_t size : problem_.sizes()) {
      if (!problem_.item_fits(size, item) || problem_.cheapest_price(size) < 0) continue;
      widest = size;
      if (size >= least) break;
    }
    return widest;
  }

  // Micro-batches without a place, widest and largest first.
  std::vector<DraftGroup> microbatches_of(const Thinness& thinness) const {
    std::vector<std::pair<std::int32_t, ItemId>> items;  // by size, then by tokens
    for (BundleId bundle = 0; bundle < problem_.num_bundles(); ++bundle) {
      std::int32_t size = 0;  // that all items of the bundle take
      for (const ItemId item : problem_.items_of(bundle)) {
        size = std::max(size, size_for(item, thinness.size));
      }
      for (const ItemId item : problem_.items_of(bundle)) items.emplace_back(size, item);
    }
    std::sort(items.begin(), items.end(), [&](const auto& a, const auto& b) {
      const auto key = [&](const auto& each) {
        return std::tuple(-each.first, -tokens_of(each.first, each.second), each.second);
      };
      return key(a) < key(b);
    });
    std::vector<DraftGroup> result;
    std::size_t first_of_size = 0;
    for (const auto& [size, item] : items) {
      if (result.empty() || result.back().ranks.size != size) first_of_size = result.size();
      const bool may_share = thinness.capacity > 0 && !has_kept_ranks();
      const std::size_t num_tried =
          may_share ? std::min(most_tried, result.size() - first_of_size) : 0;
      const auto home = std::find_if(result.end() - static_cast<std::ptrdiff_t>(num_tried),
                                     result.end(), [&, joining = item](const DraftGroup& group) {
                                       return may_join(group, joining, thinness.capacity);
                                     });
      if (home != result.end()) {
        home->items.push_back(item);
      } else {
        result.push_back({.ranks = {.first = 0, .size = size}, .items = {item}});
      }
    }
    return result;
  }

  bool may_join(const DraftGroup& group, ItemId item, Tokens capacity) const {
    if (problem_.is_alone(item) || problem_.is_alone(group.items.front())) return false;
    const auto size = static_cast<std::int32_t>(group.ranks.size);
    Tokens tokens = tokens_of(size, item);
    std::int32_t count = problem_.num_sequences(item);
    for (const ItemId other : group.items) {
      tokens += tokens_of(size, other);
      count += problem_.num_sequences(other);
    }
    const std::int32_t most = problem_.options().max_sequences;
    return tokens <= capacity * size && (most == 0 || count <= most);
  }

  bool has_kept_ranks() const {
    return problem_.options().keep_groups == KeepGroups::rank &&
           problem_.num_bundles() != problem_.num_items();
  }

  // Padded, on all ranks of a group together.
  Tokens tokens_of(std::int32_t size, ItemId item) const {
    Tokens tokens = 0;
    for (const SequenceId id : problem_.sequences_of(item)) {
      tokens += padded_length(problem_.work().lengths[id.index()], size,
                              problem_.options().tensor_parallel);
    }
    return tokens;
  }

  double bytes_of(const DraftGroup& group) const {
    const auto size = static_cast<std::int32_t>(group.ranks.size);
    Tokens tokens = 0;
    for (const ItemId item : group.items) tokens += tokens_of(size, item);
    const Tokens on_each = tokens / size;
    return static_cast<double>(on_each) * problem_.model().activation_bytes_per_token;
  }

  // Micro-batches in slots; none if some have no place, or a rank has nothing where it must.
  std::optional<Slots> start_of(const Thinness& thinness) const {
    std::vector<std::vector<DraftGroup>> shelves;  // slots, whose groups have no ranks
    for (DraftGroup& group : microbatches_of(thinness)) {
      if (group.ranks.size == 0) return std::nullopt;
      const std::int64_t most = thinness.groups;
      const auto has_room = [&](const std::vector<DraftGroup>& shelf) {
        std::int64_t width = group.ranks.size;
        for (const DraftGroup& other : shelf) width += other.ranks.size;
        return width <= problem_.num_ranks() && static_cast<std::int64_t>(shelf.size()) < most;
      };
      // Widest first, so that only the last slot has room.
      if (shelves.empty() || !has_room(shelves.back())) shelves.emplace_back();
      shelves.back().push_back(std::move(group));
    }
    Slots slots;
    std::int64_t next = 0;  // rank, so that those take turns who sit slots out
    std::vector<RankRange> kept(static_cast<std::size_t>(problem_.num_bundles()));
    for (std::vector<DraftGroup>& shelf : spread(std::move(shelves))) {
      auto& slot = slots.emplace_back();
      for (DraftGroup& group : shelf) {
        RankRange* home = has_kept_ranks() ? &kept[bundle_of(group.items.front())] : nullptr;
        const bool is_known = home != nullptr && home->size > 0;
        const auto ranks = is_known ? std::optional(*home) : find_ranks(slot, group, next);
        if (!ranks || !is_free(slot, *ranks)) return std::nullopt;
        if (home != nullptr) *home = *ranks;
        next = (ranks->first + ranks->size) % problem_.num_ranks();
        group.ranks = *ranks;
        slot.push_back(std::move(group));
      }
    }
    while (slots.size() % multiple_ != 0) slots.emplace_back();
    if (is_full_ && !are_full(slots)) return std::nullopt;
    return slots;
  }

  std::size_t bundle_of(ItemId item) const {
    for (BundleId bundle = 0; bundle < problem_.num_bundles(); ++bundle) {
      const auto items = problem_.items_of(bundle);
      if (std::find(items.begin(), items.end(), item) != items.end()) {
        return static_cast<std::size_t>(bundle);
      }
    }
    return 0;
  }

  // Largest first to the places of a window, up and down by turns.
  std::vector<std::vector<DraftGroup>> spread(std::vector<std::vector<DraftGroup>> slots) const {
    std::vector<std::pair<double, std::size_t>> by_bytes;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      double most = 0;
      for (const DraftGroup& group : slots[i]) most = std::max(most, bytes_of(group));
      by_bytes.emplace_back(-most, i);
    }
    std::sort(by_bytes.begin(), by_bytes.end());
    const auto width = static_cast<std::size_t>(shape_.stages);
    const std::size_t num_windows = (slots.size() + width - 1) / width;
    std::vector<std::vector<DraftGroup>> result;
    for (std::size_t window = 0; window < num_windows; ++window) {
      for (std::size_t place = 0; place < width; ++place) {
        const std::size_t turn = place % 2 == 0 ? window : num_windows - 1 - window;
        const std::size_t rank = place * num_windows + turn;
        if (rank < slots.size()) result.push_back(std::move(slots[by_bytes[rank].second]));
      }
    }
    return result;
  }

  // Ranks for a group, from `next` on, around the end.
  std::optional<RankRange> find_ranks(const std::vector<DraftGroup>& slot, const DraftGroup& group,
                                      std::int64_t next) const {
    const auto size = static_cast<std::int32_t>(group.ranks.size);
    const std::int64_t step = problem_.first_step(size);
    const std::int64_t num_places = (problem_.num_ranks() - size) / step + 1;
    for (std::int64_t i = 0; i < num_places; ++i) {
      const std::int64_t place = ((next + step - 1) / step + i) % num_places;
      const RankRange ranks{.first = place * step, .size = size};
      if (is_free(slot, ranks) && problem_.price_of(ranks) >= 0) return ranks;
    }
    return std::nullopt;
  }

  static bool is_free(const std::vector<DraftGroup>& slot, RankRange ranks) {
    return std::none_of(slot.begin(), slot.end(), [&](const DraftGroup& group) {
      return group.ranks.first < ranks.first + ranks.size &&
             ranks.first < group.ranks.first + group.ranks.size;
    });
  }

  bool are_full(const Slots& slots) const {
    return std::all_of(slots.begin(), slots.end(), [&](const auto& slot) {
      std::int64_t width = 0;
      for (const DraftGroup& group : slot) width += group.ranks.size;
      return width == problem_.num_ranks();
    });
  }

  // Bytes over the limit, of all ranks and stages together.
  Int128 excess_of(const Slots& slots) {
    const auto num_slots = static_cast<std::int32_t>(slots.size());
    if (static_cast<std::int32_t>(num_scheduled_) != num_slots) {
      schedule_ = pipeline_schedule(shape_, num_slots, problem_.options().pass);
      num_scheduled_ = slots.size();
    }
    const auto num_chunks = static_cast<std::size_t>(shape_.num_chunks());
    bytes_.assign(slots.size() * num_ranks_ * num_chunks, 0);
    for (std::size_t s = 0; s < slots.size(); ++s) {
      for (const DraftGroup& group : slots[s]) {
        const double bytes = bytes_of(group);
        for (std::size_t chunk = 0; chunk < num_chunks; ++chunk) {
          const std::int64_t part = chunk_bytes(shape_, bytes, static_cast<std::int32_t>(chunk));
          for (std::int64_t i = 0; i < group.ranks.size; ++i) {
            const auto rank = static_cast<std::size_t>(group.ranks.first + i);
            bytes_[(s * num_ranks_ + rank) * num_chunks + chunk] = part;
          }
        }
      }
    }
    Int128 excess = 0;
    work_ -= to_look;
    for (const auto& operations : schedule_) {
      for (std::size_t rank = 0; rank < num_ranks_; ++rank) {
        const std::int64_t peak = peak_in_flight(
            operations, problem_.options().pass, [&](std::int32_t slot, std::int32_t chunk) {
              return bytes_[(static_cast<std::size_t>(slot) * num_ranks_ + rank) * num_chunks +
                            static_cast<std::size_t>(chunk)];
            });
        excess += std::max<std::int64_t>(0, peak - limit_);
      }
      work_ -= static_cast<std::int64_t>(operations.size() * num_ranks_);
    }
    return excess;
  }

  // Changes slots until they keep the limit, then until the work is done as long as they get no
  // slower. A change that exceeds the limit by more is taken now and then, by no more than a part
  // of it.
  void improve(Slots slots, std::int64_t work) {
    const std::int64_t last_work = work_ - work;
    Random random(1);
    Int128 excess = excess_of(slots);
    Nanoseconds time = excess == 0 ? considered_time(slots) : 0;
    while (work_ > last_work) {
      Slots changed = slots;
      const bool has_changed = random.below(2) == 0 || is_full_ ? has_swapped(random, changed)
                                                                : has_moved(random, changed);
      if (!has_changed) {
        work_ -= to_look / 10;
        continue;
      }
      const Int128 after = excess_of(changed);
      const bool is_risked = excess > 0 && random.below(8) == 0 && after <= excess + limit_ / 4;
      if (after > excess && !is_risked) continue;
      if (after == 0) {
        const Nanoseconds time_after = considered_time(changed);
        if (excess == 0 && time_after > time) continue;
        time = time_after;
      }
      excess = after;
      slots = std::move(changed);
    }
  }

  static bool has_swapped(Random& random, Slots& slots) {
    const std::size_t a = random.below(slots.size());
    const std::size_t b = random.below(slots.size());
    if (a == b) return false;
    std::swap(slots[a], slots[b]);
    return true;
  }

  // An item goes to other ranks or another slot, alone or to others on these ranks.
  bool has_moved(Random& random, Slots& slots) const {
    const std::size_t from = random.below(slots.size());
    if (slots[from].empty()) return false;
    const auto place = static_cast<std::ptrdiff_t>(random.below(slots[from].size()));
    DraftGroup& old = slots[from][static_cast<std::size_t>(place)];
    const auto which = static_cast<std::ptrdiff_t>(random.below(old.items.size()));
    const ItemId item = old.items[static_cast<std::size_t>(which)];
    const RankRange ranks = has_kept_ranks() || random.below(2) == 0
                                ? old.ranks
                                : ranges_[random.below(ranges_.size())];
    const std::size_t to = random.below(slots.size());
    if ((ranks == old.ranks && to == from) ||
        (ranks != old.ranks && !problem_.item_fits(static_cast<std::int32_t>(ranks.size), item))) {
      return false;
    }
    old.items.erase(old.items.begin() + which);
    if (old.items.empty()) slots[from].erase(slots[from].begin() + place);
    const auto home = std::find_if(slots[to].begin(), slots[to].end(),
                                   [&](const DraftGroup& group) { return group.ranks == ranks; });
    if (home == slots[to].end()) {
      if (!is_free(slots[to], ranks)) return false;
      slots[to].push_back({.ranks = ranks, .items = {item}});
    } else {
      if (!may_join(*home, item, problem_.capacity())) return false;
      home->items.push_back(item);
    }
    const auto num_idle =
        std::count_if(slots.begin(), slots.end(), [](const auto& slot) { return slot.empty(); });
    return static_cast<std::size_t>(num_idle) < multiple_;
  }

  // What slots that keep the limit take, which may be the best.
  Nanoseconds considered_time(Slots slots) {
    for (auto& slot : slots) {
      for (std::int64_t rank = 0; rank < problem_.num_ranks(); ++rank) {
        const RankRange alone{.first = rank, .size = 1};
        if (is_free(slot, alone)) slot.push_back({.ranks = alone});
      }
      std::sort(slot.begin(), slot.end(), [](const DraftGroup& a, const DraftGroup& b) {
        return a.ranks.first < b.ranks.first;
      });
    }
    const Nanoseconds time = predicted_time(problem_, slots);
    constexpr std::size_t to_play = 50;  // operations, for what is made ready for each
    for (const auto& operations : schedule_) {
      work_ -= static_cast<std::int64_t>(operations.size() * num_ranks_ * to_play);
    }
    if (!best_ || time < best_time_) {
      best_time_ = time;
      best_ = std::move(slots);
    }
    return time;
  }

  const Problem& problem_;
  const PipelineShape& shape_;
  std::int64_t limit_;
  std::int64_t work_;
  std::size_t multiple_;
  std::size_t num_ranks_;
  bool is_full_;  // placeholders are not wanted
  std::vector<RankRange> ranges_;
  PipelineSchedule schedule_;
  std::size_t num_scheduled_ = 0;
  std::vector<std::int64_t> bytes_;  // of each slot, rank and chunk
  std::optional<DraftSlots> best_;
  Nanoseconds best_time_ = 0;
};

}  // namespace

std::optional<DraftSlots> find_thin_slots(const Problem& problem, std::int64_t work) {
  return ThinSearch(problem, work).run();
}

}  // namespace isochron
