// One rank under a launcher: launched_rank FOLDER [fail]. Adds up the ranks over all and over
// pairs, and writes what it found into FOLDER. With `fail` its first incarnation dies on rank 1.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>

#include "isochron/engine/parallel/launcher.h"
#include "isochron/engine/parallel/world.h"

namespace {

using isochron::Communicator;
using isochron::Place;
using isochron::World;

std::int64_t sum_of_ranks(Communicator& ranks, std::int32_t rank) {
  at::Tensor sum = at::full({1}, rank, at::kLong);
  ranks.all_reduce_sum(sum, "sum");
  return sum.item<std::int64_t>();
}

void run(const std::string& folder, bool fails) {
  const Place place = isochron::launched_place([](const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
  World world(place, {.timeout = std::chrono::milliseconds{60'000}});
  const bool is_first = place.incarnation.ends_with("/0");
  if (fails && is_first && place.rank == 1) std::_Exit(5);
  const std::int64_t all = sum_of_ranks(world.all(), place.rank);
  const std::int64_t pair = sum_of_ranks(world.group(place.rank / 2 * 2, 2), place.rank);
  std::ofstream(fmt::format("{}/rank_{}", folder, place.rank)) << fmt::format(
      "{} of {}, local {} of {}, sum {}, pair {}, incarnation {}", place.rank, place.size,
      place.local_rank, place.local_size, all, pair, is_first ? "first" : "later");
}

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  try {
    run(argv[1], argc > 2);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
  return 0;
}
