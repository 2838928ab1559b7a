#include <cstdio>
#include <stdexcept>
#include <vector>

#include "isochron/balance/balance.h"
#include "isochron/core/batch.h"

// Every kind of thing crosses the border: a value, a result, an exception.
int main() {
  const isochron::Batch batch = isochron::parse_batch("[8, 7, 6, 5, 4]");
  const isochron::Balance balance = isochron::balance(batch.lengths, 2);
  std::printf("largest %lld, bound %lld\n", static_cast<long long>(balance.max_cost),
              static_cast<long long>(balance.lower_bound));
  try {
    (void)isochron::parse_batch("[8, 0]");
    return 1;
  } catch (const std::invalid_argument& error) {
    std::printf("%s\n", error.what());
  }
  return balance.status == isochron::Status::optimal && balance.max_cost == 15 ? 0 : 1;
}
