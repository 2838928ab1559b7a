#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isochron/check/violation.h"
#include "isochron/core/batch.h"
#include "isochron/core/json.h"
#include "isochron/core/status.h"

// What the documents of all kinds of results have in common: the question, and lists of ids.

namespace isochron::check {

inline constexpr std::string_view where = "check";

// The batch that a result says it was made from, and what its sequences cost.
struct ResultInput {
  Batch batch;
  std::vector<Nanoseconds> costs;

  [[nodiscard]] std::size_t size() const { return batch.lengths.size(); }
};

// Reads `lengths`, `group`, `extra_cost_ns` and `cost`. Rejects what parse_batch would, and a cost
// or a total above 2^62.
[[nodiscard]] ResultInput read_input(const Json& document);

// The first difference between the batch of a result and the one that was expected.
[[nodiscard]] Violation find_difference(const Batch& batch, const Batch& expected);

// All fields of `options`. Unlike options_from_json it rejects an object that leaves one out: what
// was asked must be known to the last detail.
template <class Options>
[[nodiscard]] Options read_options(const Json& document) {
  const Json& options = member(document, where, "options");
  require_object(options, where, "options");
  for (const std::string& key : field_keys<Options>()) {
    require(options.contains(key), where, "\"options.{}\" is missing", key);
  }
  return options_from_json<Options>(options, where);
}

[[nodiscard]] std::int64_t read_integer(const Json& document, std::string_view key);
[[nodiscard]] std::vector<std::int64_t> read_ids(const Json& document, std::string_view key);
[[nodiscard]] std::vector<std::vector<std::int64_t>> read_id_lists(const Json& document,
                                                                   std::string_view key);

[[nodiscard]] constexpr bool has_answer(Status status) {
  return status == Status::optimal || status == Status::feasible;
}

// An answer needs no reason, and the lack of one does.
[[nodiscard]] Violation find_reason_violation(Status status, std::string_view reason);

// What moves as a whole: single sequences, or the sequences of a group.
struct Units {
  std::string_view name = {};                    // "sequence" or "group", for messages
  std::vector<std::size_t> of_sequence = {};     // by first occurrence
  std::vector<Tokens> tokens = {};               // of each unit
  std::vector<Nanoseconds> costs = {};           // of each unit
  std::vector<std::int64_t> num_sequences = {};  // of each unit

  [[nodiscard]] std::size_t size() const { return tokens.size(); }
};
[[nodiscard]] Units single_units(const ResultInput& input);
[[nodiscard]] Units group_units(const ResultInput& input);

// A unit as messages show it: `sequence 7`, `group "a"`.
[[nodiscard]] std::string unit_text(const ResultInput& input, const Units& units, std::size_t unit);

// Counts where each sequence of a batch stands.
class Places {
 public:
  explicit Places(std::size_t num_sequences) : list_of_(num_sequences, nowhere) {}

  // Every id is one of the batch that stood nowhere yet. `path` is the list in the document.
  [[nodiscard]] Violation place(std::span<const std::int64_t> ids, std::string path);
  [[nodiscard]] Violation find_missing() const;

 private:
  static constexpr auto nowhere = static_cast<std::size_t>(-1);
  std::vector<std::size_t> list_of_;
  std::vector<std::string> paths_;  // of the lists
};

// `keys` ascending, those at even places in that order, then those at odd places backwards.
template <class Key>
[[nodiscard]] std::vector<Key> small_at_both_ends(std::vector<Key> keys) {
  std::sort(keys.begin(), keys.end());
  std::vector<Key> left;
  std::vector<Key> right;
  for (std::size_t i = 0; i < keys.size(); ++i) (i % 2 == 0 ? left : right).push_back(keys[i]);
  left.insert(left.end(), right.rbegin(), right.rend());
  return left;
}

// a / b rounded up; a >= 0, b >= 1.
[[nodiscard]] constexpr std::int64_t rounded_up(std::int64_t a, std::int64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

}  // namespace isochron::check
