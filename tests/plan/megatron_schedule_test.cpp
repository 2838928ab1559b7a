#include "isochron/plan/megatron_schedule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "isochron/core/random.h"

namespace isochron {
namespace {

// Groups as first-last:{ids}, micro-batches divided by |.
std::string text_of(const MegatronSchedule& schedule) {
  if (!schedule.error.empty()) return schedule.error;
  std::string text;
  for (const Slot& slot : schedule.microbatches) {
    if (!text.empty()) text += "| ";
    for (const ContextGroup& group : slot) {
      const auto [first, size] = group.ranks;
      text +=
          size == 1 ? fmt::format("{}:", first) : fmt::format("{}-{}:", first, first + size - 1);
      std::vector<std::int32_t> ids;
      for (const SequenceId id : group.sequences) ids.push_back(id.value());
      text += fmt::format("{{{}}} ", fmt::join(ids, ","));
    }
  }
  return text;
}

std::string schedule_of(const std::vector<Tokens>& lengths, std::int32_t ranks, Tokens capacity,
                        std::int32_t slot_multiple = 1) {
  return text_of(megatron_schedule(
      lengths, {.ranks = ranks, .capacity = capacity, .slot_multiple = slot_multiple}));
}

TEST(MegatronDynamic, GivesTheReferenceAnswers) {
  EXPECT_EQ(schedule_of({6144, 2048}, 2, 4096), "0-1:{0,1} ");
  EXPECT_EQ(schedule_of({50, 50}, 14, 100), "0-13:{0,1} ");
  EXPECT_EQ(schedule_of({7, 3, 5}, 4, 4), "0-1:{0} 2-3:{2,1} ");
  EXPECT_EQ(schedule_of({3900, 1000, 1000, 500}, 2, 2000), "0-1:{0} | 0:{1,3} 1:{2} ");
  EXPECT_EQ(schedule_of({16000, 1000, 1000, 1000, 1000, 2000, 3000, 4000}, 4, 4096),
            "0-3:{0} | 0:{7} 1:{6,1} 2:{5,2,3} 3:{4} ");
  EXPECT_EQ(schedule_of({1000, 1000, 1000, 1000, 1000}, 4, 4096), "0:{0,4} 1:{1} 2:{2} 3:{3} ");
  EXPECT_EQ(schedule_of({100}, 4, 7),
            "Sequence length 100 requires CP size 16, but only 4 DPxCP "
            "ranks are available.");
  EXPECT_EQ(schedule_of({100}, 4, 50), "0-3:{0} ");
  EXPECT_EQ(schedule_of({100}, 8, 4096), "0-7:{0} ");
  EXPECT_EQ(schedule_of({}, 8, 4096), "");
}

TEST(MegatronDynamic, NeedsAPowerOfTwo) {
  EXPECT_EQ(schedule_of({9000}, 4, 2000),
            "Sequence length 9000 requires CP size 8, but only 4 DPxCP ranks are available.");
  EXPECT_EQ(schedule_of({500}, 6, 100),
            "Sequence length 500 requires CP size 8, but only 6 DPxCP ranks are available.");
}

TEST(MegatronDynamic, PushesGroupsBeyondTheLastRank) {
  const std::string error = "list assignment index out of range";
  EXPECT_EQ(schedule_of({3, 3}, 10, 8), error);
  EXPECT_EQ(schedule_of({341, 276}, 10, 100), error);
}

TEST(MegatronDynamic, SplitsMicrobatchesForVirtualStages) {
  EXPECT_EQ(schedule_of({1000, 1000, 1000, 1000, 1000}, 4, 4096, 2),
            "0-1:{2} 2-3:{3} | 0-1:{0,4} 2-3:{1} ");
  EXPECT_EQ(schedule_of({100}, 4, 4096, 2),
            "align_sample_id_groups: no tail microbatch has enough ids to split");
  EXPECT_EQ(schedule_of({32, 7}, 6, 8, 2),
            "align_sample_id_groups does not end: no group can grow into the empty ranks");
}

TEST(MegatronDynamic, PlacesEverySequenceOnceUnderThePaddedCap) {
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    const auto ranks = std::int32_t{1} << random.below(6);
    const MegatronOptions options{.ranks = ranks, .capacity = 100, .pad_for_tensor_parallel = 2};
    std::vector<Tokens> lengths(1 + random.below(60));
    for (Tokens& length : lengths)
      length = random.between(1, random.below(3) == 0 ? 90 * ranks : 90);
    SCOPED_TRACE(i);
    const MegatronSchedule schedule = megatron_schedule(lengths, options);
    ASSERT_EQ(schedule.error, "");
    std::vector<int> seen(lengths.size(), 0);
    for (const Slot& slot : schedule.microbatches) {
      std::int64_t next = 0;
      for (const ContextGroup& group : slot) {
        EXPECT_EQ(group.ranks.first, next);
        EXPECT_EQ(group.ranks.first % group.ranks.size, 0);
        next += group.ranks.size;
        Tokens tokens = 0;
        for (const SequenceId id : group.sequences) {
          tokens += padded_length(lengths[id.index()], group.ranks.size, 2);
          ++seen[id.index()];
        }
        EXPECT_LE(tokens, 100 * group.ranks.size);
      }
      EXPECT_EQ(next, ranks);
    }
    EXPECT_EQ(seen, std::vector<int>(lengths.size(), 1));
  }
}

}  // namespace
}  // namespace isochron
