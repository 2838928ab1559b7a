#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "isochron/core/fields.h"
#include "isochron/core/ids.h"
#include "isochron/core/policy.h"
#include "isochron/core/status.h"

namespace isochron {

// What the rows of a batch have to divide by, under verl's names.
struct PadMultipleOptions {
  std::int32_t actor_ranks = 1;                                 // data-parallel ranks of the actor
  std::int32_t actor_ppo_mini_batch_size = 1;                   // prompts
  std::int32_t rollout_n = 1;                                   // rows of a prompt
  std::optional<std::int32_t> critic_ppo_mini_batch_size = {};  // none: no critic
  std::optional<std::int32_t> critic_ranks = {};                // none: those of the actor
  std::int32_t critic_warmup = 0;                               // steps before the actor trains

  template <class Row>
  static void describe(Row row) {
    using Self = PadMultipleOptions;
    row(Field{"actor_ranks", &Self::actor_ranks, "data-parallel ranks of the actor"});
    row(Field{"actor_ppo_mini_batch_size", &Self::actor_ppo_mini_batch_size,
              "prompts of a mini-batch of the actor"});
    row(Field{"rollout_n", &Self::rollout_n, "rows of a prompt"});
    row(Field{"critic_ppo_mini_batch_size", &Self::critic_ppo_mini_batch_size,
              "prompts of a mini-batch of the critic; none: no critic"});
    row(Field{"critic_ranks", &Self::critic_ranks,
              "data-parallel ranks of the critic; none: those of the actor"});
    row(Field{"critic_warmup", &Self::critic_warmup, "steps before the actor trains"});
  }
};

// The smallest number whose multiples divide into the data-parallel ranks and, of every model that
// trains at `step`, into its mini-batches: the critic if there is one, the actor from step
// critic_warmup on.
//
// Throws std::invalid_argument if an option is below 1 (critic_warmup below 0), critic_ranks is
// given without a critic, or the number exceeds 2^63 - 1.
[[nodiscard]] std::int64_t required_multiple(const PadMultipleOptions& options, std::int64_t step);

// The fewest rows to add to `num_rows` so that `multiple` divides the sum; none to no rows. Throws
// std::invalid_argument if `num_rows` is negative, `multiple` below 1, or the sum above 2^63 - 1.
[[nodiscard]] std::int64_t num_padding_rows(std::int64_t num_rows, std::int64_t multiple);

struct PadOptions {
  Pad pad = Pad::uneven;       // for a number of rows that `multiple` does not divide
  std::int64_t multiple = 1;   // of the rows
  std::int32_t minibatch = 0;  // rows of a mini-batch; 0: all rows are one

  template <class Row>
  static void describe(Row row) {
    using Self = PadOptions;
    row(Field{"pad", &Self::pad, "rows that do not divide: uneven, rows or error"});
    row(Field{"multiple", &Self::multiple, "the number of rows is a multiple of this"});
    row(Field{"minibatch", &Self::minibatch, "rows of a mini-batch; 0: all rows are one"});
  }
};

// Positions begin to end - 1 of PaddedRows::rows.
struct PaddedMinibatch {
  std::int32_t begin = 0;
  std::int32_t end = 0;
  std::int32_t num_real = 0;  // what every denominator counts
  bool is_run = false;        // not without a real row, on any rank

  bool operator==(const PaddedMinibatch&) const = default;
};

struct PaddedRows {
  Status status = Status::unknown;  // optimal: no fewer padding rows do; or infeasible
  std::string reason;               // why there is no answer, in words; empty otherwise
  std::int32_t num_real = 0;
  std::int32_t num_padding = 0;
  // The row at each position: real rows 0 to n - 1 in order, padding rows n to n + P - 1 between
  // them.
  std::vector<SequenceId> rows;
  std::vector<PaddedMinibatch> minibatches;

  [[nodiscard]] bool is_real(std::size_t position) const {
    return rows[position].value() < num_real;
  }

  bool operator==(const PaddedRows&) const = default;
};

// Makes the number of rows a multiple, by the policy. `rows` adds the fewest padding rows and
// spreads them: real and padding rows alternate so evenly that of contiguous parts of equal size
// (mini-batches, ranks) none has two real rows more than another. `uneven` leaves the rows as they
// are and cuts as many mini-batches as `minibatch` asks for, whose sizes differ by at most one.
// `error` is infeasible unless the rows divide.
//
// Throws std::invalid_argument if the number of rows or an option is out of range, there would be
// more than 2^31 - 1 rows, or `minibatch` does not divide `multiple` where that counts.
[[nodiscard]] PaddedRows pad_rows(std::int32_t num_rows, const PadOptions& options = {});

// How many of the positions begin to end - 1 hold a real row when `num_real` of `num_rows` are
// real and spread by pad_rows(). Throws std::invalid_argument unless 0 <= begin <= end <= num_rows
// and 0 <= num_real <= num_rows.
[[nodiscard]] std::int32_t num_real_between(std::int32_t num_real, std::int32_t num_rows,
                                            std::int32_t begin, std::int32_t end);

}  // namespace isochron
