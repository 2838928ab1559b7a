#pragma once

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

#include "isochron/core/field_text.h"
#include "isochron/core/random.h"

// Broken text for the tests that feed readers with it.

namespace isochron {

// How many mutations a test tries; ISOCHRON_FUZZ_ITERATIONS sets it for long runs.
inline std::int64_t fuzz_iterations() {
  const char* text = std::getenv("ISOCHRON_FUZZ_ITERATIONS");
  return text == nullptr ? 5000 : find_integer(text).value_or(5000);
}

// `text` after one to four changes: a byte replaced, a stretch removed, repeated or cut off, or a
// token put in that readers stumble over.
inline std::string mutated(std::string text, Random& random) {
  static constexpr std::array<std::string_view, 28> tokens = {"-1",
                                                              "0",
                                                              "1e999",
                                                              "1e300",
                                                              "-0.0",
                                                              "0.5",
                                                              "2147483648",
                                                              "9223372036854775807",
                                                              "18446744073709551616",
                                                              "null",
                                                              "true",
                                                              "[",
                                                              "]",
                                                              "{",
                                                              "}",
                                                              "\"",
                                                              "\\u0000",
                                                              "\\ud800",
                                                              ",",
                                                              ":",
                                                              "\n",
                                                              "\r",
                                                              "#",
                                                              "\xff",
                                                              "\xed\xa0\x80",
                                                              "[[[[",
                                                              "[]",
                                                              "\xef\xbb\xbf"};
  const std::uint64_t changes = 1 + random.below(4);
  for (std::uint64_t change = 0; change < changes; ++change) {
    const std::size_t at = static_cast<std::size_t>(random.below(text.size() + 1));
    const std::size_t size = static_cast<std::size_t>(random.below(12));
    switch (random.below(6)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(random.below(256));
        break;
      case 1:
        text.erase(at, size);
        break;
      case 2:
        text.insert(at, text.substr(at, size));
        break;
      case 3:
        text.resize(at);
        break;
      default:
        text.replace(at, random.below(3), tokens[static_cast<std::size_t>(random.below(28))]);
    }
  }
  return text;
}

}  // namespace isochron
