#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "isochron/core/units.h"

namespace isochron {

// A stretch of time of one rank, in nanoseconds since the step began. Names are those of the
// simulator where it has one: "forward", "backward".
struct TracedScope {
  std::string_view name;   // a literal
  std::int32_t slot = -1;  // of the plan; -1: outside
  Nanoseconds begin_ns = 0;
  Nanoseconds end_ns = 0;
};

// What a rank did in a step, always on: a ring that is allocated once. A scope costs two clock
// reads. Not for several threads.
class Tracer {
 public:
  explicit Tracer(std::size_t capacity = 1 << 14);

  class Scope {
   public:
    Scope(Scope&& other) noexcept;
    Scope& operator=(Scope&&) = delete;
    ~Scope();

   private:
    friend class Tracer;
    Scope(Tracer& tracer, std::size_t index) : tracer_(&tracer), index_(index) {}
    Tracer* tracer_;
    std::size_t index_;
  };

  void begin_step();  // forgets the scopes before; time 0
  [[nodiscard]] Scope scope(std::string_view name, std::int32_t slot = -1);
  [[nodiscard]] Nanoseconds now_ns() const;  // since the step began

  // Scopes of this step in the order in which they began; the oldest are lost if there are more
  // than the capacity.
  [[nodiscard]] std::vector<TracedScope> scopes() const;

 private:
  std::vector<TracedScope> ring_;
  std::size_t count_ = 0;
  std::int64_t origin_ns_ = 0;
};

}  // namespace isochron
