// Dictionary of the keys of a zone map, for clusters with few node types.
//
// Input: all keys of the slots (prices or rates). If there are at most `most` distinct finite keys,
// each gets a float code of its own, in key order and never above its key. Comparisons of codes
// then decide exactly between "less" and "equal", so that a search can skip slots that tie on cost.
// Keys that round to the same float (rates, if prices are proportional to performance) get codes
// one float step below the next key's code. With more distinct keys, a code is the key rounded down
// and equality of codes means nothing. Build: O(m) hashing plus O(k log k) for k distinct keys;
// lookup: O(log k), or O(1) if rounding suffices.
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

  // Builds from the keys for which each(visit) calls visit(key) until it returns false; exact if at
  // most `most` are distinct.
  template <class Each>
  KeyDictionary(std::size_t most, Each each) {
    DistinctKeys distinct(std::min(most, kSize / 2));
    each([&distinct](double key) { return distinct.add(key); });
    exact_ = distinct.is_exact();
    if (exact_) build_codes(distinct.sorted());
  }

  bool is_exact() const { return exact_; }
  bool is_plain_rounding() const { return keys_.empty(); }  // code_of() only rounds down

  // The float that the zone map stores for a key. If is_exact(), the key must be one of those
  // given, or infinite.
  float code_of(double key) const {
    return is_plain_rounding() ? round_down(key) : look_up_code(key);
  }
  // A code such that every smaller key has at most this code.
  float predecessor_code(double key) const { return next_below(code_of(key)); }

 private:
  SLOTKERN_NOINLINE float look_up_code(double key) const {
    const auto at = std::lower_bound(keys_.begin(), keys_.end(), key);
    return at == keys_.end() ? round_down(key)
                             : codes_[static_cast<std::size_t>(at - keys_.begin())];
  }

  static constexpr std::size_t kShift = 54, kSize = std::size_t{1} << (64 - kShift);

  // Hash set of finite keys with linear probing, at most half full. Empty cells are infinite.
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

  // Assigns the codes; keeps the tables only if rounding does not separate all keys.
  void build_codes(std::vector<double> keys) {
    std::vector<float> codes(keys.size());
    bool is_separated = true;
    for (std::size_t k = keys.size(); k-- > 0;) {
      codes[k] = round_down(keys[k]);
      if (k + 1 == keys.size() || codes[k] < codes[k + 1]) continue;
      codes[k] = next_below(codes[k + 1]);
      is_separated = false;
    }
    if (!is_separated) keys_ = std::move(keys), codes_ = std::move(codes);
  }

  bool exact_ = false;
  std::vector<double> keys_;  // ascending; empty if rounding separates all keys
  std::vector<float> codes_;  // [index in keys_]
};

}  // namespace slotkern
