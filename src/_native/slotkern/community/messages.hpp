// The messages that the nodes of a community exchange.
#pragma once

#include <cstddef>
#include <cstdint>

#include "slotkern/community/handle_table.hpp"
#include "slotkern/community/queue.hpp"

namespace slotkern::community {

// The kinds of Table 1 of the paper, and REVOKE of Algorithm 3.
enum class MessageKind : std::uint8_t {
  request, accept_request, assign_request, inform, accept_inform, assign_inform, receipt, revoke
};
inline constexpr std::size_t kKinds = 8;

// A message; fields that its kind does not use keep their defaults.
struct Message {
  MessageKind kind;
  NodeId from, to;
  JobId job;
  std::uint32_t hop = 0;        // ASSIGN: hand-overs of the job, including this one
  std::uint32_t place = 0;      // index of the receiver among the contacted nodes; answers echo it
  std::uint32_t contacted = 0;  // REQUEST and INFORM: number of contacted nodes (x)
  Handle negotiation{};         // handle at the requester; answers echo it
  Handle promise{};             // handle at the responder
  // ACCEPT: execution times of the job, the queue and the shadow queue, in s.
  // INFORM: the estimated response time and the mean queueing time at the requester, in s.
  double times[3] = {0, 0, 0};
};

}  // namespace slotkern::community
