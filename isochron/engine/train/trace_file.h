#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <span>

#include "isochron/engine/metrics/step_lines.h"
#include "isochron/engine/profile/tracer.h"

namespace isochron {

// What a rank measured, as a Chrome trace (Perfetto reads it): `[`, then one event a line, of all
// steps. The array stays open, which the format allows, so that a run can be looked at and resumed.
class TraceFile {
 public:
  // Events of steps after `last_step`, of an earlier run, are cut.
  TraceFile(const std::filesystem::path& path, std::int32_t rank, std::int64_t last_step);

  // `begin` is when the step began: ranks of one host share its clock.
  void write(std::int64_t step, std::chrono::system_clock::time_point begin,
             std::span<const TracedScope> scopes);

 private:
  std::int32_t rank_;
  StepLines lines_;
};

}  // namespace isochron
