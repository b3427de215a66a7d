// Scans of rows for all hosts of a group at once, for searches of parts (shares/earliest.hpp) and of
// trees (shares/trees.hpp).
//
// Input: the cells of the group and the slots of the rows, ascending by time. Output: for each lane
// the last row that lacks a demand, the first row from which on it holds one for some time, or the
// least amounts. Cost: O(rows * resources) of kLanes hosts.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "slotkern/base/numbers.hpp"
#include "slotkern/shares/rows.hpp"

namespace slotkern {

namespace detail {

inline constexpr std::size_t kLanes = ShareRows::kLanes;

// The hosts of a group that hold a demand in all rows of a range. Row numbers count from 1.
struct RowScan {
  std::uint32_t fits;  // bit of each lane
  std::int32_t first_end;  // least number, over the lanes that do not fit, of the last blocking row
  std::int32_t blocked[kLanes];  // number of the last blocking row of each lane, 0: it fits
};

// Scans rows from the last to the first. Row i has its cells at `cells + slots[i] * resources *
// kLanes`; lane l ignores rows with numbers above limits[l] (null: none). Resources beyond the third
// are compared in passes of their own. A leaf function, for the clones.
SLOTKERN_NARROW_CLONES static inline void scan_rows(
    const Amount* cells, const std::uint32_t* slots, std::size_t rows, std::size_t resources,
    const Amount* demand, const std::int32_t* limits, RowScan* scan) {
  const std::size_t second = resources > 1 ? 1 : 0, third = resources > 2 ? 2 : 0;
  const Amount q0 = demand[0], q1 = demand[second], q2 = demand[third];
  std::int32_t* __restrict blocked = scan->blocked;
  for (std::size_t l = 0; l < kLanes; ++l) blocked[l] = 0;
  for (std::size_t row = rows; row-- > 0;) {
    const Amount* const a = cells + slots[row] * resources * kLanes;
    const Amount *const b = a + second * kLanes, *const c = a + third * kLanes;
    if (row > 0)
      for (std::size_t d = 0; d < resources * kLanes; d += 16)
        prefetch(cells + slots[row - 1] * resources * kLanes + d);
    const auto number = static_cast<std::int32_t>(row + 1);
    std::int32_t least = number;
    if (limits) {
      for (std::size_t l = 0; l < kLanes; ++l) {
        const bool lacks = ((a[l] < q0) | (b[l] < q1) | (c[l] < q2)) & (number <= limits[l]);
        const std::int32_t hit = lacks ? number : 0;
        const std::int32_t now = blocked[l] > hit ? blocked[l] : hit;
        blocked[l] = now;
        least = least < now ? least : now;
      }
    } else {
      for (std::size_t l = 0; l < kLanes; ++l) {
        const bool lacks = (a[l] < q0) | (b[l] < q1) | (c[l] < q2);
        const std::int32_t hit = lacks ? number : 0;
        const std::int32_t now = blocked[l] > hit ? blocked[l] : hit;
        blocked[l] = now;
        least = least < now ? least : now;
      }
    }
    for (std::size_t d = 3; d < resources; ++d)
      for (std::size_t l = 0; l < kLanes; ++l) {
        const bool lacks = (a[d * kLanes + l] < demand[d]) & (!limits || number <= limits[l]);
        const std::int32_t hit = lacks ? number : 0;
        blocked[l] = blocked[l] > hit ? blocked[l] : hit;
      }
    if (least > 0) break;  // all are blocked: earlier rows change nothing
  }
  std::int32_t first_end = std::numeric_limits<std::int32_t>::max();
  std::uint8_t flags[kLanes];
  for (std::size_t l = 0; l < kLanes; ++l) {
    const std::int32_t end = blocked[l] > 0 ? blocked[l] : std::numeric_limits<std::int32_t>::max();
    first_end = first_end < end ? first_end : end;
    flags[l] = blocked[l] == 0;
  }
  scan->first_end = first_end;
  std::uint32_t bits = 0;
  if constexpr (std::endian::native == std::endian::little) {
    for (std::size_t w = 0; w < kLanes / 8; ++w) {  // packs eight 0/1 bytes into eight bits
      std::uint64_t word;
      std::memcpy(&word, flags + 8 * w, 8);
      bits |= static_cast<std::uint32_t>(word * 0x0102040810204080u >> 56) << (8 * w);
    }
  } else {
    for (std::size_t l = 0; l < kLanes; ++l) bits |= std::uint32_t{flags[l]} << l;
  }
  scan->fits = bits;
}

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
    if (done < 0) continue;
    std::int32_t last = 0;
    for (std::size_t l = 0; l < kLanes; ++l) last = last > next[l] ? last : next[l];
    if (last <= done || row + 1 >= most) break;
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
