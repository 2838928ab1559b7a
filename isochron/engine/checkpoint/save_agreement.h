#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "isochron/engine/parallel/world.h"

namespace isochron {

// The ranks agree on the phases of a piece of work through the key-value store, so that it may run
// beside training: without a collective, in any thread. A rank that fails tells the others why.
class SaveAgreement {
 public:
  // `name` is the same on every rank and used once.
  SaveAgreement(World& world, std::string name);

  // Rank 0 runs `work`, and every rank gets its text. Throws std::runtime_error on every rank with
  // what rank 0 threw, or what failed in on_every_rank() before: then `work` does not run.
  std::string from_rank_0(const std::string& phase, const std::function<std::string()>& work);

  // Every rank runs `work`. Rank 0 gets the texts by rank, the others nothing. What fails is thrown
  // on every rank by the next from_rank_0().
  std::vector<std::string> on_every_rank(const std::string& phase,
                                         const std::function<std::string()>& work);

 private:
  [[nodiscard]] std::string key(const std::string& phase, std::int32_t rank) const;
  // Waits for a report, without holding up other users of the store.
  [[nodiscard]] std::string await(const std::string& phase, std::int32_t rank) const;

  World& world_;
  std::string name_;
  std::string failure_;  // rank 0: of on_every_rank()
};

}  // namespace isochron
