// A knapsack over cells of time says what can still be worth it, and a search goes through that.
//
// Level by level, the smallest groups first, tables hold the most worth of the time that is left:
// costs are rounded down to cells and every level in use pays for one micro-batch, so they never
// say too little. The search takes levels from the widest down, times to the nanosecond and with
// all micro-batches, and turns back where the table cannot make up for what is missing. Worths are
// whole numbers that a float holds exactly.

#include "isochron/plan/bundles/rank_contents.h"

#include <algorithm>
#include <functional>

namespace isochron {

namespace {

constexpr std::int64_t max_exact = std::int64_t{1} << 24;  // of whole numbers in float
constexpr Nanoseconds max_cells = 3072;
constexpr std::size_t stride = 16;     // pieces between tables
constexpr std::size_t num_whole = 24;  // wide pieces that are not cut where others are judged

// to[k] = max(to[k], from[k] + worth)
void take_better(float* __restrict to, const float* __restrict from, std::size_t count,
                 float worth) {
  for (std::size_t k = 0; k < count; ++k) {
    const float with = from[k] + worth;
    to[k] = with > to[k] ? with : to[k];
  }
}

}  // namespace

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
  for (const BundleId bundle : longest_first_[static_cast<std::size_t>(index)]) {
    const std::int64_t price = prices[static_cast<std::size_t>(bundle)];
    if (price <= 0 || table_.time(index, bundle) > time_) continue;
    level.pieces.push_back({.cost = table_.use(index, bundle).cost,
                            .worth = static_cast<float>((price + size - 1) / size),
                            .bundle = bundle});
  }
  return level;
}

// A wide piece with the best that narrow ones and other wide ones add to it: the few of the highest
// rates as they are, the others at the highest rate that is left and without micro-batches.
void RankContents::drop_hopeless(std::vector<Level>& wide, const std::vector<float>& narrow,
                                 double floor) {
  std::vector<double> rates;  // worth by time
  double free = 0;            // what takes no time at all
  const auto rate_of = [](const Piece& piece) {
    return static_cast<double>(piece.worth) / static_cast<double>(piece.cost);
  };
  for (const Level& level : wide) {
    for (const Piece& piece : level.pieces) {
      if (piece.cost > 0) {
        rates.push_back(rate_of(piece));
      } else {
        free += static_cast<double>(piece.worth);
      }
    }
  }
  if (rates.size() <= num_whole) return;
  std::nth_element(rates.begin(), rates.begin() + num_whole, rates.end(), std::greater<>());
  const double usual = rates[num_whole];
  const auto is_whole = [&](const Piece& piece) {
    return piece.cost > 0 && rate_of(piece) > usual;
  };
  const double rate = usual * static_cast<double>(Nanoseconds{1} << shift_);  // by cell
  // Beside a piece of one level, which pays for its micro-batch.
  const auto most_beside = [&](std::int32_t index) {
    std::vector<float> most = narrow;
    for (const Level& level : wide) {
      std::vector<float> open = most;
      for (const Piece& piece : level.pieces) {
        if (is_whole(piece)) add_piece(piece, open);
      }
      const std::size_t first = level.index == index ? 0 : cell(level.fixed);
      for (std::size_t k = first; k < most.size(); ++k)
        most[k] = std::max(most[k], open[k - first]);
    }
    std::vector<double> filled(most.begin(), most.end());
    for (std::size_t k = 1; k < filled.size(); ++k) {
      filled[k] = std::max(filled[k], filled[k - 1] + rate);
    }
    return filled;
  };
  const std::vector<double> beside_others = most_beside(-1);
  std::vector<std::vector<Piece>> kept;
  for (Level& level : wide) {
    const bool has_whole = std::any_of(level.pieces.begin(), level.pieces.end(), is_whole);
    const std::vector<double> beside_same = has_whole ? most_beside(level.index) : beside_others;
    const auto is_hopeless = [&](const Piece& piece) {
      const Nanoseconds left = time_ - level.fixed - piece.cost;
      // One cell more, which the time begins, and more than all roundings.
      return !is_whole(piece) &&
             static_cast<double>(piece.worth) + beside_same[cell(left)] + rate + free + 1 < floor;
    };
    std::vector<Piece>& here = kept.emplace_back();
    for (const Piece& piece : level.pieces) {
      if (!is_hopeless(piece)) here.push_back(piece);
    }
  }
  for (std::size_t i = 0; i < wide.size(); ++i) wide[i].pieces = std::move(kept[i]);
}

void RankContents::add_piece(const Piece& piece, std::vector<float>& worths) {
  const std::size_t cells = cell(piece.cost);
  const std::size_t count = worths.size();
  if (cells == 0) {
    for (float& worth : worths) worth += piece.worth;
    return;
  }
  // From late to early, in stretches that do not overlap what they come from.
  for (std::size_t end = count; end > cells;) {
    const std::size_t begin = std::max(cells, end - std::min(end, cells));
    take_better(&worths[begin], &worths[begin - cells], end - begin, piece.worth);
    end = begin;
  }
  work_ += static_cast<std::int64_t>(count - std::min(count, cells)) / 4;
}

void RankContents::fill(Level& level, const std::vector<float>& below) {
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
  const std::vector<float>& all = level.open.front();
  const std::size_t first = cell(level.fixed);
  for (std::size_t k = first; k < count; ++k) {
    level.closed[k] = std::max(level.closed[k], all[k - first]);
  }
}

bool RankContents::set_prices(std::span<const std::int64_t> prices, Nanoseconds time,
                              std::int32_t floor) {
  time_ = time;
  shift_ = 0;
  while (time >> shift_ >= max_cells) ++shift_;
  for (std::int32_t index = 0; index < table_.num_levels(); ++index) {
    for (const std::int64_t price : prices) {
      if (price / table_.size(index) >= max_exact) return false;
    }
  }
  levels_.clear();
  const std::vector<float> nothing(cell(time) + 1, 0.0F);
  Level narrow = level_at(0, prices);
  fill(narrow, nothing);
  std::vector<Level> wide;
  for (std::int32_t index = 1; index < table_.num_levels(); ++index) {
    wide.push_back(level_at(index, prices));
  }
  drop_hopeless(wide, narrow.closed, floor);
  levels_.push_back(std::move(narrow));
  for (Level& level : wide) {
    if (level.pieces.empty()) continue;
    fill(level, levels_.back().closed);
    levels_.push_back(std::move(level));
  }
  return most_worth() < max_exact;
}

std::int32_t RankContents::most_worth() const {
  constexpr auto most = static_cast<float>(max_exact);
  return static_cast<std::int32_t>(std::min(most, levels_.back().closed.back()));
}

bool RankContents::collect(std::int32_t least, std::int32_t most_of_each, std::int64_t max_work,
                           ContentList& found) {
  least_ = static_cast<float>(least);
  most_of_each_ = most_of_each;
  counts_.assign(static_cast<std::size_t>(table_.num_bundles()), 0);
  last_work_ = work_ + max_work;
  is_complete_ = true;
  found_ = &found;
  chosen_.clear();
  settle(levels_.size(), time_, 0);
  return is_complete_;
}

// Levels from `place` on are settled.
void RankContents::settle(std::size_t place, Nanoseconds left, float worth) {
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
    found_->add(chosen_, static_cast<std::int32_t>(worth));
    return;
  }
  const Level& level = levels_[place - 1];
  const float below = place > 1 ? levels_[place - 2].closed[cell(left)] : 0;
  if (worth + below >= least_) settle(place - 1, left, worth);
  const Nanoseconds open = left - level.fixed;
  if (open >= 0 && worth + level.open.front()[cell(open)] >= least_)
    extend(place - 1, 0, left, {}, worth);
}

void RankContents::extend(std::size_t place, std::size_t first, Nanoseconds left,
                          const BlockUse& use, float worth) {
  const Level& level = levels_[place];
  const Nanoseconds room = left - level.fixed - use.cost;  // with one micro-batch
  const auto begin = std::partition_point(level.pieces.begin() + static_cast<std::ptrdiff_t>(first),
                                          level.pieces.end(),
                                          [&](const Piece& piece) { return piece.cost > room; });
  work_ += 8 + (level.pieces.end() - begin);
  if (work_ > last_work_) is_complete_ = false;
  const bool is_first = chosen_.empty();
  for (auto piece = begin; piece != level.pieces.end() && work_ <= last_work_; ++piece) {
    const auto next = static_cast<std::size_t>(piece - level.pieces.begin()) + 1;
    const std::vector<float>& open = level.open[next / stride];
    const float with = worth + piece->worth;
    if (with + open[cell(room - piece->cost)] < least_) continue;
    const BlockUse& more = table_.use(level.index, piece->bundle);
    const BlockUse together{.cost = use.cost + more.cost,
                            .tokens = use.tokens + more.tokens,
                            .sequences = use.sequences + more.sequences};
    const Nanoseconds rest = left - table_.time(level.index, together);
    if (rest < 0 || with + open[cell(rest)] < least_) continue;
    if (is_first && counts_[static_cast<std::size_t>(piece->bundle)] >= most_of_each_) {
      is_complete_ = false;
      continue;
    }
    chosen_.push_back({.bundle = piece->bundle, .size = table_.size(level.index)});
    const float below = place > 0 ? levels_[place - 1].closed[cell(rest)] : 0;
    if (with + below >= least_) settle(place, rest, with);
    extend(place, next, left, together, with);
    chosen_.pop_back();
  }
}

}  // namespace isochron
