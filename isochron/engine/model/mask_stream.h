#pragma once

#include <cstdint>

#include "isochron/core/random.h"

namespace isochron {

// The random numbers of masks. Each has a name, (seed, step, row, position, layer, product,
// feature), and depends on nothing else: not on what was drawn before, on which tokens lie beside
// its own, or on the device.
//
// A name is a way down a tree. A stream of SplitMix64 (core/random.h) has 2^64 numbers, any of them
// is found without the others, and each starts a stream of its own.

// Number `index` of the stream that starts at `stream`: what Random(stream) gives after `index`
// others.
[[nodiscard]] constexpr std::uint64_t number_at(std::uint64_t stream, std::uint64_t index) {
  constexpr std::uint64_t stride = 0x9e3779b97f4a7c15ull;  // between the states of two numbers
  return Random(stream + index * stride).next();
}

// The inputs of a layer that have masks. Masks are made of these numbers: they never change.
enum class MaskedInput : std::uint8_t { qkv = 0, output = 1, gate_up = 2, down = 3 };

// What the masks of one step start from.
[[nodiscard]] constexpr std::uint64_t step_stream(std::int64_t seed, std::int64_t step) {
  return number_at(number_at(0, static_cast<std::uint64_t>(seed)),
                   static_cast<std::uint64_t>(step));
}

// What the masks of one token start from: a position of a row of the data set.
[[nodiscard]] constexpr std::uint64_t token_stream(std::uint64_t step_stream, std::int64_t row,
                                                   std::int64_t position) {
  return number_at(number_at(step_stream, static_cast<std::uint64_t>(row)),
                   static_cast<std::uint64_t>(position));
}

// The number of an input's mask in the stream of a token.
[[nodiscard]] constexpr std::uint64_t input_index(std::int64_t layer, MaskedInput input) {
  return static_cast<std::uint64_t>(layer) * 256 + static_cast<std::uint64_t>(input);
}

// Number i of the mask's own stream decides about the features 2i, by its low half, and 2i + 1, by
// its high half: a half below the limit, both signed, drops its feature.
[[nodiscard]] constexpr std::int32_t half_of(std::uint64_t number, std::int64_t feature) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(number >> (32 * (feature % 2))));
}

// `probability` is at least 0 and below 1; exact to 2^-32.
[[nodiscard]] constexpr std::int32_t drop_limit(double probability) {
  return static_cast<std::int32_t>(static_cast<std::int64_t>(probability * 0x1.0p32) -
                                   (std::int64_t{1} << 31));
}

}  // namespace isochron
