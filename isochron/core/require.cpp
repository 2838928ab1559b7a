#include "isochron/core/require.h"

#include <cstdio>
#include <cstdlib>

namespace isochron {

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "isochron: [%s:%d] assertion failed, please report it: %s\n", file, line,
               condition);
  std::abort();
}

}  // namespace isochron
