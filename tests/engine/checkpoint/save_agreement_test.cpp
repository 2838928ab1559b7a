#include "isochron/engine/checkpoint/save_agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "tests/support/process_ranks.h"

namespace isochron {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// What a call throws.
template <class Call>
std::string failure_of(Call call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "none";
}

TEST(SaveAgreement, PassesTextsFromRank0AndToIt) {
  run_ranks(3, [](World& world) {
    const std::int32_t rank = world.place().rank;
    SaveAgreement agreement(world, "it");
    EXPECT_EQ(agreement.from_rank_0("begin", [] { return std::string("go"); }), "go");
    const auto texts = agreement.on_every_rank("work", [&] { return std::to_string(rank); });
    if (rank == 0) {
      EXPECT_THAT(texts, ElementsAre("0", "1", "2"));
    } else {
      EXPECT_THAT(texts, IsEmpty());
    }
    EXPECT_EQ(agreement.from_rank_0("end", [] { return std::string(); }), "");
  });
}

TEST(SaveAgreement, TellsEveryRankWhatFailedOnOne) {
  run_ranks(3, [](World& world) {
    SaveAgreement agreement(world, "it");
    (void)agreement.on_every_rank("work", [&]() -> std::string {
      if (world.place().rank == 2) throw std::runtime_error("the disk is full");
      return "fine";
    });
    bool is_run = false;
    EXPECT_EQ(failure_of([&] {
                (void)agreement.from_rank_0("end", [&] {
                  is_run = true;
                  return std::string();
                });
              }),
              "the disk is full");
    EXPECT_FALSE(is_run);
  });
}

TEST(SaveAgreement, RunsBesideCollectives) {
  run_ranks(2, [](World& world) {
    std::thread beside([&] {
      SaveAgreement agreement(world, "beside");
      for (int i = 0; i < 20; ++i) {
        (void)agreement.from_rank_0(std::to_string(i), [] { return std::string(); });
      }
    });
    for (int i = 0; i < 100; ++i) {
      at::Tensor one = at::ones({1});
      world.all().all_reduce_sum(one, "sum");
      EXPECT_EQ(one.item<float>(), 2);
    }
    beside.join();
  });
}

TEST(SaveAgreement, NamesARankThatSaysNothing) {
  run_ranks(2,
            [](World& pair) {
              if (pair.place().rank == 1) return;
              SaveAgreement agreement(pair, "it");
              EXPECT_EQ(failure_of([&] {
                          (void)agreement.on_every_rank("work", [] { return std::string(); });
                        }),
                        "[checkpoint] rank 1 has not said \"work\" within 2.0 s");
            },
            {.world = {.timeout = std::chrono::milliseconds{2000}}});
}

}  // namespace
}  // namespace isochron
