// Four lanes of 8 bytes each run independently through the input, so that a processor works on them
// at once; what is left is mixed in behind them, and a final avalanche spreads every bit.

#include "isochron/engine/checkpoint/xxhash64.h"

#include <array>
#include <bit>
#include <cstring>

namespace isochron {

namespace {

// The primes of the reference.
constexpr std::uint64_t prime1 = 0x9E3779B185EBCA87ull;
constexpr std::uint64_t prime2 = 0xC2B2AE3D27D4EB4Full;
constexpr std::uint64_t prime3 = 0x165667B19E3779F9ull;
constexpr std::uint64_t prime4 = 0x85EBCA77C2B2AE63ull;
constexpr std::uint64_t prime5 = 0x27D4EB2F165667C5ull;

template <class T>
T read(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

constexpr std::uint64_t round(std::uint64_t lane, std::uint64_t input) {
  return std::rotl(lane + input * prime2, 31) * prime1;
}

constexpr std::uint64_t merge(std::uint64_t hash, std::uint64_t lane) {
  return (hash ^ round(0, lane)) * prime1 + prime4;
}

}  // namespace

std::uint64_t xxhash64(std::span<const std::byte> bytes) {
  const std::byte* next = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t hash = prime5;
  if (left >= 32) {
    std::array<std::uint64_t, 4> lanes = {prime1 + prime2, prime2, 0, 0 - prime1};
    for (; left >= 32; left -= 32) {
      for (std::uint64_t& lane : lanes) {
        lane = round(lane, read<std::uint64_t>(next));
        next += 8;
      }
    }
    hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) +
           std::rotl(lanes[3], 18);
    for (const std::uint64_t lane : lanes) hash = merge(hash, lane);
  }
  hash += bytes.size();
  for (; left >= 8; left -= 8, next += 8) {
    hash = std::rotl(hash ^ round(0, read<std::uint64_t>(next)), 27) * prime1 + prime4;
  }
  if (left >= 4) {
    hash = std::rotl(hash ^ (read<std::uint32_t>(next) * prime1), 23) * prime2 + prime3;
    left -= 4;
    next += 4;
  }
  for (; left > 0; --left, ++next) {
    hash = std::rotl(hash ^ (static_cast<std::uint64_t>(*next) * prime5), 11) * prime1;
  }
  hash = (hash ^ (hash >> 33)) * prime2;
  hash = (hash ^ (hash >> 29)) * prime3;
  return hash ^ (hash >> 32);
}

}  // namespace isochron
