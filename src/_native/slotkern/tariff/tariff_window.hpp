// A window found under tariffs, and the order of windows by cost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "slotkern/window/window.hpp"

namespace slotkern {

// The best window so far; parts ascending by node.
struct TariffWindow {
  bool found = false;
  std::uint64_t key = 0;
  double start = 0, total = 0, runtime = 0, processor_time = 0;
  std::vector<Part> parts;  // with rows of the origin array

  bool has_smaller_nodes(const TariffWindow& other) const {
    return std::lexicographical_compare(
        parts.begin(), parts.end(), other.parts.begin(), other.parts.end(),
        [](const Part& a, const Part& b) { return a.node < b.node; });
  }
  // Order of windows by cost.
  bool is_cheaper(const TariffWindow& other) const {
    if (key != other.key) return key < other.key;
    if (start != other.start) return start < other.start;
    if (total != other.total) return total < other.total;
    return has_smaller_nodes(other);
  }
};

}  // namespace slotkern
