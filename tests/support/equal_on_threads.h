#pragma once

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace isochron {

// Eight threads that call `run` at the same time get what one gets alone.
template <class Run>
void expect_equal_on_threads(Run run) {
  const auto expected = run();
  std::vector<decltype(run())> results(8);
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&] { result = run(); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, expected);
}

}  // namespace isochron
