// Radix sort (LSD) of items by 64-bit keys.
//
// One pass over all items for each byte in which keys differ, without comparisons. O(n) time and
// memory. Fewer than 256 items are sorted by std::sort.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "slotkern/base/interrupt.hpp"

namespace slotkern {

// Order-preserving key of a non-negative double; negative zero equals zero.
inline std::uint64_t key_of(double x) { return std::bit_cast<std::uint64_t>(x + 0.0); }

// Sorts by key. Items with equal keys must already be in their final order.
template <class Item>
void sort_by_key(std::vector<Item>& items) {
  if (items.size() < 256) return std::sort(items.begin(), items.end());
  std::array<std::array<std::size_t, 256>, 8> counts{};
  for (const Item& item : items)
    for (std::size_t byte = 0; byte < 8; ++byte) ++counts[byte][item.key >> 8 * byte & 255];
  std::vector<Item> sorted(items.size());
  for (std::size_t byte = 0; byte < 8; ++byte) {
    poll();
    std::array<std::size_t, 256>& next = counts[byte];
    if (next[items[0].key >> 8 * byte & 255] == items.size()) continue;
    std::size_t before = 0;
    for (std::size_t& at : next) before += std::exchange(at, before);
    for (const Item& item : items) sorted[next[item.key >> 8 * byte & 255]++] = item;
    items.swap(sorted);
  }
}

}  // namespace slotkern
