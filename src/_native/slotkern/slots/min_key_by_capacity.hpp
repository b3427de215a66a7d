// Per block of 64 rows and class c of 16: a lower bound on the key of rows with capacity >= c.
//
// The zone map keeps the minimum key and the maximum capacity of a block independently. It gives a
// false positive if the cheapest row is too short and the longest row too expensive, as in blocks
// of many nodes that become free at one time. After the first such false positive compute() stores
// the exact minima per class; until then, and after changes, the entries are lower bounds. A
// capacity is rounded down to its class, so a pruned block cannot contain a row that the search
// needs.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "slotkern/base/numbers.hpp"
#include "slotkern/slots/block_directory.hpp"
#include "slotkern/slots/filter64.hpp"

namespace slotkern {

// All arrays are indexed by directory entry (slots/block_directory.hpp).
class MinKeyByCapacity {
 public:
  static constexpr std::size_t kNoClass = ~std::size_t{0};

  // Drops all bounds; the index covers `entries` entries.
  void reset(std::size_t entries) {
    lowest_class_ = 0;
    resize_all(entries);
  }
  bool empty() const { return exact_.empty(); }
  void reserve(std::size_t entries) {
    exact_.reserve(entries);
    for (auto& keys : min_key_) keys.reserve(entries);
  }
  void resize(std::size_t entries) {
    if (!exact_.empty()) resize_all(entries);
  }
  void move(std::size_t from, std::size_t to, std::size_t count) {
    if (exact_.empty()) return;
    std::memmove(exact_.data() + to, exact_.data() + from, count);
    for (auto& keys : min_key_)
      std::memmove(keys.data() + to, keys.data() + from, count * sizeof(float));
  }

  // The class for this capacity, or kNoClass if the index does not apply. Moves the range of
  // classes down, and resets all bounds, if the capacity is below it. `keys`: minimum key of each
  // block.
  std::size_t class_for(float capacity, const float* keys) {
    if (exact_.empty() || !(capacity > 0)) return kNoClass;
    const std::int32_t capacity_class = class_of(capacity);
    if (capacity_class < 1) return kNoClass;
    if (capacity_class < lowest_class_ || lowest_class_ == 0) {  // the range of classes moves down
      constexpr auto num_classes = static_cast<std::int32_t>(kClasses);
      lowest_class_ = std::clamp(capacity_class - num_classes / 2, 1,
                                 class_of(kNoKey) - num_classes);
      for (std::size_t k = 0; k < kClasses; ++k)
        class_capacity_[k] =
            std::bit_cast<float>((lowest_class_ + static_cast<std::int32_t>(k)) << kShift);
      reset_all(keys);
    }
    return std::min(static_cast<std::size_t>(capacity_class - lowest_class_), kClasses - 1);
  }

  // Bit j: block `entries + j` may have a row of this class with a key of at most `key`.
  std::uint64_t pass(std::size_t entries, std::size_t capacity_class, float key) const {
    return detail::mask_at_most64(&min_key_[capacity_class][entries], key);
  }

  bool is_exact(std::size_t entry) const { return exact_[entry] != 0; }
  // Computes the exact minima of the block from its 64 rows, after a false positive.
  void compute(std::size_t entry, const float* key, const float* capacity) {
    exact_[entry] = 1;
    const float largest = detail::min_key_with_capacity64(key, capacity, class_capacity_.back());
    std::array<float, kClasses> least;
    least.fill(kNoKey);
    least.back() = largest;
    // Only rows cheaper than the cheapest row of the largest class can lower the other classes.
    for (std::uint64_t rows = detail::mask_at_most64(key, largest); rows; rows &= rows - 1) {
      const int j = std::countr_zero(rows);
      const std::int32_t capacity_class = class_of(capacity[j]) - lowest_class_;
      if (capacity_class < 0) continue;
      float& of_class = least[std::min(static_cast<std::size_t>(capacity_class), kClasses - 1)];
      of_class = std::min(of_class, key[j]);
    }
    for (std::size_t k = kClasses; k-- > 0;) {
      if (k + 1 < kClasses) least[k] = std::min(least[k], least[k + 1]);
      min_key_[k][entry] = least[k];
    }
  }

  // Lowers the bounds for a row that was added or grew. They do not decrease with the class:
  // usually one comparison.
  void expand(std::size_t entry, float key, float capacity) {
    if (exact_.empty()) return;
    std::size_t k = kClasses;
    while (k > 0 && !(class_capacity_[k - 1] <= capacity)) --k;
    for (; k > 0 && key < min_key_[k - 1][entry]; --k) min_key_[k - 1][entry] = key;
  }
  // A row was removed or shrank: the bounds stay valid but are no longer exact.
  void mark_stale(std::size_t entry) {
    if (!exact_.empty()) exact_[entry] = 0;
  }
  // The rows were replaced: `key` is a lower bound on all keys (infinite for an empty block).
  void reset_entry(std::size_t entry, float key) {
    mark_stale(entry);
    if (!exact_.empty())
      for (auto& keys : min_key_) keys[entry] = key;
  }

  // Estimates a key threshold that about `wanted` blocks up to `last_block` meet: partitions the
  // blocks into at least 4 * wanted groups, takes the minimum of each group and returns about the
  // wanted-th smallest; few groups hold two such blocks. Infinite if no block has a finite key.
  // Also fills leaf_min_key() for these leaves.
  float estimate_threshold(const BlockDirectory& order, std::size_t capacity_class,
                           std::size_t last_block, std::size_t wanted) {
    const std::size_t leaves = last_block / 64 + 1, sets = 8 * (wanted / 16 + 1);
    group_min_.assign(8 * sets, kNoKey);
    leaf_min_.resize(leaves);
    for (std::size_t leaf = 0, set = 0; leaf < leaves; ++leaf, set = set + 1 < sets ? set + 1 : 0) {
      const float* keys = &min_key_[capacity_class][order.entry_at(64 * leaf)];
      std::array<float, 64> last_leaf;
      if (leaf + 1 == leaves) {
        last_leaf.fill(kNoKey);
        std::copy(keys, keys + last_block % 64 + 1, last_leaf.begin());
        keys = last_leaf.data();
      }
      leaf_min_[leaf] = detail::min_of_lanes64(keys, &group_min_[8 * set]);
    }
    return detail::approximate_nth(group_min_, wanted);
  }
  float leaf_min_key(std::size_t leaf) const { return leaf_min_[leaf]; }

 private:
  // A class is the bit pattern of a float without its low 20 bits: 8 classes per power of two.
  static constexpr std::size_t kShift = 20, kClasses = 16;
  static constexpr float kNoKey = std::numeric_limits<float>::infinity();

  static std::int32_t class_of(float capacity) {
    return std::bit_cast<std::int32_t>(capacity) >> kShift;
  }
  void resize_all(std::size_t entries) {
    exact_.resize(entries, 0);
    for (auto& keys : min_key_) keys.resize(entries, kNoKey);
  }
  void reset_all(const float* keys) {
    std::fill(exact_.begin(), exact_.end(), std::uint8_t{0});
    for (auto& least : min_key_) std::copy(keys, keys + least.size(), least.begin());
  }

  std::int32_t lowest_class_ = 0;  // first class of the range; 0: no request yet
  std::array<float, kClasses> class_capacity_{};
  std::array<std::vector<float>, kClasses> min_key_;  // [class][entry]
  std::vector<float> group_min_, leaf_min_;  // scratch of estimate_threshold()
  std::vector<std::uint8_t> exact_;  // [entry]: 1 if min_key_ is the exact minimum
};

}  // namespace slotkern
