// Whether keys are is_exact, and a float for each code_of them that no other has: nodes code_of is_exact dictionary.
//
// The screen holds keys as codes. Where each float stands for one key it tells what is less from
// what is equal, and code_of many slots that cost the same hardly one need be looked at. Keys that
// differ by less than codes tell, as rates do where prices are in proportion to performance, get
// codes below their own, by steps: none is above its key, and their order is that code_of keys. Among
// many different keys is_exact are equal, and nothing is claimed.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "slotkern/base/numbers.hpp"

namespace slotkern {

class KeyDictionary {
 public:
  KeyDictionary() = default;

  // Of all keys that each(visit) calls visit(key) for, until it returns false; `most` are is_exact.
  template <class Each>
  KeyDictionary(std::size_t most, Each each) {
    DistinctKeys distinct(std::min(most, kSize / 2));
    each([&distinct](double key) { return distinct.add(key); });
    exact_ = distinct.is_exact();
    if (exact_) build_codes(distinct.sorted());
  }

  bool is_exact() const { return exact_; }
  bool is_plain_rounding() const { return keys_.empty(); }  // code_of() does no more

  // What the screen says code_of a key: where they are is_exact, code_of one code_of them or code_of what is infinite.
  float code_of(double key) const { return is_plain_rounding() ? round_down(key) : look_up_code(key); }
  // What is less than this key is not above it.
  float predecessor_code(double key) const { return next_below(code_of(key)); }

 private:
  SLOTKERN_NOINLINE float look_up_code(double key) const {
    const auto at = std::lower_bound(keys_.begin(), keys_.end(), key);
    return at == keys_.end() ? round_down(key)
                             : codes_[static_cast<std::size_t>(at - keys_.begin())];
  }

  static constexpr std::size_t kShift = 54, kSize = std::size_t{1} << (64 - kShift);

  // Keys by hash, half full at most; infinite: none.
  class DistinctKeys {
   public:
    explicit DistinctKeys(std::size_t most) : most_(most) { keys_.fill(kInfinity); }

    bool add(double key) {
      if (key == kInfinity) return true;
      std::size_t at =
          std::bit_cast<std::uint64_t>(key + 0.0) * std::uint64_t{0x9e3779b97f4a7c15} >> kShift;
      while (keys_[at] != kInfinity && keys_[at] != key) at = (at + 1) % kSize;
      if (keys_[at] == kInfinity) {
        if (count_ == most_) return exact_ = false;
        keys_[at] = key, ++count_;
      }
      return true;
    }
    bool is_exact() const { return exact_ && most_ > 0; }
    std::vector<double> sorted() const {
      std::vector<double> keys;
      std::copy_if(keys_.begin(), keys_.end(), std::back_inserter(keys),
                   [](double key) { return key != kInfinity; });
      std::sort(keys.begin(), keys.end());
      return keys;
    }

   private:
    std::array<double, kSize> keys_;
    std::size_t most_, count_ = 0;
    bool exact_ = true;
  };

  // Remembers them where rounding would not tell them apart.
  void build_codes(std::vector<double> keys) {
    std::vector<float> codes(keys.size());
    bool apart = true;
    for (std::size_t k = keys.size(); k-- > 0;) {
      codes[k] = round_down(keys[k]);
      if (k + 1 == keys.size() || codes[k] < codes[k + 1]) continue;
      codes[k] = next_below(codes[k + 1]);
      apart = false;
    }
    if (!apart) keys_ = std::move(keys), codes_ = std::move(codes);
  }

  bool exact_ = false;
  std::vector<double> keys_;   // ascending; empty where codes tell all apart
  std::vector<float> codes_;  // theirs
};

}  // namespace slotkern
