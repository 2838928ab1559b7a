#include <cstdio>
#include <stdexcept>

#include "isochron/core/batch.h"

// Every kind of thing crosses the border: a value, a result, an exception.
int main() {
  const isochron::Batch batch = isochron::parse_batch("[8, 7, 6, 5, 4]");
  try {
    (void)isochron::parse_batch("[8, 0]");
    return 1;
  } catch (const std::invalid_argument& error) {
    std::printf("%zu lengths; %s\n", batch.lengths.size(), error.what());
  }
  return batch.lengths.size() == 5 ? 0 : 1;
}
