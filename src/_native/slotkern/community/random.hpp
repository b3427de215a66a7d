// Reproducible random numbers: splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
//
// Each purpose has its own stream, so draws for one do not affect another. O(1), 8 bytes.
#pragma once

#include <cstdint>

namespace slotkern::community {

// One stream of random numbers.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t stream) : state_(mix(mix(seed) + stream)) {}

  std::uint64_t next() { return mix(state_ += 0x9E3779B97F4A7C15u); }

  // Returns a number in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  // Returns an integer in [0, size), for a size below 2^32.
  std::uint32_t below(std::uint32_t size) {
    return static_cast<std::uint32_t>(((next() >> 32) * size) >> 32);
  }

 private:
  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  std::uint64_t state_;
};

}  // namespace slotkern::community
