#pragma once

#include <stdexcept>

namespace isochron::cuda {

// What the stand-ins for kernels do; their callers ask first whether there is one.
[[noreturn]] inline void reject_no_kernels() {
  throw std::runtime_error("[cuda] this build has no kernels: there was no nvcc");
}

}  // namespace isochron::cuda
