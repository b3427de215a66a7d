// Many items in the order of their keys of 64 bits.
//
// One pass over all items for each byte of the keys in which they differ: no comparison to guess.
// O(n) time and memory. Few items are sorted faster by comparisons.
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

// Keys of numbers that are not negative, in their order; negative zero is zero.
inline std::uint64_t key_of(double x) { return std::bit_cast<std::uint64_t>(x + 0.0); }

// Items are ordered by their keys first. Those of equal keys stand in their order already.
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
