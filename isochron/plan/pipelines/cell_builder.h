#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "isochron/plan/pipelines/cell_draft.h"
#include "isochron/plan/pipelines/rank_order.h"
#include "isochron/plan/pipelines/rank_room.h"
#include "isochron/plan/pipelines/slot_heights.h"
#include "isochron/plan/problem.h"
#include "isochron/simulate/pipeline_time.h"

namespace isochron {

// Ranks beside as many of the narrowest cells as there is place for: none are counted on for them,
// or they are smaller cells, with something in every slot too.
enum class RestRanks { idle, cells };

// Builds cells for one time after the other.
class CellBuilder {
 public:
  // Every item is a bundle. Only micro-batches of one item hold more than `capacity` tokens a rank.
  // `room` and `heights` are those of the question. Heights are rough once all that was built takes
  // longer than so many nanoseconds.
  CellBuilder(const Problem& problem, Tokens capacity, const RankRoom& room, SlotHeights& heights,
              RestRanks rest, double nanoseconds);

  // Builds cells with so many slots that take about `time`, as RankRoom counts it. False if some
  // item found no place, or if they take much longer because a slot has to hold something.
  [[nodiscard]] bool builds_cells(std::int32_t num_slots, double time);

  // What found no place, however the ranks that nothing was built on are used, as part of the area
  // of all items.
  [[nodiscard]] double part_left() const {
    return std::max(0.0, area_left_ - room_left_) / std::max(1.0, area_);
  }

  // Whether building has taken about as long as it should, by an estimate that depends on nothing
  // but the question.
  [[nodiscard]] bool is_spent() const { return nanoseconds_left_ <= 0; }

  // What was built last, and how long its slowest line takes.
  [[nodiscard]] double time() const { return time_; }
  [[nodiscard]] CellDraft draft() const { return draft_of(built_); }

  // Remembers what was built last, which something worse may follow.
  void keep() { kept_ = built_; }
  [[nodiscard]] CellDraft kept_draft() const { return draft_of(kept_); }

 private:
  struct Built {
    CellDraft::Cell cell;
    bool is_wide = false;  // runs one slot
    std::size_t slot = 0;  // that one, or else the one that others of the line have
  };
  struct Placed {
    std::size_t bin;  // of the draft
    ItemId item;
  };
  struct Layout {
    std::size_t num_slots = 0;
    std::vector<Built> cells;
    std::vector<Placed> placed;
  };
  struct Table {  // for one price
    struct Item {
      double cost = -1;   // not known yet
      Tokens tokens = 0;  // more than a cell holds if the item does not fit
    };
    PriceId price = 0;
    std::int32_t size = 1;
    double fixed = 0;
    mutable std::vector<Item> items;  // by place in order_; few of them are asked for on wide cells
  };
  struct Heights {
    std::vector<double> of_slot;
    std::vector<std::size_t> tallest_first;
  };
  struct Seat {  // of a cell
    const Table* table;
    std::int64_t first_place;  // in the order of the ranks
    RankRange ranks;
    double slowness;
  };

  [[nodiscard]] static CellDraft draft_of(const Layout& layout);
  [[nodiscard]] const Table& table_of(PriceId price);
  [[nodiscard]] const Table::Item& item_of(const Table& table, std::size_t place) const {
    const Table::Item& item = table.items[place];
    return item.cost >= 0 ? item : find_item(table, place);
  }
  [[nodiscard]] const Table::Item& find_item(const Table& table, std::size_t place) const;
  [[nodiscard]] std::size_t next_left(std::size_t place);
  void put(std::size_t bin, std::size_t place);
  [[nodiscard]] std::optional<Seat> find_seat(std::int64_t first_place, std::int32_t size);
  [[nodiscard]] std::optional<Seat> best_seat(std::size_t lead, std::int64_t first_place,
                                              std::int32_t narrowest, std::int32_t widest,
                                              SlotRange num_slots, double time);
  [[nodiscard]] static Heights sorted(std::vector<double> of_slot);
  [[nodiscard]] const Heights& heights_for(double lead, double shortest, std::int32_t num_slots);
  [[nodiscard]] static double tallest(const Heights& heights) {
    return heights.of_slot[heights.tallest_first.front()];
  }
  [[nodiscard]] double part_of_time(const Seat& seat, std::size_t place, double time) const {
    return (item_of(*seat.table, place).cost + seat.table->fixed) * seat.slowness / time;
  }
  void add_cell(const Seat& seat, const Heights& heights, std::size_t closed, double time);
  [[nodiscard]] std::size_t add_wide_cell(const Seat& seat, const Heights& heights,
                                          std::size_t lead, double time);
  void add_cells_beside(const Seat& wide, const Heights& heights, std::size_t closed, double time);
  [[nodiscard]] std::int64_t num_cells(std::int64_t num_ranks, std::int32_t size) const;
  [[nodiscard]] std::int32_t narrowest_size(std::int64_t first_place) const;
  void count_slot(const Seat& seat, std::size_t slot, double cost);
  [[nodiscard]] double line_time();
  [[nodiscard]] double fill_bin(const Table& table, double height, std::int64_t& num_more,
                                std::size_t bin, std::size_t& place);
  [[nodiscard]] std::size_t find_fitting(const Table& table, std::size_t place, double time,
                                         Tokens tokens, std::int32_t sequences);

  const Problem& problem_;
  Tokens capacity_;
  const RankRoom& room_;
  SlotHeights& slot_heights_;
  RankOrder rank_order_;
  RestRanks rest_;
  double nanoseconds_left_;
  std::vector<ItemId> order_;      // largest first
  std::vector<double> areas_;      // by place in order_, on the smallest size that holds the item
  std::vector<std::size_t> next_;  // the first place at or after it that may be left
  std::map<PriceId, Table> tables_;
  std::optional<PipelineTime> pipeline_;  // of as many slots as were asked for last
  std::vector<PassCost> slot_costs_;      // slowest of the line, so far
  bool is_line_slower_ = false;           // than when its time was found last
  Layout built_;
  Layout kept_;
  std::size_t num_lines_ = 0;
  double time_ = 0;
  // In parts of the time, for as many slots as were asked for last.
  Heights free_heights_;                    // where no slot is too long
  std::map<int, Heights> peak_heights_;     // with one that is, by its length
  const Heights* first_heights_ = nullptr;  // of the first cell
  std::int64_t num_items_left_ = 0;
  double area_ = 0;  // of all items
  double area_left_ = 0;
  double room_left_ = 0;      // on ranks without a cell
  std::size_t smallest_ = 0;  // all places from here on are taken
};

}  // namespace isochron
