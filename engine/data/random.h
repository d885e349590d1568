// Counter-based random numbers for data: every number is a pure function of its key.
#pragma once

#include <cstdint>

namespace tandem {

/// SplitMix64's finaliser.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) { return mix(mix(a) ^ b); }

/// A stream of numbers from one key.
class RandomStream {
 public:
  explicit constexpr RandomStream(std::uint64_t key) : key_(key) {}
  constexpr std::uint64_t next() { return mix(key_, counter_++); }
  /// 0 <= result < bound; the bias is below bound / 2^64.
  constexpr std::uint64_t below(std::uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
  }
  /// 0 <= result < 1, a multiple of 2^-53.
  constexpr double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  /// low <= result <= high.
  constexpr double between(double low, double high) { return low + (high - low) * uniform(); }

 private:
  std::uint64_t key_;
  std::uint64_t counter_ = 0;
};

}  // namespace tandem
