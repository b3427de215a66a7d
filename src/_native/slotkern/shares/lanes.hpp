// Scans of rows for all hosts of a group at once, for searches of trees (shares/trees.hpp).
//
// Input: the cells of the group and the slots of the rows, ascending by time. Output: for each lane
// the last row that lacks a demand, or the least amounts. Cost: O(rows * resources) of kLanes hosts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "slotkern/base/numbers.hpp"
#include "slotkern/shares/earliest.hpp"

namespace slotkern {

namespace detail {

// Sets blocked[l] to the number, from 1, of the last row in which lane l lacks its demand, or 0.
// demand[d * kLanes + l]; row i has its cells at `cells + slots[i] * resources * kLanes`. A leaf
// function, for the clones.
SLOTKERN_NARROW_CLONES static inline void scan_lanes(const Amount* cells,
                                                     const std::uint32_t* slots, std::size_t rows,
                                                     std::size_t resources, const Amount* demand,
                                                     std::int32_t* __restrict blocked) {
  for (std::size_t l = 0; l < kLanes; ++l) blocked[l] = 0;
  for (std::size_t row = rows; row-- > 0;) {
    const Amount* const a = cells + slots[row] * resources * kLanes;
    const auto number = static_cast<std::int32_t>(row + 1);
    for (std::size_t d = 0; d < resources; ++d)
      for (std::size_t l = 0; l < kLanes; ++l) {
        const std::int32_t hit = a[d * kLanes + l] < demand[d * kLanes + l] ? number : 0;
        blocked[l] = blocked[l] > hit ? blocked[l] : hit;
      }
    std::int32_t least = number;
    for (std::size_t l = 0; l < kLanes; ++l) least = least < blocked[l] ? least : blocked[l];
    if (least > 0) break;  // all are blocked: earlier rows change nothing
  }
}

// Sets least[d * kLanes + l] to the least amount of the rows. A leaf function, for the clones.
SLOTKERN_NARROW_CLONES static inline void least_of_lanes(const Amount* cells,
                                                         const std::uint32_t* slots,
                                                         std::size_t rows, std::size_t resources,
                                                         Amount* __restrict least) {
  for (std::size_t i = 0; i < resources * kLanes; ++i)
    least[i] = cells[slots[0] * resources * kLanes + i];
  for (std::size_t row = 1; row < rows; ++row) {
    const Amount* const a = cells + slots[row] * resources * kLanes;
    for (std::size_t i = 0; i < resources * kLanes; ++i)
      least[i] = least[i] < a[i] ? least[i] : a[i];
  }
}

}  // namespace detail

}  // namespace slotkern
