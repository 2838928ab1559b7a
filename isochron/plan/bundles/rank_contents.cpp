// A knapsack over cells of time says what can still be worth it, and a search goes through that.
//
// Level by level, the smallest groups first, tables hold the most worth of the time that is left:
// costs are rounded down to cells and every level in use pays for one micro-batch, so they never
// say too little. The search takes levels from the widest down, times to the nanosecond and with
// all micro-batches, and turns back where the table cannot make up for what is missing.

#include "isochron/plan/bundles/rank_contents.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace isochron {

namespace {

constexpr Nanoseconds max_cells = 2048;
constexpr std::size_t stride = 16;     // pieces between tables
constexpr std::size_t num_whole = 12;  // wide pieces that are not cut where others are judged
constexpr int coarse_bits = 8;         // of worths, that tables round up
constexpr std::int16_t most_coarse = RankContents::max_asked >> coarse_bits;

std::int64_t fine(std::int16_t worth) { return std::int64_t{worth} << coarse_bits; }

// to[k] = max(to[k], from[k] + worth), as far as can be asked for. Sums of two fit.
void take_better(std::int16_t* __restrict to, const std::int16_t* __restrict from,
                 std::size_t count, std::int16_t worth) {
  for (std::size_t k = 0; k < count; ++k) {
    const auto sum = static_cast<std::int16_t>(from[k] + worth);
    const std::int16_t with = sum < most_coarse ? sum : most_coarse;
    to[k] = with > to[k] ? with : to[k];
  }
}

}  // namespace

static_assert(2 * std::int32_t{most_coarse} <= std::numeric_limits<std::int16_t>::max() + 1);

RankContents::RankContents(const BundleTable& table) : table_(table) {
  for (std::int32_t index = 0; index < table.num_levels(); ++index) {
    std::vector<BundleId>& order = longest_first_.emplace_back();
    for (BundleId bundle = 0; bundle < table.num_bundles(); ++bundle) {
      if (table.fits(index, bundle)) order.push_back(bundle);
    }
    std::stable_sort(order.begin(), order.end(), [&](BundleId a, BundleId b) {
      return table.use(index, a).cost > table.use(index, b).cost;
    });
  }
}

RankContents::Level RankContents::level_at(std::int32_t index,
                                           std::span<const std::int64_t> prices) const {
  Level level{.index = index, .fixed = table_.fixed(index), .pieces = {}, .open = {}, .closed = {}};
  const std::int64_t size = table_.size(index);
  level.pieces.reserve(longest_first_[static_cast<std::size_t>(index)].size());
  for (const BundleId bundle : longest_first_[static_cast<std::size_t>(index)]) {
    const std::int64_t price = prices[static_cast<std::size_t>(bundle)];
    if (price <= 0 || table_.time(index, bundle) > time_) continue;
    level.pieces.push_back({.cost = table_.use(index, bundle).cost,
                            .worth = (price + size - 1) / size,
                            .bundle = bundle});
  }
  return level;
}

// A wide piece with the best that narrow ones and other wide ones add to it: the few of the highest
// rates as they are, the others at the highest rate that is left and without micro-batches.
void RankContents::drop_hopeless(std::vector<Level>& wide, const Table& narrow, double floor) {
  struct Rated {
    double rate = 0;  // worth by time
    std::size_t level = 0;
    const Piece* piece = nullptr;
  };
  std::vector<Rated> rated;
  double free = 0;  // what takes no time at all
  for (std::size_t i = 0; i < wide.size(); ++i) {
    for (const Piece& piece : wide[i].pieces) {
      const auto worth = static_cast<double>(piece.worth);
      if (piece.cost > 0) {
        rated.push_back({worth / static_cast<double>(piece.cost), i, &piece});
      } else {
        free += worth;
      }
    }
  }
  if (rated.size() <= num_whole) return;
  std::nth_element(rated.begin(), rated.begin() + num_whole, rated.end(),
                   [](const Rated& a, const Rated& b) {
                     return std::tuple(-a.rate, a.level, a.piece->bundle) <
                            std::tuple(-b.rate, b.level, b.piece->bundle);
                   });
  std::vector<std::vector<const Piece*>> whole(wide.size());
  for (std::size_t i = 0; i < num_whole; ++i) whole[rated[i].level].push_back(rated[i].piece);
  const double rate = rated[num_whole].rate * static_cast<double>(Nanoseconds{1} << shift_);
  // Beside a piece of a level, which pays for the micro-batch that others of it share.
  const auto most_beside = [&](std::size_t same) {
    Table most = narrow;
    for (std::size_t i = 0; i < wide.size(); ++i) {
      if (whole[i].empty()) continue;
      Table open = most;
      for (const Piece* piece : whole[i]) add_piece(*piece, open);
      const std::size_t first = i == same ? 0 : cell(wide[i].fixed);
      for (std::size_t k = first; k < most.size(); ++k) {
        most[k] = std::max(most[k], open[k - first]);
      }
    }
    std::vector<double> filled(most.size());
    double before = -rate;
    for (std::size_t k = 0; k < most.size(); ++k) {
      before = filled[k] = std::max(static_cast<double>(fine(most[k])), before + rate);
    }
    return filled;
  };
  const std::vector<double> beside_others = most_beside(wide.size());
  std::vector<std::vector<Piece>> all_kept(wide.size());
  for (std::size_t i = 0; i < wide.size(); ++i) {
    const std::vector<double> beside_same =
        whole[i].empty() ? std::vector<double>() : most_beside(i);
    const std::vector<double>& beside = whole[i].empty() ? beside_others : beside_same;
    for (const Piece& piece : wide[i].pieces) {
      const Nanoseconds left = time_ - wide[i].fixed - piece.cost;
      // One cell more, which the time begins, and more than all roundings.
      const double most = static_cast<double>(piece.worth) + beside[cell(left)] + rate + free + 1;
      if (most >= floor) all_kept[i].push_back(piece);
    }
  }
  for (std::size_t i = 0; i < wide.size(); ++i) wide[i].pieces = std::move(all_kept[i]);
}

void RankContents::add_piece(const Piece& piece, Table& table) {
  const std::size_t cells = cell(piece.cost);
  const std::size_t count = table.size();
  const auto worth = static_cast<std::int16_t>(
      std::min<std::int64_t>(most_coarse, (piece.worth + (1 << coarse_bits) - 1) >> coarse_bits));
  if (cells == 0) {
    const Table before = table;
    take_better(table.data(), before.data(), count, worth);
    return;
  }
  // From late to early, in stretches that do not overlap what they come from.
  for (std::size_t end = count; end > cells;) {
    const std::size_t begin = std::max(cells, end - std::min(end, cells));
    take_better(&table[begin], &table[begin - cells], end - begin, worth);
    end = begin;
  }
  work_ += static_cast<std::int64_t>(count - std::min(count, cells)) / 8;
}

void RankContents::fill(Level& level, const Table& below) {
  const std::size_t count = below.size();
  const std::size_t num_strides = (level.pieces.size() + stride - 1) / stride;
  level.open.resize(num_strides + 1);
  level.open.back() = below;
  // The shortest pieces first, which the search takes last.
  for (std::size_t s = num_strides; s-- > 0;) {
    level.open[s] = level.open[s + 1];
    for (std::size_t i = std::min(level.pieces.size(), (s + 1) * stride); i-- > s * stride;) {
      add_piece(level.pieces[i], level.open[s]);
    }
  }
  level.closed = below;
  const Table& all = level.open.front();
  const std::size_t first = cell(level.fixed);
  for (std::size_t k = first; k < count; ++k) {
    level.closed[k] = std::max(level.closed[k], all[k - first]);
  }
}

void RankContents::set_prices(std::span<const std::int64_t> prices, Nanoseconds time,
                              std::int64_t floor) {
  time_ = time;
  shift_ = 0;
  while (time >> shift_ >= max_cells) ++shift_;
  levels_.clear();
  const Table nothing(cell(time) + 1, 0);
  Level narrow = level_at(0, prices);
  fill(narrow, nothing);
  std::vector<Level> wide;
  for (std::int32_t index = 1; index < table_.num_levels(); ++index) {
    wide.push_back(level_at(index, prices));
  }
  drop_hopeless(wide, narrow.closed, static_cast<double>(floor));
  levels_.push_back(std::move(narrow));
  for (Level& level : wide) {
    if (level.pieces.empty()) continue;
    fill(level, levels_.back().closed);
    levels_.push_back(std::move(level));
  }
}

void RankContents::begin(std::int64_t least, std::int32_t most_of_each, std::int64_t max_work,
                         ContentList& found) {
  least_ = least;
  most_of_each_ = most_of_each;
  counts_.assign(static_cast<std::size_t>(table_.num_bundles()), 0);
  last_work_ = work_ + max_work;
  is_complete_ = true;
  found_ = &found;
  chosen_.clear();
}

bool RankContents::collect(std::int64_t least, std::int32_t most_of_each, std::int64_t max_work,
                           ContentList& found) {
  begin(least, most_of_each, max_work, found);
  settle(levels_.size(), time_, 0);
  return is_complete_;
}

bool RankContents::collect_beside(std::span<const ContentPart> wide, std::int64_t least,
                                  std::int64_t max_work, ContentList& found) {
  begin(least, std::numeric_limits<std::int32_t>::max(), max_work, found);
  const auto place = static_cast<std::size_t>(
      std::find_if(levels_.begin(), levels_.end(),
                   [&](const Level& level) { return table_.size(level.index) == wide[0].size; }) -
      levels_.begin());
  const Level& level = levels_[place];
  BlockUse together;
  std::int64_t worth = 0;
  for (const ContentPart& part : wide) {
    const BlockUse& use = table_.use(level.index, part.bundle);
    together.cost += use.cost;
    together.tokens += use.tokens;
    together.sequences += use.sequences;
    worth += std::find_if(level.pieces.begin(), level.pieces.end(), [&](const Piece& piece) {
               return piece.bundle == part.bundle;
             })->worth;
    chosen_.push_back(part);
  }
  settle(place, time_ - table_.time(level.index, together), worth);
  return is_complete_;
}

// Levels from `place` on are settled.
void RankContents::settle(std::size_t place, Nanoseconds left, std::int64_t worth) {
  if (place == 0) {
    if (worth < least_) return;
    const bool is_wanted =
        std::any_of(chosen_.begin(), chosen_.end(), [&](const ContentPart& part) {
          return counts_[static_cast<std::size_t>(part.bundle)] < most_of_each_;
        });
    if (!is_wanted) {
      is_complete_ = false;
      return;
    }
    for (const ContentPart& part : chosen_) ++counts_[static_cast<std::size_t>(part.bundle)];
    found_->add(chosen_, worth);
    return;
  }
  const Level& level = levels_[place - 1];
  const std::int64_t below = place > 1 ? fine(levels_[place - 2].closed[cell(left)]) : 0;
  if (worth + below >= least_) settle(place - 1, left, worth);
  const Nanoseconds open = left - level.fixed;
  if (open >= 0 && worth + fine(level.open.front()[cell(open)]) >= least_)
    extend(place - 1, 0, left, {}, worth);
}

void RankContents::extend(std::size_t place, std::size_t first, Nanoseconds left,
                          const BlockUse& use, std::int64_t worth) {
  const Level& level = levels_[place];
  const Nanoseconds room = left - level.fixed - use.cost;  // with one micro-batch
  const auto begin = std::partition_point(level.pieces.begin() + static_cast<std::ptrdiff_t>(first),
                                          level.pieces.end(),
                                          [&](const Piece& piece) { return piece.cost > room; });
  work_ += 8;
  const bool is_first = chosen_.empty();
  for (auto piece = begin; piece != level.pieces.end(); ++piece) {
    const auto next = static_cast<std::size_t>(piece - level.pieces.begin()) + 1;
    const Table& open = level.open[next / stride];
    if (piece == begin || next % stride == 1) {
      // With nothing but this one and those that follow.
      const Table& rest = level.open[(next - 1) / stride];
      if (worth + fine(rest[cell(room)]) < least_) break;
      work_ += stride;
      if (work_ > last_work_) {
        is_complete_ = false;
        break;
      }
    }
    const std::int64_t with = worth + piece->worth;
    if (with + fine(open[cell(room - piece->cost)]) < least_) continue;
    if (is_chosen(piece->bundle)) continue;
    const BlockUse& more = table_.use(level.index, piece->bundle);
    const BlockUse together{.cost = use.cost + more.cost,
                            .tokens = use.tokens + more.tokens,
                            .sequences = use.sequences + more.sequences};
    const Nanoseconds rest = left - table_.time(level.index, together);
    if (rest < 0 || with + fine(open[cell(rest)]) < least_) continue;
    if (is_first && counts_[static_cast<std::size_t>(piece->bundle)] >= most_of_each_) {
      is_complete_ = false;
      continue;
    }
    chosen_.push_back({.bundle = piece->bundle, .size = table_.size(level.index)});
    const std::int64_t below = place > 0 ? fine(levels_[place - 1].closed[cell(rest)]) : 0;
    if (with + below >= least_) settle(place, rest, with);
    extend(place, next, left, together, with);
    chosen_.pop_back();
  }
}

}  // namespace isochron
