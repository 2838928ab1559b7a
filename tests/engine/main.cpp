// The engine's tests run single-threaded arithmetic: sums in one order, and two cores for several
// ranks.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "tests/support/process_ranks.h"

int main(int argc, char** argv) {
  isochron::take_rank_argument(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  at::set_num_threads(1);
  return RUN_ALL_TESTS();
}
