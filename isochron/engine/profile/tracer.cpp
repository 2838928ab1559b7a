#include "isochron/engine/profile/tracer.h"

#include <chrono>

namespace isochron {

namespace {

std::int64_t clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Tracer::Tracer(std::size_t capacity) : ring_(capacity), origin_ns_(clock_ns()) {}

Tracer::Scope::Scope(Scope&& other) noexcept : tracer_(other.tracer_), index_(other.index_) {
  other.tracer_ = nullptr;
}

Tracer::Scope::~Scope() {
  // A scope that is still open when the ring comes round to it, or at the next step, is lost.
  if (tracer_ == nullptr || index_ >= tracer_->count_) return;
  if (tracer_->count_ - index_ > tracer_->ring_.size()) return;
  tracer_->ring_[index_ % tracer_->ring_.size()].end_ns = tracer_->now_ns();
}

void Tracer::begin_step() {
  count_ = 0;
  origin_ns_ = clock_ns();
}

Tracer::Scope Tracer::scope(std::string_view name, std::int32_t slot) {
  const std::size_t index = count_++;
  ring_[index % ring_.size()] = {.name = name, .slot = slot, .begin_ns = now_ns(), .end_ns = -1};
  return {*this, index};
}

Nanoseconds Tracer::now_ns() const { return clock_ns() - origin_ns_; }

std::vector<TracedScope> Tracer::scopes() const {
  const std::size_t first = count_ > ring_.size() ? count_ - ring_.size() : 0;
  std::vector<TracedScope> scopes;
  for (std::size_t i = first; i < count_; ++i) {
    const TracedScope& scope = ring_[i % ring_.size()];
    if (scope.end_ns >= scope.begin_ns) scopes.push_back(scope);
  }
  return scopes;
}

}  // namespace isochron
