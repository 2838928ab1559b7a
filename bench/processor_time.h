#pragma once

#include <time.h>

namespace isochron {

// Processor time of this thread. On a busy machine the clock on the wall would charge a rival's
// long run for what others do, and let a short one of ours slip through.
inline double cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

}  // namespace isochron
