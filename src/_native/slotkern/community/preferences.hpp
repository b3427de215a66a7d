// Administrative preferences: the jobs that a node is willing to run among those it can run
// (section 3 of the paper), as a table or a compiled function. Cost: O(1) for a query.
#pragma once

#include "slotkern/community/queue.hpp"

namespace slotkern::community {

// A table, or a function that takes precedence over it.
struct Preferences {
  const std::uint8_t* table = nullptr;  // shape (jobs, nodes); nonzero: the node is willing
  std::int64_t (*function)(double now, std::int64_t job, std::int64_t node) = nullptr;
  const std::int64_t* row = nullptr;  // the caller's row of each job
  std::size_t nodes = 0;

  // Implements Rules::willing; `data` points to a Preferences.
  static bool is_willing(void* data, double now, NodeId node, JobId job) {
    const auto& self = *static_cast<const Preferences*>(data);
    const std::int64_t row = self.row[job];
    if (self.function) return self.function(now, row, node) != 0;
    return self.table[static_cast<std::size_t>(row) * self.nodes + node] != 0;
  }
};

}  // namespace slotkern::community
