#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string_view>
#include <utility>

// For what no input can cause: our own mistakes. Kept in every build, since a wrong plan is worse
// than none.
#define ISOCHRON_ASSERT(condition)    \
  ((condition) ? static_cast<void>(0) \
               : ::isochron::assertion_failed(#condition, __FILE__, __LINE__))

namespace isochron {

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

// Throws std::invalid_argument("[where] message"): the caller's mistake, with the value and what is
// allowed, before any work is done.
template <class... Args>
[[noreturn]] void reject(std::string_view where, fmt::format_string<Args...> message,
                         Args&&... args) {
  throw std::invalid_argument(
      fmt::format("[{}] {}", where, fmt::format(message, std::forward<Args>(args)...)));
}

// Rejects unless `condition` holds. The arguments are evaluated in any case: keep them cheap.
template <class... Args>
void require(bool condition, std::string_view where, fmt::format_string<Args...> message,
             Args&&... args) {
  if (!condition) reject(where, message, std::forward<Args>(args)...);
}

}  // namespace isochron
