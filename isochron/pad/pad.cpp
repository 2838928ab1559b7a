// Rows added so that a batch divides, spread like the pixels of a line (Bresenham, 1965).
//
// Of M rows N are real: position i is if floor((i + 1) N / M) > floor(i N / M). So the first i
// positions hold floor(i N / M) real rows, and any w neighbours floor(w N / M) or one more. No
// mini-batch is left with the padding alone while another has real rows to spare.
//
//   N = 5, M = 8    . R . R R . R R      halves 2 and 3, quarters 1 1 1 2

#include "isochron/pad/pad.h"

#include <limits>
#include <numeric>
#include <string_view>

#include "isochron/core/require.h"

namespace isochron {
namespace {

constexpr std::int64_t max_rows = std::numeric_limits<std::int32_t>::max();

// Real rows before `position`. 31 bits times 31 bits fit 64.
std::int64_t num_real_before(std::int64_t num_real, std::int64_t num_rows, std::int64_t position) {
  return num_rows == 0 ? 0 : position * num_real / num_rows;
}

std::int64_t least_common_multiple(std::int64_t a, std::int64_t b) {
  std::int64_t multiple = 0;
  require(!__builtin_mul_overflow(a / std::gcd(a, b), b, &multiple), "required_multiple",
          "the least common multiple of {} and {} is more than 2^63 - 1", a, b);
  return multiple;
}

std::vector<SequenceId> spread_rows(std::int32_t num_real, std::int32_t num_rows) {
  std::vector<SequenceId> rows;
  rows.reserve(static_cast<std::size_t>(num_rows));
  std::int32_t next_real = 0;
  std::int32_t next_padding = num_real;
  for (std::int32_t i = 0; i < num_rows; ++i) {
    const bool is_real = num_real_before(num_real, num_rows, i + std::int64_t{1}) > next_real;
    rows.emplace_back(is_real ? next_real++ : next_padding++);
  }
  return rows;
}

}  // namespace

std::int64_t required_multiple(const PadMultipleOptions& options, std::int64_t step) {
  constexpr std::string_view where = "required_multiple";
  const auto require_positive = [&](std::string_view name, std::int64_t value) {
    require(value >= 1, where, "{} is {}, must be at least 1", name, value);
  };
  require_positive("actor_ranks", options.actor_ranks);
  require_positive("actor_ppo_mini_batch_size", options.actor_ppo_mini_batch_size);
  require_positive("rollout_n", options.rollout_n);
  require_positive("critic_ppo_mini_batch_size", options.critic_ppo_mini_batch_size.value_or(1));
  require_positive("critic_ranks", options.critic_ranks.value_or(1));
  require(!options.critic_ranks || options.critic_ppo_mini_batch_size, where,
          "critic_ranks is {}, must not be given without a critic",
          options.critic_ranks.value_or(0));
  require(options.critic_warmup >= 0, where, "critic_warmup is {}, must be at least 0",
          options.critic_warmup);

  const std::int64_t rows_per_prompt = options.rollout_n;
  std::int64_t multiple = options.actor_ranks;
  if (options.critic_ppo_mini_batch_size) {
    multiple = least_common_multiple(multiple, options.critic_ranks.value_or(1));
    multiple =
        least_common_multiple(multiple, *options.critic_ppo_mini_batch_size * rows_per_prompt);
  }
  if (options.critic_warmup <= step) {
    multiple = least_common_multiple(multiple, options.actor_ppo_mini_batch_size * rows_per_prompt);
  }
  return multiple;
}

std::int64_t num_padding_rows(std::int64_t num_rows, std::int64_t multiple) {
  constexpr std::string_view where = "num_padding_rows";
  require(num_rows >= 0, where, "num_rows is {}, must be at least 0", num_rows);
  require(multiple >= 1, where, "multiple is {}, must be at least 1", multiple);
  const std::int64_t rest = num_rows % multiple;
  if (rest == 0) return 0;
  require(multiple - rest <= std::numeric_limits<std::int64_t>::max() - num_rows, where,
          "{} rows have no multiple of {} below 2^63", num_rows, multiple);
  return multiple - rest;
}

PaddedRows pad_rows(std::int32_t num_rows, const PadOptions& options) {
  constexpr std::string_view where = "pad_rows";
  require(num_rows >= 0, where, "num_rows is {}, must be at least 0", num_rows);
  require(options.multiple >= 1, where, "multiple is {}, must be at least 1", options.multiple);
  require(options.minibatch >= 0, where, "minibatch is {}, must be at least 0", options.minibatch);
  const std::int64_t minibatch = options.minibatch;
  require(options.pad == Pad::uneven || minibatch == 0 || options.multiple % minibatch == 0, where,
          "minibatch is {}, must divide the multiple {}", minibatch, options.multiple);
  const std::int64_t num_missing =
      options.pad == Pad::uneven ? 0 : num_padding_rows(num_rows, options.multiple);
  PaddedRows padded;
  padded.num_real = num_rows;
  if (options.pad == Pad::error && num_missing > 0) {
    padded.status = Status::infeasible;
    padded.reason = fmt::format("{} rows are not a multiple of {}", num_rows, options.multiple);
    return padded;
  }
  require(num_missing <= max_rows - num_rows, where,
          "{} rows and {} of padding are more than 2^31 - 1", num_rows, num_missing);
  const auto total = static_cast<std::int32_t>(num_rows + num_missing);
  padded.status = Status::optimal;
  padded.num_padding = static_cast<std::int32_t>(num_missing);
  padded.rows = spread_rows(num_rows, total);
  if (total == 0) return padded;
  const std::int64_t num_minibatches = minibatch == 0 ? 1 : (total + minibatch - 1) / minibatch;
  for (std::int64_t i = 0; i < num_minibatches; ++i) {
    const auto begin = static_cast<std::int32_t>(i * total / num_minibatches);
    const auto end = static_cast<std::int32_t>((i + 1) * total / num_minibatches);
    const std::int32_t num_real = num_real_between(num_rows, total, begin, end);
    padded.minibatches.push_back({begin, end, num_real, num_real > 0});
  }
  return padded;
}

std::int32_t num_real_between(std::int32_t num_real, std::int32_t num_rows, std::int32_t begin,
                              std::int32_t end) {
  constexpr std::string_view where = "num_real_between";
  require(num_real >= 0 && num_real <= num_rows, where, "num_real is {}, must be from 0 to {}",
          num_real, num_rows);
  require(begin >= 0 && begin <= end && end <= num_rows, where,
          "positions {} to {}, must be ascending and from 0 to {}", begin, end, num_rows);
  return static_cast<std::int32_t>(num_real_before(num_real, num_rows, end) -
                                   num_real_before(num_real, num_rows, begin));
}

}  // namespace isochron
