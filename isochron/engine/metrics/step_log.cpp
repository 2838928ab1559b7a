#include "isochron/engine/metrics/step_log.h"

#include <algorithm>

namespace isochron {

void StepLog::add(const Numbers& numbers) {
  for (const auto& number : numbers) {
    const auto found = std::find_if(numbers_.begin(), numbers_.end(),
                                    [&](const auto& own) { return own.first == number.first; });
    if (found == numbers_.end()) {
      numbers_.push_back(number);
    } else {
      found->second = number.second;
    }
  }
}

void StepLog::write(std::int64_t step) {
  write_numbers(step, numbers_);
  numbers_.clear();
}

}  // namespace isochron
