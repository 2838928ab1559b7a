#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "isochron/balance/metrics.h"
#include "isochron/core/enum_names.h"
#include "isochron/core/fields.h"
#include "isochron/core/ids.h"
#include "isochron/core/units.h"
#include "isochron/pack/peer_error.h"

// verl's own micro-batches, answer for answer and error for error, for those who depend on them.
// pack() has the better ones.

namespace isochron {

enum class VerlRule {
  v0_9_1,       // the count grows until every micro-batch keeps the cap on every rank
  before_7553,  // one partition; the cap decides the count, but a micro-batch may exceed it
};

template <>
struct EnumNames<VerlRule> {
  static constexpr std::array<std::pair<VerlRule, std::string_view>, 2> values = {
      {{VerlRule::v0_9_1, "v0_9_1"}, {VerlRule::before_7553, "before_7553"}}};
};

struct VerlMicrobatchOptions {
  Tokens max_token_len = 0;                                 // of one micro-batch; required
  std::optional<std::int32_t> num_batches_divided_by = {};  // the count is a multiple of this
  std::optional<std::int32_t> min_num_micro_batch = {};     // and at least this
  bool use_dynamic_bsz_balance = true;     // small micro-batches first and last; else descending
  std::int32_t force_group_size = 1;       // so many consecutive sequences stay together
  std::optional<Tokens> max_seq_len = {};  // width of a padded batch; none: the longest sequence
  VerlRule rule = VerlRule::v0_9_1;

  template <class Row>
  static void describe(Row row) {
    using Self = VerlMicrobatchOptions;
    row(Field{"max_token_len", &Self::max_token_len, "tokens of one micro-batch; required"});
    row(Field{"num_batches_divided_by", &Self::num_batches_divided_by,
              "the number of micro-batches is a multiple of this"});
    row(Field{"min_num_micro_batch", &Self::min_num_micro_batch,
              "at least this many micro-batches"});
    row(Field{"use_dynamic_bsz_balance", &Self::use_dynamic_bsz_balance,
              "small micro-batches first and last; otherwise descending"});
    row(Field{"force_group_size", &Self::force_group_size,
              "so many consecutive sequences stay together"});
    row(Field{"max_seq_len", &Self::max_seq_len,
              "width of a padded batch, which max_token_len must reach; none: longest sequence"});
    row(Field{"rule", &Self::rule, "the version of verl whose answers are given"});
  }
};

// How the ranks of a data-parallel group agree. `all_reduce_max` replaces each number by the
// largest of it over the ranks; it is called exactly where verl calls its all-reduces. Empty: a
// rank decides for itself.
struct VerlAgreement {
  std::function<void(std::span<std::int64_t>)> all_reduce_max = {};
};

// 24576 s + s^2: what a sequence of `length` tokens costs, in verl's unit. `length` is from 0 to
// 2^31 - 1.
[[nodiscard]] std::int64_t verl_workload(Tokens length);

// verl's rearrange_micro_batches on lengths: the sequences of each micro-batch, ascending.
//
// Throws PeerAssertionError and PeerValueError where verl raises AssertionError and ValueError,
// with its texts (empty for its assertion without one), and std::invalid_argument where it fails in
// another way: no lengths, lengths that are negative or all 0, an option below 1, workloads that
// add up to more than 2^62.
[[nodiscard]] std::vector<std::vector<SequenceId>> verl_microbatches(
    std::span<const Tokens> lengths, const VerlMicrobatchOptions& options,
    const VerlAgreement& agreement = {});

// verl's log_seqlen_unbalance. Before balancing it cuts parts of n / k values, rounded down, and
// one more for the rest; load_spread() cuts k parts. Throws PeerValueError if there are fewer
// values than partitions, otherwise like load_spread().
[[nodiscard]] LoadSpread verl_seqlen_unbalance(std::span<const std::int64_t> values,
                                               std::span<const std::vector<SequenceId>> partitions);

}  // namespace isochron
