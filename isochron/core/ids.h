#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace isochron {

// A number that knows what it counts: ids of different kinds neither convert nor compare.
// 32 bits: half the memory of a pointer, and a batch has fewer than 2^31 sequences.
template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::int32_t value) : value_(value) {}

  [[nodiscard]] constexpr std::int32_t value() const { return value_; }
  [[nodiscard]] constexpr std::size_t index() const { return static_cast<std::size_t>(value_); }

  constexpr auto operator<=>(const Id&) const = default;

 private:
  std::int32_t value_ = 0;
};

using SequenceId = Id<struct SequenceTag>;        // position in the batch, from 0
using PromptGroupId = Id<struct PromptGroupTag>;  // sequences that share a prompt, from 0

}  // namespace isochron
