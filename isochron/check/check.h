#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "isochron/core/batch.h"

namespace isochron {

// The first rule that a result breaks, in words; nothing if the result is valid. `result_json` is
// the document that `balance`, `pack` or `plan` writes, told by its `schema`. With an `expected`
// batch the result must also have been made from it: the same lengths, groups and extra costs.
//
// Shares no algorithm with the planner: costs, sums, orders, times and bounds are worked out again
// from what the document says was asked. That an answer is infeasible is believed, except where an
// answer is plain to see.
//
// Throws std::invalid_argument if the text is not such a document: not JSON, a key missing or
// unknown, a value of another type, or a question that cannot be asked (a length of 0, an option
// out of range). Linear in the text, but for sorting; a plan takes O(slots * ranks * chunks), and
// one with more than 2^28 operations is rejected.
[[nodiscard]] std::optional<std::string> find_violation(std::string_view result_json,
                                                        const Batch* expected = nullptr);

// All that is wrong with a result.
struct Findings {
  std::vector<std::string> violations;  // in words, one of each broken rule
  bool has_places = false;  // of a plan: each sequence has one, in a group that can run it
};

// The same, not only of the first rule that is broken: of a plan all but those that rely on a
// broken one, of another result the first.
[[nodiscard]] Findings find_violations(std::string_view result_json,
                                       const Batch* expected = nullptr);

}  // namespace isochron
