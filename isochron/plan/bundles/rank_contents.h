#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "isochron/plan/bundles/bundle_table.h"

namespace isochron {

// What a rank runs: parts of bundles, each in a group of some size.
struct ContentPart {
  BundleId bundle = 0;
  std::int32_t size = 1;

  bool operator==(const ContentPart&) const = default;
};

// Contents of ranks, one after the other, with what they are worth.
class ContentList {
 public:
  [[nodiscard]] std::size_t size() const { return worths_.size(); }
  [[nodiscard]] std::span<const ContentPart> parts(std::size_t i) const {
    return std::span(parts_).subspan(begin_[i], begin_[i + 1] - begin_[i]);
  }
  [[nodiscard]] std::int64_t worth(std::size_t i) const { return worths_[i]; }
  void add(std::span<const ContentPart> parts, std::int64_t worth) {
    parts_.insert(parts_.end(), parts.begin(), parts.end());
    begin_.push_back(parts_.size());
    worths_.push_back(worth);
  }

 private:
  std::vector<std::size_t> begin_ = {0};
  std::vector<ContentPart> parts_;
  std::vector<std::int64_t> worths_;
};

// All that one rank can run within a time and that is worth much. A bundle has a price; every rank
// of its group has an equal share of it, rounded up. Times are those of BundleTable::time(), to the
// nanosecond. No content has a bundle twice.
class RankContents {
 public:
  explicit RankContents(const BundleTable& table);

  // What may be asked for is worth at most this; more than that is not told apart quickly.
  static constexpr std::int64_t max_asked = 1 << 22;

  // Contents that are done within `time`; those worth less than `floor` are not asked for.
  void set_prices(std::span<const std::int64_t> prices, Nanoseconds time, std::int64_t floor);

  // Those worth `least` or more, which is not below the floor, but no more of them that only have
  // bundles in `most_of_each` others. False if some are missing, for that or because they would
  // take more than `max_work` to find.
  bool collect(std::int64_t least, std::int32_t most_of_each, std::int64_t max_work,
               ContentList& found);

  // The same of those whose widest groups are just these, all of one size above 1.
  bool collect_beside(std::span<const ContentPart> wide, std::int64_t least, std::int64_t max_work,
                      ContentList& found);

  // Additions and looks so far: about a nanosecond each.
  [[nodiscard]] std::int64_t work() const { return work_; }

 private:
  struct Piece {
    Nanoseconds cost = 0;
    std::int64_t worth = 0;
    BundleId bundle = 0;
  };
  // The most worth by cells of time that are left: never too little, in coarse units, and no more
  // than can be asked for.
  using Table = std::vector<std::int16_t>;
  struct Level {
    std::int32_t index = 0;
    Nanoseconds fixed = 0;
    std::vector<Piece> pieces;  // the dearest in time first
    std::vector<Table> open;    // with pieces from each stride on, and smaller levels
    Table closed;               // with this level, or none of it, and smaller ones
  };

  [[nodiscard]] std::size_t cell(Nanoseconds time) const {
    return static_cast<std::size_t>(time >> shift_);
  }
  [[nodiscard]] Level level_at(std::int32_t index, std::span<const std::int64_t> prices) const;
  void drop_hopeless(std::vector<Level>& wide, const Table& narrow, double floor);
  void add_piece(const Piece& piece, Table& table);
  void fill(Level& level, const Table& below);
  void begin(std::int64_t least, std::int32_t most_of_each, std::int64_t max_work,
             ContentList& found);
  void settle(std::size_t place, Nanoseconds left, std::int64_t worth);
  void extend(std::size_t place, std::size_t first, Nanoseconds left, const BlockUse& use,
              std::int64_t worth);

  [[nodiscard]] bool is_chosen(BundleId bundle) const {
    return std::any_of(chosen_.begin(), chosen_.end(),
                       [&](const ContentPart& part) { return part.bundle == bundle; });
  }

  const BundleTable& table_;
  std::vector<std::vector<BundleId>> longest_first_;  // that fit each level
  Nanoseconds time_ = 0;
  int shift_ = 0;              // a cell is a power of two of nanoseconds
  std::vector<Level> levels_;  // with pieces, the smallest size first
  std::int64_t work_ = 0;
  // Of collect():
  std::int64_t least_ = 0;
  std::int32_t most_of_each_ = 0;
  std::vector<std::int32_t> counts_;  // of contents with each bundle
  std::int64_t last_work_ = 0;
  bool is_complete_ = true;
  ContentList* found_ = nullptr;
  std::vector<ContentPart> chosen_;
};

}  // namespace isochron
