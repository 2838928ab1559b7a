#include "isochron/core/memo.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace isochron {
namespace {

TEST(Memo, AsksOnceForAKey) {
  Memo<int, std::string> memo(10);
  int num_asked = 0;
  const auto ask = [&](int key) {
    return memo.of(key, [&] {
      ++num_asked;
      return std::to_string(key);
    });
  };
  EXPECT_EQ(ask(7), "7");
  EXPECT_EQ(ask(8), "8");
  EXPECT_EQ(ask(7), "7");
  EXPECT_EQ(num_asked, 2);
}

TEST(Memo, ForgetsWhenItIsFull) {
  Memo<int, int> memo(2);
  int num_asked = 0;
  for (const int key : {1, 2, 1, 2, 3, 1}) {
    EXPECT_EQ(memo.of(key,
                      [&] {
                        ++num_asked;
                        return 10 * key;
                      }),
              10 * key);
  }
  EXPECT_EQ(num_asked, 4) << "1, 2, 3, and 1 again";
}

TEST(Memo, ServesThreadsAtOnce) {
  Memo<int, int> memo(50);
  std::atomic<int> num_wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 1000; ++round) {
        const int key = round % 60;
        if (memo.of(key, [&] { return key * key; }) != key * key) ++num_wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_wrong, 0);
}

}  // namespace
}  // namespace isochron
