// The nodes of prepared slots.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slotkern {

struct Node {
  std::int32_t id;
  double performance;
  double min_price;  // lowest price of its slots
};

// Nodes for which PreparedSlots stores one lowest price.
inline constexpr std::size_t kNodesPerBlock = 64;

}  // namespace slotkern
