// Sorts items by distinct non-negative integers, such as the node ids of a window.
//
// Sets a bit per number and scans the bitmap: no comparisons. O(n + largest / 64).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace slotkern {

class BitmapSort {
 public:
  // Calls visit(i) for i < size by ascending number_of(i). Returns false, without any call, if two
  // numbers are equal or the numbers are so sparse that a comparison sort is faster.
  template <class NumberOf, class Visit>
  bool each(std::size_t size, NumberOf number_of, Visit visit) {
    std::size_t largest = 0;
    for (std::size_t i = 0; i < size; ++i) largest = std::max(largest, number_of(i));
    const std::size_t words = largest / 64 + 1;
    if (words > kSparse * size) return false;
    if (words_.size() < words) {
      items_.resize(words * 64);
      words_.resize(words, 0);
    }
    bool twice = false;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t number = number_of(i);
      std::uint64_t& word = words_[number / 64];
      const std::uint64_t bit = std::uint64_t{1} << number % 64;
      twice |= (word & bit) != 0;
      word |= bit;
      items_[number] = static_cast<std::uint32_t>(i);
    }
    for (std::size_t at = 0; at < words; ++at)
      for (std::uint64_t bits = std::exchange(words_[at], 0); bits && !twice; bits &= bits - 1)
        visit(items_[at * 64 + static_cast<std::size_t>(std::countr_zero(bits))]);
    return !twice;
  }

 private:
  static constexpr std::size_t kSparse = 4;

  std::vector<std::uint64_t> words_;  // all zero between calls
  std::vector<std::uint32_t> items_;  // [number]: item
};

}  // namespace slotkern
