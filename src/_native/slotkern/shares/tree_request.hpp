// Requests for groups of a tree of hosts; shares/trees.hpp finds their windows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/pool/caps.hpp"
#include "slotkern/shares/rows.hpp"
#include "slotkern/slots/request.hpp"

namespace slotkern {

// Groups of hosts by nested levels, from the coarsest to the finest.
struct HostTree {
  std::vector<std::uint32_t> hosts;  // those of each innermost group are adjacent
  // [level][group]: its first group in the next level, or at the finest level its first place in
  // `hosts`; one more entry ends the last group.
  std::vector<std::vector<std::uint32_t>> first;
};

// The amounts that each part takes of its host: one vector, or a vector for each host.
struct PartAmounts {
  const Amount* first;
  std::size_t stride = 0;  // from host to host; 0: all are equal

  PartAmounts() = default;
  PartAmounts(const Amount* amounts, std::size_t step = 0) : first(amounts), stride(step) {}
  const Amount* of(std::size_t host) const { return first + host * stride; }
};

// A search for groups of a tree.
struct TreeRequest {
  const Query* query;  // its n is not read
  PartAmounts demand;  // of each host if whole hosts are taken
  Amount stack = 1;    // most parts on one host
  const double* prices = nullptr;  // [host]: price of one part per time unit
  std::size_t tree = 0;            // as returned by EarliestTrees::add()
  const Amount* counts = nullptr;  // [level]: groups inside each group of the level above
  Amount parts = 1;                // of each innermost group; 0: all of its hosts
  const std::vector<CapacityUse>* uses = nullptr;  // of the pool's capacities; null: none
};

}  // namespace slotkern
