#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isochron/core/ids.h"
#include "isochron/core/units.h"

namespace isochron {

// The sequences of a batch. A vector that is not given is empty; the others are of one size.
struct Batch {
  std::vector<Tokens> lengths;
  std::vector<Nanoseconds> extra_cost_ns;  // on top of what the length costs (images, tools)
  std::vector<PromptGroupId> groups;       // numbered by first occurrence
  std::vector<std::string> group_names;    // of each group number; UTF-8

  bool operator==(const Batch&) const = default;
};

// Reads lengths in one of three forms, told by content: a JSON array of integers; CSV with a header
// that has `length` and optionally `group` and `extra_cost_ns`; one integer a line. Blank lines and
// lines that start with # are skipped, CRLF and a byte order mark accepted, other columns ignored.
//
// Throws std::invalid_argument with the line number for anything else: a length outside 1 to
// 2^31-1, a negative extra cost, text without a length. Linear in the text.
[[nodiscard]] Batch parse_batch(std::string_view text);

// The `count` sequences from `first` on as a batch of their own, groups numbered by their first
// occurrence in it. Throws std::invalid_argument if the batch does not have that many.
[[nodiscard]] Batch cut_batch(const Batch& batch, std::size_t first, std::size_t count);

// Long-tailed lengths for demonstrations, equal on every machine: half of them below 600 tokens,
// one in a hundred above 16,000, one in a thousand above 60,000.
[[nodiscard]] std::vector<Tokens> long_tailed_lengths(std::int32_t count, std::uint64_t seed);

}  // namespace isochron
