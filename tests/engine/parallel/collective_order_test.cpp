#include "tests/support/collective_order.h"

#include <gtest/gtest.h>

namespace isochron {
namespace {

IssuedCollective on_all(const char* operation, std::int64_t elements = 1) {
  return {"all ranks", 0, 3, operation, elements};
}
IssuedCollective on_first_two(const char* operation) {
  return {"ranks 0 to 1", 0, 2, operation, 1};
}
IssuedCollective on_last_two(const char* operation) { return {"ranks 1 to 2", 1, 2, operation, 1}; }

TEST(CollectiveOrder, AcceptsWhatFitsIntoOneOrder) {
  EXPECT_EQ(find_order_violation({{}, {}, {}}), std::nullopt);
  EXPECT_EQ(find_order_violation({{on_first_two("a"), on_all("c"), on_all("d")},
                                  {on_first_two("a"), on_last_two("b"), on_all("c"), on_all("d")},
                                  {on_last_two("b"), on_all("c"), on_all("d")}}),
            std::nullopt);
}

TEST(CollectiveOrder, RecordsTravelAsText) {
  const std::vector<IssuedCollective> issued{on_all("gradient norm", 7), on_first_two("a")};
  EXPECT_EQ(issued_from_text(issued_text(issued)), issued);
}

TEST(CollectiveOrder, FindsMembersThatDisagree) {
  EXPECT_EQ(
      find_order_violation(
          {{on_all("a"), on_all("b")}, {on_all("a"), on_all("b")}, {on_all("b"), on_all("a")}}),
      "collective 0 of all ranks: rank 0 issued a of 1, rank 2 b of 1");
  EXPECT_EQ(find_order_violation({{on_all("a", 5)}, {on_all("a", 6)}, {on_all("a", 5)}}),
            "collective 0 of all ranks: rank 0 issued a of 5, rank 1 a of 6");
}

TEST(CollectiveOrder, FindsAMemberThatStaysAway) {
  EXPECT_EQ(find_order_violation({{on_all("a")}, {on_all("a")}, {}}),
            "collective 0 of all ranks: rank 0 issued a of 1, rank 2 nothing");
  EXPECT_EQ(find_order_violation({{on_all("a")}, {on_all("a")}, {on_all("a"), on_all("b")}}),
            "collective 1 of all ranks: rank 0 issued nothing, rank 2 b of 1");
}

TEST(CollectiveOrder, FindsACircleOverSeveralCommunicators) {
  // 0 waits in "0 to 1" for 1, which waits in "1 to 2" for 2, which waits in "all" for 0.
  EXPECT_EQ(find_order_violation({{on_first_two("a"), on_all("c")},
                                  {on_last_two("b"), on_first_two("a"), on_all("c")},
                                  {on_all("c"), on_last_two("b")}}),
            "these wait for each other: all ranks 0, ranks 0 to 1 0, ranks 1 to 2 0");
}

IssuedCollective opens(IssuedCollective group) {
  group.operation = group_opened;
  group.elements = 0;
  return group;
}
IssuedCollective closes(IssuedCollective group) {
  group.operation = group_closed;
  group.elements = 0;
  return group;
}
const IssuedCollective first_two = on_first_two("a");
const IssuedCollective last_two = on_last_two("b");

TEST(CollectiveOrder, AcceptsGroupsThatOpenAndClose) {
  EXPECT_EQ(find_order_violation({{opens(first_two), first_two, closes(first_two), on_all("c"),
                                   opens(first_two), first_two},
                                  {opens(first_two), first_two, closes(first_two), opens(last_two),
                                   on_all("c"), opens(first_two), last_two, first_two},
                                  {opens(last_two), on_all("c"), last_two}}),
            std::nullopt);
}

TEST(CollectiveOrder, FindsGroupsThatOpenInACircle) {
  const IssuedCollective all = on_all("c");
  EXPECT_EQ(find_order_violation({{opens(first_two), opens(all)},
                                  {opens(last_two), opens(first_two), opens(all)},
                                  {opens(all), opens(last_two)}}),
            "these wait for each other: all ranks 0, ranks 0 to 1 0, ranks 1 to 2 0");
}

TEST(CollectiveOrder, FindsAMemberThatKeepsAGroupOpen) {
  EXPECT_EQ(find_order_violation({{opens(first_two), closes(first_two)}, {opens(first_two)}, {}}),
            "collective 1 of ranks 0 to 1: rank 0 issued close group of 0, rank 1 nothing");
}

TEST(CollectiveOrder, FindsWhatIsIssuedOnAGroupThatIsNotOpen) {
  const std::vector<IssuedCollective> closed{opens(first_two), closes(first_two), first_two};
  EXPECT_EQ(find_order_violation({closed, closed, {}}),
            "rank 0 issued a on ranks 0 to 1, which is not open");
  const std::vector<IssuedCollective> never{closes(first_two)};
  EXPECT_EQ(find_order_violation({never, never, {}}),
            "rank 0 issued close group on ranks 0 to 1, which is not open");
  const std::vector<IssuedCollective> twice{opens(first_two), opens(first_two)};
  EXPECT_EQ(find_order_violation({twice, twice, {}}),
            "rank 0 issued open group on ranks 0 to 1, which is open");
}

}  // namespace
}  // namespace isochron
