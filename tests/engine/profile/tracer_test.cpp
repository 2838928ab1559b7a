#include "isochron/engine/profile/tracer.h"

#include <gtest/gtest.h>

namespace isochron {
namespace {

TEST(Tracer, ListsScopesInTheOrderInWhichTheyBegan) {
  Tracer tracer;
  tracer.begin_step();
  {
    const auto outer = tracer.scope("outer");
    const auto inner = tracer.scope("inner", 3);
  }
  const auto scopes = tracer.scopes();
  ASSERT_EQ(scopes.size(), 2u);
  EXPECT_EQ(scopes[0].name, "outer");
  EXPECT_EQ(scopes[0].slot, -1);
  EXPECT_EQ(scopes[1].name, "inner");
  EXPECT_EQ(scopes[1].slot, 3);
  EXPECT_LE(scopes[0].begin_ns, scopes[1].begin_ns);
  EXPECT_LE(scopes[1].begin_ns, scopes[1].end_ns);
  EXPECT_LE(scopes[1].end_ns, scopes[0].end_ns);
}

TEST(Tracer, LeavesOutWhatIsStillOpen) {
  Tracer tracer;
  const auto open = tracer.scope("open");
  EXPECT_TRUE(tracer.scopes().empty());
}

TEST(Tracer, KeepsTheNewestWhenTheRingIsFull) {
  Tracer tracer(4);
  for (int slot = 0; slot < 10; ++slot) {
    const auto scope = tracer.scope("work", slot);
  }
  const auto scopes = tracer.scopes();
  ASSERT_EQ(scopes.size(), 4u);
  EXPECT_EQ(scopes.front().slot, 6);
  EXPECT_EQ(scopes.back().slot, 9);
}

TEST(Tracer, AScopeThatOutlivesItsStepOrItsPlaceInTheRingSpoilsNoOther) {
  Tracer tracer(2);
  {
    const auto long_one = tracer.scope("long");
    for (int slot = 0; slot < 2; ++slot) {
      const auto scope = tracer.scope("short", slot);
    }
  }
  auto scopes = tracer.scopes();
  ASSERT_EQ(scopes.size(), 2u);
  EXPECT_EQ(scopes[0].name, "short");
  {
    const auto before = tracer.scope("before");
    tracer.begin_step();
    EXPECT_TRUE(tracer.scopes().empty());
  }
  EXPECT_TRUE(tracer.scopes().empty());
}

}  // namespace
}  // namespace isochron
