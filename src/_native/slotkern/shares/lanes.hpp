// Scans of rows for all hosts of a group at once, for searches of trees (shares/trees.hpp).
//
// Input: the cells of the group and the slots of the rows, ascending by time. Output: for each lane
// the first row from which on it holds a demand for some time, or the least amounts. Cost: O(rows *
// resources) of kLanes hosts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "slotkern/base/numbers.hpp"
#include "slotkern/shares/earliest.hpp"

namespace slotkern {

namespace detail {

// Sets next[l] to the row, from 0, from whose begin on lane l holds its demand for `length`: the
// first such row, or a row before which there is none; `rows` if the lane never does. begins[i]:
// begin of row i, for row 0 the time from which on parts start. Stops after `most` rows, once the
// rows that a part from begins[0] on meets are done: a result up to `most` may then be too early,
// unless it is 0. demand[d * kLanes + l]; row i has its cells at `cells + slots[i] * resources *
// kLanes`. A leaf function, for the clones.
SLOTKERN_NARROW_CLONES static inline void scan_starts(
    const Amount* cells, const std::uint32_t* slots, const double* begins, double start,
    std::size_t rows, std::size_t most, std::size_t resources, const Amount* demand, double length,
    std::int32_t* __restrict next) {
  for (std::size_t l = 0; l < kLanes; ++l) next[l] = 0;
  std::int32_t done = -1;  // parts that start in this row or before have ended
  for (std::size_t row = 0; row < rows; ++row) {
    const Amount* const a = cells + slots[row] * resources * kLanes;
    const auto after = static_cast<std::int32_t>(row + 1);
    for (std::size_t d = 0; d < resources; ++d)
      for (std::size_t l = 0; l < kLanes; ++l) {
        const bool lacks = (a[d * kLanes + l] < demand[d * kLanes + l]) & (next[l] > done);
        const std::int32_t hit = lacks ? after : 0;
        next[l] = next[l] > hit ? next[l] : hit;
      }
    if (row + 1 == rows) break;
    const double end = begins[row + 1];
    while (done < static_cast<std::int32_t>(row) &&
           (done < 0 ? start : begins[done + 1]) + length <= end)
      ++done;
    std::int32_t last = 0;
    for (std::size_t l = 0; l < kLanes; ++l) last = last > next[l] ? last : next[l];
    if (last <= done || (done >= 0 && row + 1 >= most)) break;
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
