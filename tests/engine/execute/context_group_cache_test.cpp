#include "isochron/engine/execute/context_group_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "isochron/core/random.h"
#include "tests/support/collective_order.h"
#include "tests/support/message_of.h"
#include "tests/support/random_plan.h"

namespace isochron {
namespace {

constexpr auto open = GroupChange::Kind::open;
constexpr auto close = GroupChange::Kind::close;

using Range = std::pair<std::int64_t, std::int64_t>;
using Changes = std::vector<GroupChange>;

// A plan of which nothing but its groups matters here.
StepPlan plan_of(std::int32_t ranks, const std::vector<std::vector<RankRange>>& slots) {
  StepPlan plan;
  plan.topology.ranks = ranks;
  for (const auto& ranges : slots) {
    Slot& slot = plan.microbatches.emplace_back();
    for (const RankRange& range : ranges) slot.push_back({range, {}, {}});
  }
  return plan;
}

TEST(ContextGroupCache, OpensWhatIsMissingInTheOrderOfTheSlots) {
  ContextGroupCache cache(9);
  EXPECT_EQ(cache.advance(plan_of(4, {{{0, 1}, {2, 2}}, {{0, 2}, {2, 2}}, {{0, 4}}})),
            (Changes{{open, {2, 2}}, {open, {0, 2}}, {open, {0, 4}}}));
  EXPECT_EQ(cache.advance(plan_of(4, {{{1, 3}}, {{0, 2}}})), (Changes{{open, {1, 3}}}));
  EXPECT_EQ(cache.advance(plan_of(4, {{{0, 1}}})), Changes{});
}

TEST(ContextGroupCache, ClosesTheLeastRecentlyUsedOnAllItsMembers) {
  ContextGroupCache cache(2);
  (void)cache.advance(plan_of(4, {{{0, 2}, {2, 2}}}));
  (void)cache.advance(plan_of(4, {{{0, 4}}}));
  (void)cache.advance(plan_of(4, {{{2, 2}}}));
  // Ranks 0 and 1 have too many without 0 to 1; rank 2 with 2 to 3, which is newer than 0 to 3.
  EXPECT_EQ(cache.advance(plan_of(4, {{{0, 3}}})),
            (Changes{{close, {0, 2}}, {close, {0, 4}}, {open, {0, 3}}}));
}

TEST(ContextGroupCache, TiesAreClosedByFirstRankAndSize) {
  ContextGroupCache cache(1);
  (void)cache.advance(plan_of(3, {{{1, 2}}, {{0, 3}}, {{0, 2}}}));
  EXPECT_EQ(cache.advance(plan_of(3, {{{0, 1}}})), (Changes{{close, {0, 2}}, {close, {0, 3}}}));
}

TEST(ContextGroupCache, KeepsWhatThePlanNeedsBeyondTheLimitForThatStep) {
  ContextGroupCache cache(1);
  EXPECT_EQ(cache.advance(plan_of(3, {{{0, 2}}, {{0, 3}}})),
            (Changes{{open, {0, 2}}, {open, {0, 3}}}));
  EXPECT_EQ(cache.advance(plan_of(3, {{{0, 3}}, {{0, 2}}})), Changes{});
  EXPECT_EQ(cache.advance(plan_of(3, {{{0, 3}}})), (Changes{{close, {0, 2}}}));
}

TEST(ContextGroupCache, RejectsALimitBelowOne) {
  EXPECT_EQ(message_of([] { ContextGroupCache(0); }),
            "[context groups] max_open is 0, must be at least 1");
}

// In the order of (slot, first rank, size), each once.
std::vector<Range> needed_groups(const StepPlan& plan) {
  std::vector<Range> needed;
  for (const Slot& slot : plan.microbatches) {
    for (const ContextGroup& group : slot) {
      const Range range{group.ranks.first, group.ranks.size};
      if (range.second > 1 && std::ranges::find(needed, range) == needed.end()) {
        needed.push_back(range);
      }
    }
  }
  return needed;
}

bool is_in(std::int64_t rank, const Range& range) {
  return range.first <= rank && rank < range.first + range.second;
}

// What a rank has open, from the rules alone.
class Account {
 public:
  Account(std::int64_t rank, std::int32_t max_open)
      : rank_(rank), max_open_(static_cast<std::size_t>(max_open)) {}

  // Expects the changes before `plan` to be right for this rank; adds them to what it records.
  void follow(const StepPlan& plan, const Changes& changes,
              std::vector<IssuedCollective>& records) {
    std::vector<Range> needed = needed_groups(plan);
    std::erase_if(needed, [&](const Range& range) { return !is_in(rank_, range); });
    std::vector<Range> missing = needed;
    std::erase_if(missing, [&](const Range& range) { return open_.contains(range); });
    const std::size_t limit = std::max(max_open_, needed.size());
    const std::size_t size_before = open_.size();
    std::vector<Range> opened;
    for (const auto& [kind, ranks] : changes) {
      const Range range{ranks.first, ranks.size};
      if (!is_in(rank_, range)) continue;
      records.push_back({fmt::format("ranks {} {}", ranks.first, ranks.size),
                         static_cast<std::int32_t>(ranks.first),
                         static_cast<std::int32_t>(ranks.size),
                         std::string(kind == open ? group_opened : group_closed), 0});
      if (kind == open) {
        EXPECT_TRUE(open_.insert(range).second) << "it is open";
        opened.push_back(range);
      } else {
        EXPECT_TRUE(opened.empty()) << "room is made first";
        EXPECT_TRUE(std::ranges::find(needed, range) == needed.end()) << "it is needed";
        EXPECT_EQ(open_.erase(range), 1u) << "it is not open";
      }
      EXPECT_LE(open_.size(), std::max(limit, size_before));
    }
    EXPECT_EQ(opened, missing) << "in the order of the slots, and nothing else";
    EXPECT_LE(open_.size(), limit);
  }

 private:
  std::int64_t rank_;
  std::size_t max_open_;
  std::set<Range> open_;
};

// Expects every group to be closed for the sake of a member that has too many and nothing older to
// close. `last_step` is that of all groups that are open before; kept up to date.
void expect_reasons(const StepPlan& plan, const Changes& changes, std::int32_t max_open,
                    std::int64_t step, std::map<Range, std::int64_t>& last_step) {
  for (const Range& range : needed_groups(plan)) last_step[range] = step;
  for (const auto& [kind, ranks] : changes) {
    if (kind == open) continue;
    const Range closed{ranks.first, ranks.size};
    bool has_reason = false;
    for (std::int64_t rank = ranks.first; rank < ranks.first + ranks.size; ++rank) {
      std::int32_t num_open = 0;
      bool is_oldest = true;
      for (const auto& [range, last] : last_step) {
        if (!is_in(rank, range)) continue;
        ++num_open;
        is_oldest &= std::tie(last, range) >= std::tie(last_step.at(closed), closed);
      }
      has_reason |= num_open > max_open && is_oldest;
    }
    EXPECT_TRUE(has_reason) << closed.second << " ranks from " << closed.first << " on";
    last_step.erase(closed);
  }
}

TEST(ContextGroupCache, EveryRankAgreesOverRandomHistories) {
  std::int64_t num_closed = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const auto num_ranks = static_cast<std::int32_t>(random.between(2, 9));
    const auto max_open = static_cast<std::int32_t>(random.between(1, 6));
    std::vector<ContextGroupCache> caches(static_cast<std::size_t>(num_ranks),
                                          ContextGroupCache(max_open));
    std::vector<Account> accounts;
    for (std::int32_t rank = 0; rank < num_ranks; ++rank) accounts.emplace_back(rank, max_open);
    std::vector<std::vector<IssuedCollective>> records(caches.size());
    std::map<Range, std::int64_t> last_step;
    for (std::int64_t step = 1; step <= 25; ++step) {
      const StepPlan plan =
          random_plan(1000 * seed + static_cast<std::uint64_t>(step),
                      {.ranks = num_ranks,
                       .context = random.between(0, 1) == 0 ? "dynamic" : "dynamic:any",
                       .stages = 1,
                       .num_sequences = static_cast<std::int32_t>(random.between(1, 12))});
      Changes changes;
      for (std::size_t rank = 0; rank < caches.size(); ++rank) {
        const Changes own = caches[rank].advance(plan);
        if (rank == 0) changes = own;
        EXPECT_EQ(own, changes);
        accounts[rank].follow(plan, own, records[rank]);
      }
      expect_reasons(plan, changes, max_open, step, last_step);
      num_closed += std::ranges::count(changes, close, &GroupChange::kind);
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_EQ(find_order_violation(records), std::nullopt);
  }
  EXPECT_GT(num_closed, 500) << "otherwise nothing was tested";
}

}  // namespace
}  // namespace isochron
