// Draws of test cases from a generator, or from the bytes of a fuzzer and then zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

class Random {
 public:
  explicit Random(std::uint64_t seed) : source_(seed) {}
  Random(const std::uint8_t* data, std::size_t size) : bytes_(data), left_(size), fuzzed_(true) {}

  std::size_t below(std::size_t n) {
    if (!fuzzed_) return source_() % n;
    return n <= 256 ? byte() % n : (byte() * 256 + byte()) % n;
  }
  // A number in [least, most].
  int in(int least, int most) {
    return least + static_cast<int>(below(static_cast<std::size_t>(most - least) + 1));
  }
  bool one_in(std::size_t n) { return below(n) == n - 1; }
  double real() {
    if (!fuzzed_) return static_cast<double>(source_() >> 11) * 0x1p-53;
    return (static_cast<double>(byte()) + static_cast<double>(byte()) / 256) / 256.1;
  }
  template <class T, std::size_t N>
  T pick(const T (&options)[N]) {
    return options[below(N)];
  }
  bool is_empty() const { return fuzzed_ && left_ == 0; }

 private:
  std::size_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *bytes_++;
  }
  std::mt19937_64 source_;
  const std::uint8_t* bytes_ = nullptr;
  std::size_t left_ = 0;
  bool fuzzed_ = false;
};
