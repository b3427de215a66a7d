// Whether keys are few, and those that are the same float the same number: nodes of few kinds.
//
// The screen holds keys as floats. Where one float stands for one key, it tells what is less from
// what is equal, and of many slots that cost the same hardly one need be looked at. Among many
// different keys few are equal, and nothing is claimed.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "slotkern/base/numbers.hpp"

namespace slotkern {

class FewKeys {
 public:
  // So many are few.
  explicit FewKeys(std::size_t most) : most_(std::min(most, kSize / 2)) {
    if (few_ = most_ > 0; few_) keys_.fill(kInfinity);
  }

  void add(double key) {
    if (!few_ || key == kInfinity) return;
    const float known = round_down(key);
    std::size_t at = std::bit_cast<std::uint32_t>(known) * std::uint32_t{2654435769} >> kShift;
    while (keys_[at] != kInfinity && round_down(keys_[at]) != known) at = (at + 1) % kSize;
    if (keys_[at] == kInfinity) {
      keys_[at] = key;
      few_ = ++count_ <= most_;
    }
    few_ = few_ && keys_[at] == key;
  }
  bool few() const { return few_; }

 private:
  static constexpr std::size_t kShift = 22, kSize = std::size_t{1} << (32 - kShift);

  std::array<double, kSize> keys_;  // by hash, half full at most; infinite: none
  std::size_t most_, count_ = 0;
  bool few_;
};

// The keys of all these.
template <class Items, class KeyOf>
bool few_keys(std::size_t most, const Items& items, KeyOf key) {
  FewKeys keys(most);
  for (std::size_t i = 0; i < items.size() && keys.few(); ++i) keys.add(key(items[i]));
  return keys.few();
}

}  // namespace slotkern
