#pragma once

#include <map>
#include <string>
#include <vector>

#include "isochron/engine/model/decoder.h"
#include "isochron/engine/optim/adamw.h"
#include "tests/engine/support/random_rows.h"

namespace isochron {

// What one update did.
struct ReferenceUpdate {
  double loss = 0;
  double grad_norm = 0;
  std::map<std::string, at::Tensor> gradients;  // by parameter, fp64, before clipping
};

// Of each token after the first of a row.
struct ReferenceScores {
  std::vector<double> log_probs, entropies;
};

// Training as a textbook has it, in fp64: one rank, one sequence at a time, whole logits, a mean
// over the trained tokens, AdamW on whole tensors. Shares nothing with the engine but the decoder.
class ReferenceTraining {
 public:
  ReferenceTraining(Decoder& model, const AdamWOptions& options);

  // One update on all rows.
  ReferenceUpdate update(const TokenRows& rows, double lr, const Dropout& dropout = {});

  // The mean loss alone.
  [[nodiscard]] double loss(const TokenRows& rows);

  [[nodiscard]] ReferenceScores scores(const std::vector<std::int32_t>& tokens);

 private:
  struct Moments {
    at::Tensor first, second;
  };
  // Of every token of the vocabulary behind each token of a row. `id`: of the row, for dropout.
  [[nodiscard]] at::Tensor row_log_probs(const std::vector<std::int32_t>& tokens,
                                         std::int64_t id = 0, const Dropout& dropout = {});
  // Sum over the trained tokens of a row.
  [[nodiscard]] at::Tensor row_loss(const std::vector<std::int32_t>& tokens,
                                    const std::vector<std::uint8_t>& mask, std::int64_t id = 0,
                                    const Dropout& dropout = {});

  Decoder& model_;
  AdamWOptions options_;
  std::map<std::string, Moments> moments_;
  int num_updates_ = 0;
};

}  // namespace isochron
