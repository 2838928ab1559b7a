#include "isochron/engine/context/context_attention.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "isochron/layout/packed_layout.h"
#include "tests/engine/context/attention_comparison.h"
#include "tests/support/process_ranks.h"

namespace isochron {
namespace {

using testing::HasSubstr;

void compare_gathered(World& world) {
  Communicator& group = world.group(0, world.place().size);
  Random random(3);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round << ", ranks " << group.size());
    const std::int64_t kv_heads = random.between(1, 4);
    // All heads at once, or one or two at a time.
    compare_with_whole_sequences(
        group, random,
        {.kv_heads = kv_heads,
         .head_dim = random.between(1, 8),
         .options = {.gather_bytes = random.below(2) == 0 ? 1 << 20 : 20'000}});
  }
}

void compare_exchanged(World& world) {
  Communicator& group = world.group(0, world.place().size);
  Random random(4);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round << ", ranks " << group.size());
    const std::int64_t kv_heads = group.size() * random.between(1, 2);
    compare_with_whole_sequences(group, random,
                                 {.exchange = ContextKind::all_to_all,
                                  .kv_heads = kv_heads,
                                  .head_dim = random.between(1, 8)});
  }
}

TEST(GatheredAttention, EqualsWholeSequencesOnTwoRanks) { run_ranks(2, compare_gathered); }
TEST(GatheredAttention, EqualsWholeSequencesOnThreeRanks) { run_ranks(3, compare_gathered); }
TEST(GatheredAttention, EqualsWholeSequencesOnSixRanks) { run_ranks(6, compare_gathered); }
TEST(HeadAttention, EqualsWholeSequencesOnTwoRanks) { run_ranks(2, compare_exchanged); }
TEST(HeadAttention, EqualsWholeSequencesOnThreeRanks) { run_ranks(3, compare_exchanged); }
TEST(HeadAttention, EqualsWholeSequencesOnFiveRanks) { run_ranks(5, compare_exchanged); }

TEST(HeadAttention, ASizeThatDoesNotDivideTheHeadsIsNamed) {
  run_ranks(2, [](World& world) {
    const PackedLayout layout = packed_layout(
        std::vector<Tokens>{8}, {.context_size = 2, .context_rank = world.place().rank});
    const auto attention =
        context_attention(ContextKind::all_to_all, layout.cu_seqlens, world.group(0, 2), at::kCPU);
    const at::Tensor q = at::randn({4, 6, 2});
    const at::Tensor k = at::randn({4, 3, 2});
    try {
      (void)attention->forward(q, k, k);
      FAIL();
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), HasSubstr("a group of 2 ranks cannot share 3 key and value heads"));
    }
  });
}

}  // namespace
}  // namespace isochron
