#include "isochron/core/ids.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace isochron {
namespace {

static_assert(!std::is_convertible_v<int, SequenceId>, "a bare number is not an id");
static_assert(!std::is_convertible_v<SequenceId, int>, "an id is not a bare number");
static_assert(!std::is_convertible_v<SequenceId, PromptGroupId>, "ids of two kinds do not mix");
static_assert(!std::equality_comparable_with<SequenceId, PromptGroupId>);
static_assert(sizeof(SequenceId) == 4);

TEST(Ids, OrderByValue) {
  EXPECT_LT(SequenceId(1), SequenceId(2));
  EXPECT_EQ(SequenceId(3).index(), 3u);
  EXPECT_EQ(SequenceId(), SequenceId(0));
}

}  // namespace
}  // namespace isochron
