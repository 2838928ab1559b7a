// Large neighbourhood search for fewer bins.
//
// The emptiest bin and a few others are emptied, and their units packed again by minimum bin slack
// (Gupta and Ho, 1999; Fleszar and Hindi, 2002): the longest unit left opens a bin, and a short
// depth-first search finds the units that fill it best. The result stays if the squares of the
// tokens in the bins do not add up to less: full bins get fuller and the emptiest one emptier,
// until it is gone. Now and then some units are hidden from a bin, so that the search leaves its
// rut.

#include "isochron/pack/repack.h"

#include <algorithm>

#include "isochron/core/int128.h"
#include "isochron/core/random.h"

namespace isochron {

namespace {

constexpr std::uint64_t least_opened = 4;    // bins taken apart at once; few settle a full packing,
constexpr std::uint64_t most_opened = 9;     // more find a new one
constexpr std::uint64_t hidden_rounds = 4;   // one round of these hides units
constexpr std::int64_t tries_per_bin = 300;  // units tried to fill one bin
constexpr std::uint64_t hidden_percent = 12;

struct Piece {
  Tokens tokens;
  std::int32_t size;
  std::int32_t unit;
};

struct Bin {
  std::vector<Piece> pieces;
  Tokens tokens = 0;
  std::int64_t size = 0;

  void add(const Piece& piece) {
    pieces.push_back(piece);
    tokens += piece.tokens;
    size += piece.size;
  }
};

Int128 sum_of_squares(std::span<const Bin> bins) {
  Int128 sum = 0;
  for (const Bin& bin : bins) sum += static_cast<Int128>(bin.tokens) * bin.tokens;
  return sum;
}

class Repacking {
 public:
  Repacking(const Units& units, Tokens capacity, std::int64_t max_size, std::int32_t num_bins,
            RepackLimits limits, BinOf& bin_of)
      : capacity_(capacity),
        max_size_(max_size),
        work_(limits.work),
        patience_(limits.patience),
        bin_of_(bin_of),
        bins_(static_cast<std::size_t>(num_bins)) {
    for (std::size_t unit = 0; unit < units.count(); ++unit) {
      bins_[static_cast<std::size_t>(bin_of[unit])].add(
          {units.tokens_of(unit), units.size_of(unit), static_cast<std::int32_t>(unit)});
    }
  }

  std::int32_t run(std::int32_t target) {
    std::int64_t work_at_gain = work_;
    while (std::ssize(bins_) > target && bins_.size() > 1 && work_ > 0 &&
           work_at_gain - work_ < patience_) {
      if (is_better_after_retry()) work_at_gain = work_;
    }
    for (std::size_t bin = 0; bin < bins_.size(); ++bin) {
      for (const Piece& piece : bins_[bin].pieces) {
        bin_of_[static_cast<std::size_t>(piece.unit)] = static_cast<std::int32_t>(bin);
      }
    }
    return static_cast<std::int32_t>(bins_.size());
  }

 private:
  // Opens some bins and fills them again; keeps what is not worse, and says whether it is better.
  bool is_better_after_retry() {
    choose_bins();
    pieces_.clear();
    std::vector<Bin> before;
    for (const std::size_t bin : opened_) {
      before.push_back(bins_[bin]);
      pieces_.insert(pieces_.end(), bins_[bin].pieces.begin(), bins_[bin].pieces.end());
    }
    std::sort(pieces_.begin(), pieces_.end(), [](const Piece& a, const Piece& b) {
      return a.tokens != b.tokens ? a.tokens > b.tokens : a.unit < b.unit;
    });
    work_ -= static_cast<std::int64_t>(4 * pieces_.size() + bins_.size() / 8);
    fill_bins(random_.below(hidden_rounds) == 0 ? hidden_percent : 0);
    if (filled_.size() > opened_.size()) return false;
    const bool is_fewer = filled_.size() < opened_.size();
    const Int128 gain = sum_of_squares(filled_) - sum_of_squares(before);
    if (!is_fewer && gain < 0) return false;
    std::sort(opened_.begin(), opened_.end());
    for (std::size_t i = opened_.size(); i-- > 0;) {
      if (i < filled_.size()) {
        bins_[opened_[i]] = std::move(filled_[i]);
      } else {
        bins_.erase(bins_.begin() + static_cast<std::ptrdiff_t>(opened_[i]));
      }
    }
    return is_fewer || gain > 0;
  }

  // The emptiest bin, and others at random, the emptiest of three each time.
  void choose_bins() {
    const auto emptier = [](const Bin& a, const Bin& b) { return a.tokens < b.tokens; };
    opened_.assign(1, static_cast<std::size_t>(
                          std::min_element(bins_.begin(), bins_.end(), emptier) - bins_.begin()));
    const std::uint64_t more = least_opened - 1 + random_.below(most_opened - least_opened + 1);
    for (std::uint64_t i = 0; i < more; ++i) {
      auto bin = static_cast<std::size_t>(random_.below(bins_.size()));
      for (int draw = 1; draw < 3; ++draw) {
        const auto other = static_cast<std::size_t>(random_.below(bins_.size()));
        if (emptier(bins_[other], bins_[bin])) bin = other;
      }
      if (std::find(opened_.begin(), opened_.end(), bin) == opened_.end()) opened_.push_back(bin);
    }
  }

  void fill_bins(std::uint64_t percent) {
    filled_.clear();
    is_used_.assign(pieces_.size(), false);
    std::size_t seed = 0;
    while (true) {
      while (seed < pieces_.size() && is_used_[seed]) ++seed;
      if (seed == pieces_.size()) return;
      is_hidden_.assign(pieces_.size(), false);
      if (percent > 0) {
        for (std::size_t i = seed + 1; i < pieces_.size(); ++i) {
          is_hidden_[i] = random_.below(100) < percent;
        }
      }
      chosen_.clear();
      best_.clear();
      best_room_ = capacity_ - pieces_[seed].tokens;
      tries_ = tries_per_bin;
      choose(seed + 1, best_room_, max_size_ - pieces_[seed].size);
      Bin& bin = filled_.emplace_back();
      is_used_[seed] = true;
      bin.add(pieces_[seed]);
      for (const std::size_t i : best_) {
        is_used_[i] = true;
        bin.add(pieces_[i]);
      }
    }
  }

  // Depth-first over the pieces from `first` on, longest first, for those that leave least room.
  void choose(std::size_t first, Tokens room, std::int64_t size_left) {
    const auto begin = pieces_.begin() + static_cast<std::ptrdiff_t>(first);
    const auto fits = std::partition_point(begin, pieces_.end(),
                                           [&](const Piece& piece) { return piece.tokens > room; });
    Tokens last = 0;  // a piece of the same length leads to the same rooms
    for (auto i = static_cast<std::size_t>(fits - pieces_.begin()); i < pieces_.size(); ++i) {
      const Piece& piece = pieces_[i];
      if (is_used_[i] || is_hidden_[i] || piece.tokens == last || piece.size > size_left) continue;
      if (best_room_ == 0 || --tries_ < 0) return;
      --work_;
      last = piece.tokens;
      chosen_.push_back(i);
      if (room - piece.tokens < best_room_) {
        best_room_ = room - piece.tokens;
        best_ = chosen_;
      }
      if (room - piece.tokens >= pieces_.back().tokens) {
        choose(i + 1, room - piece.tokens, size_left - piece.size);
      }
      chosen_.pop_back();
    }
  }

  Tokens capacity_;
  std::int64_t max_size_;
  std::int64_t work_;
  std::int64_t patience_;
  BinOf& bin_of_;
  std::vector<Bin> bins_;
  Random random_{0};
  std::vector<std::size_t> opened_;
  std::vector<Piece> pieces_;  // of the opened bins, longest first
  std::vector<bool> is_used_, is_hidden_;
  std::vector<Bin> filled_;
  std::vector<std::size_t> chosen_, best_;
  Tokens best_room_ = 0;
  std::int64_t tries_ = 0;
};

}  // namespace

std::int32_t repack(const Units& units, Tokens capacity, std::int64_t max_size,
                    std::int32_t num_bins, std::int32_t target, RepackLimits limits,
                    BinOf& bin_of) {
  return Repacking(units, capacity, max_size, num_bins, limits, bin_of).run(target);
}

}  // namespace isochron
