// rearrange_micro_batches of verl 0.9.1 and of the versions before its pull request 7553.
//
// The number of micro-batches comes from tokens, their contents from largest differencing on the
// workload 24576 s + s^2. So the first partition may exceed the cap: the older rule leaves it so,
// the newer one adds a micro-batch (or a pipeline group of them) and partitions again.

#include "isochron/pack/verl_microbatches.h"

#include <algorithm>
#include <numeric>

#include "isochron/balance/karmarkar_karp.h"
#include "isochron/core/require.h"

namespace isochron {
namespace {

constexpr std::string_view where = "verl_microbatches";

template <class Error, class... Args>
void require_like_verl(bool condition, fmt::format_string<Args...> message, Args&&... args) {
  if (!condition) throw Error(fmt::format(message, std::forward<Args>(args)...));
}

// What moves: `size` consecutive sequences.
struct Groups {
  std::int64_t count = 0;
  std::int32_t size = 1;
  std::vector<std::int64_t> workloads;
  std::vector<Tokens> tokens;
};

Groups groups_of(std::span<const Tokens> lengths, std::int32_t size) {
  const std::size_t per_group = static_cast<std::size_t>(size);
  const std::size_t count = lengths.size() / per_group;
  Groups groups = {static_cast<std::int64_t>(count), size, std::vector<std::int64_t>(count),
                   std::vector<Tokens>(count)};
  std::int64_t room = max_total_cost;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::int64_t workload = verl_workload(lengths[i]);
    require(workload <= room, where, "workloads up to lengths[{}] add up to more than 2^62", i);
    room -= workload;
    groups.workloads[i / per_group] += workload;
    groups.tokens[i / per_group] += lengths[i];
  }
  return groups;
}

Tokens most_tokens(const Groups& groups, const std::vector<std::vector<SequenceId>>& partitions) {
  Tokens most = 0;
  for (const std::vector<SequenceId>& partition : partitions) {
    Tokens tokens = 0;
    for (const SequenceId group : partition) tokens += groups.tokens[group.index()];
    most = std::max(most, tokens);
  }
  return most;
}

std::vector<std::vector<SequenceId>> partition_groups(const Groups& groups, std::int64_t count) {
  return balanced_partitions(groups.workloads, static_cast<std::int32_t>(count), PartSizes::free);
}

// Descending by (workload, first group), then every second one backwards and the others after
// them: the largest end up in the middle.
std::vector<std::vector<SequenceId>> small_at_both_ends(
    std::vector<std::vector<SequenceId>> partitions, const Groups& groups) {
  std::vector<std::int64_t> workloads;
  for (const std::vector<SequenceId>& partition : partitions) {
    workloads.push_back(0);
    for (const SequenceId group : partition) workloads.back() += groups.workloads[group.index()];
  }
  std::vector<std::size_t> order(partitions.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (workloads[a] != workloads[b]) return workloads[a] > workloads[b];
    return partitions[a].front() > partitions[b].front();
  });
  std::vector<std::vector<SequenceId>> ordered;
  for (std::size_t i = order.size(); i > 0; --i) {
    if (i % 2 == 1) ordered.push_back(std::move(partitions[order[i - 1]]));
  }
  for (std::size_t i = 1; i < order.size(); i += 2) {
    ordered.push_back(std::move(partitions[order[i]]));
  }
  return ordered;
}

}  // namespace

std::int64_t verl_workload(Tokens length) {
  require(length >= 0 && length <= max_length, "verl_workload",
          "length is {}, must be from 0 to 2^31 - 1", length);
  return 24576 * length + length * length;
}

std::vector<std::vector<SequenceId>> verl_microbatches(std::span<const Tokens> lengths,
                                                       const VerlMicrobatchOptions& options,
                                                       const VerlAgreement& agreement) {
  require(!lengths.empty(), where, "lengths is empty, must have a sequence");
  const Tokens cap = options.max_token_len;
  Tokens total = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    require(lengths[i] >= 0 && lengths[i] <= max_length, where,
            "lengths[{}] is {}, must be from 0 to 2^31 - 1", i, lengths[i]);
    total += lengths[i];
  }
  require(options.force_group_size >= 1, where, "force_group_size is {}, must be at least 1",
          options.force_group_size);
  require(options.num_batches_divided_by.value_or(1) >= 1, where,
          "num_batches_divided_by is {}, must be at least 1",
          options.num_batches_divided_by.value_or(1));

  const Tokens longest =
      options.max_seq_len.value_or(*std::max_element(lengths.begin(), lengths.end()));
  require_like_verl<PeerAssertionError>(
      cap >= longest,
      "max_token_len must be greater than the sequence length. Got max_token_len={} and "
      "max_seq_len={}",
      cap, longest);
  require_like_verl<PeerAssertionError>(
      lengths.size() % static_cast<std::size_t>(options.force_group_size) == 0,
      "Batch size {} must be divisible by force_group_size {}", lengths.size(),
      options.force_group_size);
  require(cap >= 1, where, "max_token_len is {}, must be at least 1", cap);

  const Groups groups = groups_of(lengths, options.force_group_size);
  const auto agree = [&](auto&&... numbers) {
    std::array<std::int64_t, sizeof...(numbers)> largest = {numbers...};
    if (agreement.all_reduce_max) agreement.all_reduce_max(largest);
    return largest;
  };

  const std::int64_t step = options.num_batches_divided_by.value_or(1);
  std::int64_t count = std::min(groups.count, total / cap + (total % cap != 0 ? 1 : 0));
  if (options.min_num_micro_batch) {
    count = std::max<std::int64_t>(count, *options.min_num_micro_batch);
  }
  count = agree(count)[0];
  count = (count + step - 1) / step * step;
  require(count >= 1, where, "the lengths add up to 0, must hold a token");

  std::vector<std::vector<SequenceId>> partitions;
  if (options.rule == VerlRule::before_7553) {
    require_like_verl<PeerAssertionError>(count <= groups.count, "");
    partitions = partition_groups(groups, count);
  } else {
    const auto [most, negative_fewest] =
        agree(*std::max_element(groups.tokens.begin(), groups.tokens.end()), -groups.count);
    require_like_verl<PeerValueError>(
        most <= cap,
        "A forced group exceeds max_token_len and cannot be split. Got max_group_token_len={} and "
        "max_token_len={}.",
        most, cap);
    for (bool is_within_cap = false; !is_within_cap; count += step) {
      require_like_verl<PeerValueError>(
          count <= -negative_fewest,
          "Cannot satisfy max_token_len while keeping forced groups atomic and using the same "
          "micro-batch count across DP ranks. Requested {} non-empty micro-batches, but a rank has "
          "only {} forced groups.",
          count, -negative_fewest);
      partitions = partition_groups(groups, count);
      // All fit if the smallest of 0 and 1 is 1, which is the largest of the negated ones.
      is_within_cap = agree(most_tokens(groups, partitions) <= cap ? -1 : 0)[0] == -1;
    }
  }

  if (options.use_dynamic_bsz_balance) {
    partitions = small_at_both_ends(std::move(partitions), groups);
  }
  if (groups.size == 1) return partitions;
  std::vector<std::vector<SequenceId>> microbatches(partitions.size());
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    for (const SequenceId group : partitions[i]) {
      for (std::int32_t member = 0; member < groups.size; ++member) {
        microbatches[i].push_back(SequenceId(group.value() * groups.size + member));
      }
    }
  }
  return microbatches;
}

LoadSpread verl_seqlen_unbalance(std::span<const std::int64_t> values,
                                 std::span<const std::vector<SequenceId>> partitions) {
  LoadSpread spread = load_spread(values, partitions);
  const std::size_t per_part = values.size() / partitions.size();
  require_like_verl<PeerValueError>(per_part > 0, "range() arg 3 must not be zero");
  spread.min = max_total_cost;
  spread.max = 0;
  for (std::size_t begin = 0; begin < values.size(); begin += per_part) {
    const std::span<const std::int64_t> part =
        values.subspan(begin, std::min(per_part, values.size() - begin));
    const std::int64_t sum = std::accumulate(part.begin(), part.end(), std::int64_t{0});
    spread.min = std::min(spread.min, sum);
    spread.max = std::max(spread.max, sum);
  }
  spread.minmax_diff = spread.max - spread.min;
  return spread;
}

}  // namespace isochron
