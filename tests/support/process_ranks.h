#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "isochron/engine/parallel/world.h"

// Real ranks for tests: each is a fresh copy of the running test program.
//
//   TEST(Sum, IsTheSameOnEveryRank) {
//     run_ranks(3, [](World& world) {
//       at::Tensor one = at::ones({1});
//       world.all().all_reduce_sum(one, "sum");
//       EXPECT_EQ(one.item<float>(), 3);
//     });
//   }
//
// A copy runs the same test up to the same call, runs the body there in place of the parent, and
// ends. So what a test does before the call happens in every rank too, and has to be the same each
// time: no clock, no random seed, no name of a process. Earlier calls of the same test return in
// the copy what they returned in the parent. A failed expectation in a body fails the test, with
// the output of the rank.

namespace isochron {

struct RankOptions {
  std::chrono::seconds limit{120};  // then all are killed
  WorldOptions world = {.timeout = std::chrono::milliseconds{60'000}};
};

// How a rank ended. `exit` is its exit code, or minus the number of the signal that killed it.
// A body that threw exits with 3, and `output` ends with the message.
struct RankOutcome {
  std::int32_t exit = 0;
  std::string output;  // what it wrote to stdout and stderr
  std::string result;  // what its body returned
  double seconds = 0;  // until it ended
};

// Runs `body` with the place of each rank. For ranks that are meant to fail; nothing is expected.
// A rank that stops itself (SIGSTOP) is killed when all others have ended.
[[nodiscard]] std::vector<RankOutcome> rank_outcomes(
    std::int32_t size, const std::function<std::string(const Place& place)>& body,
    const RankOptions& options = {});

// Expects every rank to end well; what the bodies returned.
std::vector<std::string> expect_ranks(std::int32_t size,
                                      const std::function<std::string(const Place& place)>& body,
                                      const RankOptions& options = {});

// Runs `body` on `size` ranks that are connected, and returns what it returned on each: text, or
// nothing.
template <std::invocable<World&> Body>
std::vector<std::string> run_ranks(std::int32_t size, Body body, const RankOptions& options = {}) {
  return expect_ranks(
      size,
      [&](const Place& place) -> std::string {
        World world(place, options.world);
        if constexpr (std::is_void_v<std::invoke_result_t<Body, World&>>) {
          body(world);
          return {};
        } else {
          return body(world);
        }
      },
      options);
}

// A TCP port of 127.0.0.1 that nobody uses.
[[nodiscard]] std::int32_t free_port();

// For main(): takes the argument that makes this process a rank, if there is one.
void take_rank_argument(int& argc, char** argv);

}  // namespace isochron
