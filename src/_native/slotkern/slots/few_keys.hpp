// Whether keys are few, and a float for each of them that no other has: nodes of few kinds.
//
// The screen holds keys as floats. Where each float stands for one key it tells what is less from
// what is equal, and of many slots that cost the same hardly one need be looked at. Keys that
// differ by less than floats tell, as rates do where prices are in proportion to performance, get
// floats below their own, by steps: none is above its key, and their order is that of keys. Among
// many different keys few are equal, and nothing is claimed.
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

class FewKeys {
 public:
  FewKeys() = default;

  // Of all keys that each(visit) calls visit(key) for, until it returns false; `most` are few.
  template <class Each>
  FewKeys(std::size_t most, Each each) {
    Known known(std::min(most, kSize / 2));
    each([&known](double key) { return known.add(key); });
    few_ = known.few();
    if (few_) keep(known.sorted());
  }

  bool few() const { return few_; }
  bool rounded() const { return keys_.empty(); }  // of() does no more

  // What the screen says of a key: where they are few, of one of them or of what is infinite.
  float of(double key) const { return rounded() ? round_down(key) : look_up(key); }
  // What is less than this key is not above it.
  float under(double key) const { return next_below(of(key)); }

 private:
  SLOTKERN_APART float look_up(double key) const {
    const auto at = std::lower_bound(keys_.begin(), keys_.end(), key);
    return at == keys_.end() ? round_down(key)
                             : floats_[static_cast<std::size_t>(at - keys_.begin())];
  }

  static constexpr std::size_t kShift = 54, kSize = std::size_t{1} << (64 - kShift);

  // Keys by hash, half full at most; infinite: none.
  class Known {
   public:
    explicit Known(std::size_t most) : most_(most) { keys_.fill(kInfinity); }

    bool add(double key) {
      if (key == kInfinity) return true;
      std::size_t at =
          std::bit_cast<std::uint64_t>(key + 0.0) * std::uint64_t{0x9e3779b97f4a7c15} >> kShift;
      while (keys_[at] != kInfinity && keys_[at] != key) at = (at + 1) % kSize;
      if (keys_[at] == kInfinity) {
        if (count_ == most_) return few_ = false;
        keys_[at] = key, ++count_;
      }
      return true;
    }
    bool few() const { return few_ && most_ > 0; }
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
    bool few_ = true;
  };

  // Remembers them where rounding would not tell them apart.
  void keep(std::vector<double> keys) {
    std::vector<float> floats(keys.size());
    bool apart = true;
    for (std::size_t k = keys.size(); k-- > 0;) {
      floats[k] = round_down(keys[k]);
      if (k + 1 == keys.size() || floats[k] < floats[k + 1]) continue;
      floats[k] = next_below(floats[k + 1]);
      apart = false;
    }
    if (!apart) keys_ = std::move(keys), floats_ = std::move(floats);
  }

  bool few_ = false;
  std::vector<double> keys_;   // ascending; empty where floats tell all apart
  std::vector<float> floats_;  // theirs
};

}  // namespace slotkern
