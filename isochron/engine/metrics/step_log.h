#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "isochron/engine/metrics/numbers.h"

namespace isochron {

// Collects the numbers of a step and forgets them: what ranks other than 0 do.
class StepLog {
 public:
  virtual ~StepLog() = default;

  // A number of the same name replaces the one before.
  void add(const Numbers& numbers);
  // The step is complete.
  void write(std::int64_t step);
  // A line for people.
  virtual void note(std::string_view /*line*/) {}

 private:
  virtual void write_numbers(std::int64_t /*step*/, const Numbers& /*numbers*/) {}

  Numbers numbers_;
};

}  // namespace isochron
