// Administrative preferences: which jobs a node would run among those that it could (section 3
// of the paper), as a table or a compiled function. O(1) an answer.
#pragma once

#include "slotkern/community/queue.hpp"

namespace slotkern::community {

struct Preferences {
  const std::uint8_t* table = nullptr;  // of jobs * nodes: not 0 where the node is willing
  std::int64_t (*function)(double now, std::int64_t job, std::int64_t node) = nullptr;
  const std::int64_t* row = nullptr;  // of each job, as the caller counts them
  std::size_t nodes = 0;

  // For Rules::willing; `data` is a Preferences.
  static bool is_willing(void* data, double now, NodeId node, JobId job) {
    const auto& self = *static_cast<const Preferences*>(data);
    const std::int64_t row = self.row[job];
    if (self.function) return self.function(now, row, node) != 0;
    return self.table[static_cast<std::size_t>(row) * self.nodes + node] != 0;
  }
};

}  // namespace slotkern::community
