// Helpers of all unit tests: options, random numbers, enumeration of subsets, slot records.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "../check.hpp"
#include "slotkern/slots/index_options.hpp"
#include "slotkern/slots/view.hpp"

namespace unit {

inline std::mt19937_64 source(3);

// The options of all prepared slots. A program with an argument uses the defaults.
inline slotkern::IndexOptions options = slotkern::IndexOptions::for_small_pools();
inline bool use_default_options(int argc) {
  if (argc > 1) options = {};
  return argc > 1;
}

inline std::size_t below(std::size_t n) { return source() % n; }
inline double real() { return static_cast<double>(source() >> 11) * 0x1p-53; }

// Calls visit(places) for every subset of `pick` of `count` items.
template <class Visit>
void each_set(int count, int pick, Visit visit) {
  for (unsigned bits = 0; bits < 1u << count; ++bits) {
    if (std::popcount(bits) != pick) continue;
    std::vector<int> places;
    for (int i = 0; i < count; ++i)
      if (bits >> i & 1) places.push_back(i);
    visit(places);
  }
}

struct Row {
  std::int32_t node;
  double start, end, performance, price;
};

inline slotkern::SlotView view_of(const std::vector<Row>& rows) {
  slotkern::SlotView view;
  view.base = reinterpret_cast<const char*>(rows.data());
  view.stride = sizeof(Row), view.size = rows.size();
  view.start = offsetof(Row, start), view.end = offsetof(Row, end);
  view.performance = offsetof(Row, performance), view.price = offsetof(Row, price);
  return view;
}

}  // namespace unit
