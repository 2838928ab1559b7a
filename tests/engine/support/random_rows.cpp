#include "tests/engine/support/random_rows.h"

#include "isochron/core/random.h"

namespace isochron {

Rows TokenRows::view() const {
  Rows rows;
  double num_trained = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    rows.batch.lengths.push_back(static_cast<Tokens>(tokens[i].size()));
    rows.ids.push_back(id_of(i));
    rows.tokens.emplace_back(tokens[i]);
    for (std::size_t t = 1; t < loss_mask[i].size(); ++t) num_trained += loss_mask[i][t];
  }
  rows.fill_weights = [this, num_trained](SequenceId row, std::size_t first,
                                          std::span<double> weights) {
    const std::vector<std::uint8_t>& mask = loss_mask[row.index()];
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const std::size_t t = first + i;
      weights[i] = t > 0 && mask[t] != 0 ? 1 / num_trained : 0;
    }
  };
  return rows;
}

TokenRows random_rows(const std::vector<Tokens>& lengths, std::int64_t vocabulary,
                      std::uint64_t seed) {
  Random random(seed);
  TokenRows rows;
  for (const Tokens length : lengths) {
    auto& tokens = rows.tokens.emplace_back();
    auto& mask = rows.loss_mask.emplace_back();
    for (Tokens t = 0; t < length; ++t) {
      tokens.push_back(
          static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(vocabulary))));
      mask.push_back(static_cast<std::uint8_t>(random.below(3) > 0));  // first tokens too
    }
  }
  return rows;
}

}  // namespace isochron
