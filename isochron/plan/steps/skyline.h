#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "isochron/plan/steps/wide_groups.h"

namespace isochron {

// An idle time of one rank, below a wide group.
struct Gap {
  std::int32_t rank = 0;
  Nanoseconds start = 0;
  Nanoseconds end = 0;
};

// Places wide groups in time, wherever their ranks may begin: on top of the others, or into the
// holes that these left below them. Ranks run groups by their start.
class Skyline {
 public:
  Skyline(const Problem& problem, WideGroups& wide) : problem_(problem), wide_(wide) {}

  // Idle times of at most `shortest` are of no use. A hole below a group counts `hole_weight` times
  // as much as its height.
  void reset(Nanoseconds shortest, std::int64_t hole_weight);

  // On `size` ranks or a few more, where it wastes least among the places where it ends by
  // `target`; with a far reach on many more if only these keep it; else where it ends first.
  void place(BundleId bundle, std::int32_t size, Nanoseconds target, Reach reach,
             std::int64_t& work);

  // What is left of the holes.
  [[nodiscard]] std::vector<Gap> gaps() const;

  // The group that each rank runs last; -1: none.
  [[nodiscard]] const std::vector<std::int32_t>& last_groups() const { return top_of_; }

 private:
  static constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max();

  // A run of ranks below a wide group, each idle from its floor to the ceiling.
  struct Pit {
    std::int32_t first = 0;
    std::int32_t size = 0;
    Nanoseconds ceiling = 0;
    Nanoseconds lowest = 0;  // floor
    std::size_t begin = 0;   // of its ranks in floors_ and tops_
  };

  struct Spot {
    std::int32_t pit = -1;  // -1: on top of all
    std::int32_t first = -1;
    std::int32_t size = 0;
    PriceId price = -1;
    std::int32_t joins = -1;  // a group
    Nanoseconds start = 0;
    Nanoseconds end = never;
    Nanoseconds waste = never;  // extra area of a wider group; little for holes and height
    bool is_late = true;

    [[nodiscard]] bool is_better_than(const Spot& other) const;
  };

  // All places for a group of a width on top of the skyline, by their first rank.
  struct Windows {
    std::vector<PriceId> prices = {};
    std::vector<Nanoseconds> tops = {};
    std::vector<Nanoseconds> holes = {};
    std::vector<Nanoseconds> wastes = {};  // for the height and the hole
    std::size_t num_seen = 0;              // of the changes of the skyline
  };

  // A bundle on groups of a width.
  struct Trial {
    BundleId bundle = 0;
    std::int32_t width = 0;
    Nanoseconds least_area = 0;
    Nanoseconds least_waste = 0;
    Nanoseconds target = 0;
    std::span<const PriceId> prices = {};  // by the first rank
    // Of the price at hand:
    PriceId price = -1;
    Nanoseconds cost = 0;
    Nanoseconds fixed = 0;
  };

  // What area below a group counts, and the part of it that is a hole. Neither is lost: they only
  // decide between places that cost about the same.
  [[nodiscard]] Nanoseconds height_waste(Nanoseconds below, Nanoseconds hole) const;
  // Those of a width, up to date.
  [[nodiscard]] const Windows& windows_of(std::int32_t width);
  void update(std::int32_t width, std::int64_t first, std::int64_t last, Windows& windows) const;
  void consider(Trial& trial, std::int32_t pit, std::int32_t first, Nanoseconds top,
                Nanoseconds hole, std::span<const std::int32_t> tops, Nanoseconds ceiling,
                Spot& best);
  void try_top(Trial& trial, const Windows& windows, Spot& best);
  void try_pit(Trial& trial, std::size_t pit, Spot& best);
  void put(BundleId bundle, const Spot& spot);
  // Makes pits of what lies below `ceiling` on these ranks.
  void dig(std::int32_t first, std::span<const Nanoseconds> floors,
           std::span<const std::int32_t> tops, Nanoseconds ceiling);

  const Problem& problem_;
  WideGroups& wide_;
  Nanoseconds shortest_ = 0;
  std::int64_t hole_weight_ = 1;
  std::vector<std::int32_t> top_of_;  // the wide group on top of each rank, -1: none
  std::vector<Pit> pits_;
  std::vector<Nanoseconds> floors_;
  std::vector<std::int32_t> tops_;
  std::vector<Windows> windows_;    // by width
  std::vector<RankRange> changes_;  // of the heights, in their order
};

}  // namespace isochron
