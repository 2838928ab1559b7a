#include "isochron/core/lists.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace isochron {
namespace {

std::vector<int> copy_of(std::span<const int> list) { return {list.begin(), list.end()}; }

TEST(Lists, AreNoneAtFirst) {
  const Lists<int> none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.size(), 0U);
  EXPECT_TRUE(none.values().empty());
}

TEST(Lists, KeepWhatTheyWereGivenInOrder) {
  Lists<int> lists = {{1, 2}, {}, {3}};
  lists.push_back({4, 5, 6});
  ASSERT_EQ(lists.size(), 4U);
  EXPECT_EQ(copy_of(lists[0]), (std::vector<int>{1, 2}));
  EXPECT_TRUE(lists[1].empty());
  EXPECT_EQ(copy_of(lists[2]), std::vector<int>{3});
  EXPECT_EQ(copy_of(lists[3]), (std::vector<int>{4, 5, 6}));
  EXPECT_EQ(copy_of(lists.values()), (std::vector<int>{1, 2, 3, 4, 5, 6}));
}

TEST(Lists, TheLastOneGrows) {
  Lists<int> lists = {{1}};
  lists.extend(2);
  lists.push_back({});
  lists.extend(3);
  lists.extend(4);
  EXPECT_EQ(copy_of(lists[0]), (std::vector<int>{1, 2}));
  EXPECT_EQ(copy_of(lists[1]), (std::vector<int>{3, 4}));
}

TEST(Lists, CopiesAreTheirOwn) {
  Lists<int> lists = {{1}, {2}};
  Lists<int> copy = lists;
  copy.extend(9);
  EXPECT_EQ(copy_of(lists[1]), std::vector<int>{2});
  EXPECT_EQ(copy_of(copy[1]), (std::vector<int>{2, 9}));
}

}  // namespace
}  // namespace isochron
